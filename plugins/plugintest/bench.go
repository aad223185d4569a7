package plugintest

import (
	"io"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/plugins/translate"
)

// BenchmarkDecode has a provider read a stream over and over, and reports the CPU
// that it takes.
func BenchmarkDecode(b *testing.B, p translate.Provider, stream string) {
	b.Helper()
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		a := translate.NewAssembler(&translate.Request{Model: "m", Stream: true}, io.Discard, translate.Options{})
		resp := Response(http.StatusOK, stream)
		if err := p.Decode(resp, a); err != nil || a.Failure() != nil {
			b.Fatal(err, a.Failure())
		}
		resp.Body.Close()
		a.End()
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpu is how many nanoseconds of CPU the process has taken.
func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
