package bound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/plugins"
)

// BenchmarkOfTurn is what it costs to read a small call that something bounds.
func BenchmarkOfTurn(b *testing.B) {
	text := strings.Repeat(`A line of prose, as people write it.\n`, 27)
	request, _ := plugins.ParseObject(fmt.Appendf(nil, `{"model":"gpt-4o-mini","messages":[{"role":"system","content":"%s"},{"role":"user","content":"%s"}],"max_tokens":100,"temperature":0.5}`, text, text))
	counts := &lineage.Counts{}
	b.SetBytes(int64(len(request.Data)))
	b.ReportAllocs()
	for b.Loop() {
		OfTurn(counts, plugins.Chat, request, "acme", "openai/gpt-4o-mini")
	}
}
