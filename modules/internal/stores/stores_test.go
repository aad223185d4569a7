package stores

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	_ "github.com/weirhq/weir/storage/sqlite"
)

// configured provisions the default store with an SQLite database and further settings, which
// begin with a comma. unload gives the reference up.
func configured(t *testing.T, db, settings string) (c *Config, unload func()) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	c = new(Config)
	if err := json.Unmarshal(fmt.Appendf(nil, `{"storage": {"backend": "sqlite", "path": %q}%s}`, db, settings), c); err != nil {
		t.Fatal(err)
	}
	if err := c.Provision(ctx, DefaultName, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	return c, c.Release
}
