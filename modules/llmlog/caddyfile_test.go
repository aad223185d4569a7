package llmlog

import (
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestUnmarshalCaddyfile(t *testing.T) {
	for _, c := range []struct{ input, want string }{
		{`llm_log`, `{}`},
		{`llm_log openai`, `{"provider":"openai"}`},
		{`llm_log anthropic {
			store eu
			org acme
			require_key
			max_body 2MiB
			omit request response
			stream_usage on
			errors pass
			country_header CF-IPCountry
		}`, `{"provider":"anthropic","store":"eu","org":"acme","require_key":true,"max_body":2097152,"omit":["request","response"],"stream_usage":true,"errors":"pass","country_header":"CF-IPCountry"}`},
		{`llm_log {
			omit request
			omit response
			stream_usage off
		}`, `{"omit":["request","response"]}`},
	} {
		var h Handler
		if err := h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(c.input)); err != nil {
			t.Errorf("%s: %v", c.input, err)
		}
		if got, _ := json.Marshal(&h); string(got) != c.want {
			t.Errorf("%s: %s", c.input, got)
		}
	}
}

func FuzzUnmarshalCaddyfile(f *testing.F) {
	f.Add("llm_log openai {\n omit request\n max_body 8MiB\n}")
	f.Fuzz(func(_ *testing.T, input string) {
		var h Handler
		_ = h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
	})
}
