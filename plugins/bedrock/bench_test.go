package bedrock

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkDecode reads a stream of 200 events of text, and reports the CPU that
// it takes.
func BenchmarkDecode(b *testing.B) {
	body := eventStream(b, `messageStart {"p":"abcdefgh","role":"assistant"}`+"\n"+
		strings.Repeat(`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":" and then some"},"p":"abcdefghijklmnopqrstuvwxyzABCDEFGHI"}`+"\n", 196)+
		`contentBlockStop {"contentBlockIndex":0}`+"\n"+
		`messageStop {"stopReason":"end_turn"}`+"\n"+
		`metadata {"usage":{"inputTokens":9,"outputTokens":20,"totalTokens":29}}`)
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		a := assembler(true)
		if err := new(Provider).Decode(response(http.StatusOK, body), a); err != nil || a.Failure() != nil {
			b.Fatal(err, a.Failure())
		}
		a.End()
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
