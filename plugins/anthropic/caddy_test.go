package anthropic

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestCaddyfile(t *testing.T) {
	module, err := caddy.GetModule("llm.providers.anthropic")
	if err != nil {
		t.Fatal(err)
	}
	for input, ok := range map[string]bool{
		"anthropic":                   true,
		"anthropic {\n}":              true,
		"anthropic claude":            false,
		"anthropic {\n\tregion eu\n}": false,
	} {
		err := module.New().(caddyfile.Unmarshaler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
		if (err == nil) != ok {
			t.Errorf("%q: got error %v", input, err)
		}
	}
}
