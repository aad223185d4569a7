package anthropic

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Vertex AI gets the betas that it has, by its own names, and the client is told of the others.
func TestBetasOfVertex(t *testing.T) {
	for asked, want := range map[string]struct{ sent, warned string }{
		"": {},
		"context-management-2025-06-27,interleaved-thinking-2025-05-14": {sent: "context-management-2025-06-27,interleaved-thinking-2025-05-14"},
		"claude-code-20250219, prompt-caching-scope-2026-01-05":         {warned: "anthropic-beta: claude-code-20250219, prompt-caching-scope-2026-01-05 not supported by the provider, left out"},
		"advanced-tool-use-2025-11-20,tool-search-tool-2025-10-19":      {sent: "tool-search-tool-2025-10-19"},
	} {
		header := make(http.Header)
		for value := range strings.SplitSeq(asked, ",") {
			if value != "" {
				header.Add("Anthropic-Beta", value)
			}
		}
		warnings := Vertex{}.AdaptHeader(header, translate.Target{})
		if got := header.Get("Anthropic-Beta"); got != want.sent || len(header.Values("Anthropic-Beta")) > 1 || strings.Join(warnings, "\n") != want.warned {
			t.Errorf("%s: sends %q, warnings %q", asked, header, warnings)
		}
	}
}

// Marks of prefixes keep all but the scope, at Vertex AI alone.
func TestScopesOfVertex(t *testing.T) {
	mark := func(scope string) string { return `"cache_control":{"type":"ephemeral"` + scope + `,"ttl":"1h"}` }
	body := func(scope string) string {
		return `{` + mark(scope) + `,"tools":[{"name":"scope",` + mark(scope) + `}],"system":[{"type":"text","text":"s"},{"type":"text","text":"t",` + mark(scope) + `}],` +
			`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"scope","input":{"scope":{"cache_control":{"scope":1}}}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x",` + mark(scope) + `}]}]}`
	}
	const scope = `,"scope":"global"`
	for _, test := range []struct {
		provider translate.Adapter
		want     string
	}{{Vertex{}, body("")}, {Provider{}, body(scope)}} {
		if got, warnings := test.provider.Adapt(plugins.Messages, plugintest.Object(t, body(scope)), claude5); string(got) != test.want || warnings != nil {
			t.Errorf("%T sends %s, warnings %q", test.provider, got, warnings)
		}
	}
}
