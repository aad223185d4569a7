package plugintest

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Caddyfile checks that the module of a provider reads each option with one value,
// and refuses an option without a value, with two or set twice, and an unknown one.
func Caddyfile(t *testing.T, module string, options ...string) {
	t.Helper()
	info, err := caddy.GetModule(module)
	if err != nil {
		t.Fatal(err)
	}
	name := info.ID.Name()
	check := func(block string, ok bool) {
		err := info.New().(caddyfile.Unmarshaler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(block))
		if (err == nil) != ok {
			t.Errorf("%q: got error %v", block, err)
		}
	}
	check(name, true)
	check(name+" {\n}", true)
	check(name+" value", false)
	check(name+" {\n\tno_such_option value\n}", false)
	for _, option := range options {
		check(name+" {\n\t"+option+" value\n}", true)
		check(name+" {\n\t"+option+"\n}", false)
		check(name+" {\n\t"+option+" value another\n}", false)
		check(name+" {\n\t"+option+" value\n\t"+option+" value\n}", false)
	}
}
