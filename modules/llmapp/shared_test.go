package llmapp

import (
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
)

func init() { caddy.RegisterModule(new(sharedFile)) }

// sharedFile keeps the credits in a folder of its own.
type sharedFile struct {
	Path string `json:"path"`
}

func (*sharedFile) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.shared.file", New: func() caddy.Module { return new(sharedFile) }}
}

func (s *sharedFile) Key() string { return s.Path }

func (s *sharedFile) Ledger(_, _ string, logger *zap.Logger) (credits.Ledger, error) {
	return embedded.Open(s.Path, logger)
}

// The credits are where the store shares them. After a reload that shares others, calls
// in flight are charged to those that they began with.
func TestSharedCredits(t *testing.T) {
	db := sqliteAt(filepath.Join(t.TempDir(), "weir.db"))
	config := func(shared string) string {
		return `{"stores": {"default": ` + db[:len(db)-1] + `, "shared": {"module": "file", "path": "` + shared + `"}}}, "orgs": {"acme": {"credits": "50"}}}`
	}
	first, second := t.TempDir(), t.TempDir()
	begin := func(text string) (*App, func(), credits.Ledger) {
		app, unload, err := load(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := app.Start(); err != nil {
			t.Fatal(err)
		}
		store, err := app.Store("")
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := store.Credits()
		if err != nil {
			t.Fatal(err)
		}
		return app, unload, ledger
	}
	_, unloadOld, old := begin(config(first))
	r := credits.Reservation{Org: "acme", Amount: 10}
	if err := old.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	app, unload, _ := begin(config(second))
	defer unload()
	unloadOld()
	store, err := app.Store("")
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := store.Credits()
	if err != nil || ledger == old {
		t.Fatalf("after the reload the ledger is the same, %v", err)
	}
	if err := app.SeedCredits(t.Context(), ledger, "acme"); err != nil {
		t.Fatal(err)
	}
	if err := old.Charge(t.Context(), r, 7); err != nil {
		t.Errorf("a call in flight: %v", err)
	}
	for l, spent := range map[credits.Ledger]int64{old: 7, ledger: 0} {
		if b, err := l.Balance(t.Context(), "acme"); err != nil || int64(b.Spent) != spent || b.Granted != 50_000_000_000 {
			t.Errorf("%+v, %v; want %d spent", b, err, spent)
		}
	}
}
