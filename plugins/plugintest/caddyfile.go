package plugintest

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Caddyfile holds a module to what its blocks in a Caddyfile may be: each is
// taken, or is an error.
func Caddyfile(t *testing.T, module string, blocks map[string]bool) {
	t.Helper()
	info, err := caddy.GetModule(module)
	if err != nil {
		t.Fatal(err)
	}
	for block, ok := range blocks {
		err := info.New().(caddyfile.Unmarshaler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(block))
		if (err == nil) != ok {
			t.Errorf("%q: got error %v", block, err)
		}
	}
}
