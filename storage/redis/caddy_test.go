package redis

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/plugins"
)

func TestCaddyfile(t *testing.T) {
	t.Setenv("WEIR_TEST_REDIS", "redis://127.0.0.1:6379/1")
	for text, want := range map[string]struct {
		allowance plugins.Nanodollars
		ok        bool
	}{
		"redis redis://127.0.0.1:6379/0":                               {0, true},
		"redis {env.WEIR_TEST_REDIS} {\nallowance 5.5\n}":              {5_500_000_000, true},
		"redis rediss://u:p@redis:6380/2 {\nlease 1m\ntimeout 20ms\n}": {0, true},
		"redis":                                        {},
		"redis a b":                                    {},
		"redis http://127.0.0.1":                       {},
		"redis {env.WEIR_TEST_UNSET}":                  {},
		"redis redis://h {\nallowance five\n}":         {},
		"redis redis://h {\nlife 1m\n}":                {},
		"redis redis://h {\nlease soon\n}":             {},
		"redis redis://h {\ntimeout 1s\ntimeout 2s\n}": {},
		"redis redis://h {\nname a\nname b\n}":         {},
	} {
		s := new(Shared)
		err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if err == nil {
			ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
			err = s.Provision(ctx)
			cancel()
		}
		if (err == nil) != want.ok || s.allowance != want.allowance {
			t.Errorf("%s: %v, allowance %s", text, err, s.allowance)
		}
	}
}
