package llmlog

import (
	"io"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/plugins"
)

// What an answer means depends on whose host it comes from, and not on the name that the site gives the
// provider: DashScope counts what its cache served as a part of the input.
func TestHostsTellTheVendor(t *testing.T) {
	const answer = `{"id":"m","type":"message","role":"assistant","model":"qwen","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",` +
		`"usage":{"input_tokens":3602,"cache_read_input_tokens":3590,"output_tokens":2}}`
	for host, want := range map[string]int64{"dashscope-intl.aliyuncs.com:443": 3602, "relay.example.com:443": 7192} {
		s := serve(t, options{config: object{"provider": "ali"}, handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set("http.reverse_proxy.upstream.hostport", host)
			w.Header().Set("Content-Type", "application/json")
			_, err := io.WriteString(w, answer)
			return err
		})})
		s.do("POST", "/apps/anthropic/v1/messages", `{"model":"qwen","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
		if e := s.record(); e.Usage.Input != plugins.Known(want) || e.Provider != "ali" {
			t.Errorf("%s: input %+v of %s, want %d", host, e.Usage.Input, e.Provider, want)
		}
		stop(t, s)
	}
}
