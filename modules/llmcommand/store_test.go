package llmcommand

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// A running Weir copies a store to another, tells what it has copied, and names the hour
// in which they differ.
func TestStoreCopy(t *testing.T) {
	admin := freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"listen": %q, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {"llm": {"stores": {
			"default": {"storage": {"backend": "sqlite", "path": "%[2]s/weir.db"}},
			"big": {"storage": {"backend": "sqlite", "path": "%[2]s/big.db"}}
		}}}
	}`, admin, t.TempDir())
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	journals := make(map[string]*journal.Journal)
	for _, store := range stores.InUse() {
		journals[store.Name()] = store.Opened()
	}
	const at = 1_795_219_200_000 // 2026-11-21T00:00:00Z
	appended := func(store string, cost plugins.Nanodollars) {
		t.Helper()
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: at, Cost: plugins.KnownCost(cost), Dialect: plugins.Chat}
		if err := journals[store].Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "application/json", Data: []byte(`{"a":1}`)}})); err != nil {
			t.Fatal(err)
		}
	}
	appended("default", 1_000_000_000)
	appended("default", 2_000_000_000)

	copied := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		stderr, err := run(t.Context(), storeCommand, &out, append([]string{"copy", "--admin", admin}, args...)...)
		if err != nil {
			return out.String() + "Error: " + err.Error()
		}
		return out.String() + stderr
	}
	for _, c := range []struct{ args, want string }{
		{"", "--from: name a store"},
		{"--from default --to bigger", "no store is named bigger (have [big default])"},
		{"--from default --to default", "want the names of two stores"},
		{"--from default --to big --since yesterday", "no age such as 90m"},
		{"--from default --to big --since 2026-11-22", "copied 0 of 0 records"},
		{"--from default --to big --verify", "copied 2 of 2 records of 1 organisations, 0 annotations, 0 conversations, 14 B of bodies"},
		{"--from default --to big --verify", "copied 0 of 2 records of 1 organisations, 0 annotations, 0 conversations, 0 B of bodies"},
		{"--from big --to default --verify", "compared 1 hours: 2 records of $3.000000 and 0 tokens"},
		{"--from big --to default --verify --format json", `"different_hours":[]`},
	} {
		if got := copied(strings.Fields(c.args)...); !strings.Contains(got, c.want) || strings.Contains(got, "differ") && !strings.Contains(c.args, "json") {
			t.Errorf("copy %s shows\n%s\nwant %q", c.args, got, c.want)
		}
	}
	appended("big", 4_000_000_000)
	got := copied("--from", "default", "--to", "big", "--verify")
	for _, want := range []string{"default 2026-11-21T00:00:00.000Z differs: 2 records of $3.000000", "3 records of $7.000000", "1 are more", "Error: the stores differ"} {
		if !strings.Contains(got, want) {
			t.Errorf("copy shows\n%s\nwant %q", got, want)
		}
	}
}
