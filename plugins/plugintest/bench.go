package plugintest

import (
	"io"
	"net/http"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// BenchmarkDecode has a provider read a stream over and over.
func BenchmarkDecode(b *testing.B, p translate.Provider, stream string) {
	b.Helper()
	BenchmarkEncode(b, plugins.Responses, p, stream)
}

// BenchmarkEncode is BenchmarkDecode for a client of another API.
func BenchmarkEncode(b *testing.B, d plugins.Dialect, p translate.Provider, stream string) {
	b.Helper()
	api, _ := inbound.Of(d)
	b.ReportAllocs()
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
}
