package gemini

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestCaddyfile(t *testing.T) {
	for input, ok := range map[string]bool{
		"gemini":                   true,
		"gemini {\n}":              true,
		"gemini flash":             false,
		"gemini {\n\tregion eu\n}": false,
	} {
		module, err := caddy.GetModule("llm.providers.gemini")
		if err != nil {
			t.Fatal(err)
		}
		err = module.New().(caddyfile.Unmarshaler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
		if (err == nil) != ok {
			t.Errorf("%q: got error %v", input, err)
		}
	}
}
