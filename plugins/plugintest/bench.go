package plugintest

import (
	"io"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// BenchmarkDecode has a provider read a stream over and over, and reports the CPU
// that it takes.
func BenchmarkDecode(b *testing.B, p translate.Provider, stream string) {
	b.Helper()
	BenchmarkEncode(b, plugins.Responses, p, stream)
}

// BenchmarkEncode is BenchmarkDecode for a client of another API.
func BenchmarkEncode(b *testing.B, d plugins.Dialect, p translate.Provider, stream string) {
	b.Helper()
	api, _ := inbound.Of(d)
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		request := &translate.Request{Model: "m", Stream: true}
		a := translate.NewAssembler(request, io.Discard, translate.Options{Encoder: api.Encoder(request)})
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
