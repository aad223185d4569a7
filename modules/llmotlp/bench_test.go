//go:build unix

package llmotlp_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// BenchmarkIngest takes batches of 512 calls, the size in which SDKs send them,
// of about 2 KB each, and reports what one costs in CPU time, the client's and
// the backend's share included.
//
//	go test ./modules/llmotlp -bench Ingest -run - -benchtime 40x
func BenchmarkIngest(b *testing.B) {
	for _, again := range []bool{false, true} {
		b.Run(fmt.Sprintf("again=%t", again), func(b *testing.B) {
			s := newSite(b, "")
			const size = 512
			bodies := make([][]byte, b.N)
			for i := range bodies {
				var spans []*tracepb.Span
				for n := range size {
					if !again {
						n += i * size
					}
					spans = append(spans, span(n, map[string]string{
						"gen_ai.input.messages":  `[{"role":"user","parts":[{"type":"text","content":"` + strings.Repeat("lorem ipsum ", 80) + `"}]}]`,
						"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"` + strings.Repeat("dolor sit ", 80) + `"}],"finish_reason":"stop"}]`,
					}))
				}
				bodies[i] = zipped(b, export(b, spans...))
			}
			begun := cpu(b)
			b.ResetTimer()
			for _, body := range bodies {
				if response, answer := s.send("root", body, append(binary, "Content-Encoding", "gzip")...); response.StatusCode != http.StatusOK {
					b.Fatalf("%s %q", response.Status, answer)
				}
			}
			if err := s.journal().Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
			calls := float64(size * b.N)
			b.ReportMetric(calls/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric((cpu(b)-begun)/calls*1e6, "cpu-µs/call")
		})
	}
}

// cpu is the CPU time of the process, in seconds.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
