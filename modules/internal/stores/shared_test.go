package stores

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage/control"
	controlfile "github.com/weirhq/weir/storage/control/embedded"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/shared"
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

func (s *sharedFile) Open(_, _ string, logger *zap.Logger) (shared.State, error) {
	ledger, err := embedded.Open(s.Path, nil, logger)
	if err != nil {
		return nil, err
	}
	log, err := controlfile.Open(s.Path, nil, logger)
	return &sharedState{ledger: ledger, control: log}, err
}

type sharedState struct {
	ledger   credits.Ledger
	control  control.Log
	memory   shared.LocalMemory
	breakers shared.LocalBreakers
}

func (s *sharedState) Credits() credits.Ledger   { return s.ledger }
func (s *sharedState) Memory() shared.Memory     { return &s.memory }
func (s *sharedState) Breakers() shared.Breakers { return &s.breakers }
func (s *sharedState) Affinity() shared.Affinity { return nil }
func (s *sharedState) Runs() shared.Runs         { return nil }
func (s *sharedState) Control() control.Log      { return s.control }
func (s *sharedState) Close(ctx context.Context) error {
	return errors.Join(s.control.Close(ctx), s.ledger.Close(ctx))
}

// What is shared is where the store says. After a reload that says elsewhere, calls in
// flight are charged to the credits that they began with, and others find what is there.
func TestSharedState(t *testing.T) {
	db := filepath.Join(t.TempDir(), "weir.db")
	first, second := t.TempDir(), t.TempDir()
	begin := func(dir string) (*Store, func(), credits.Ledger) {
		config, unload := configured(t, db, `, "shared": {"module": "file", "path": "`+dir+`"}`)
		if err := config.Start(); err != nil {
			t.Fatal(err)
		}
		ledger, err := config.Store().Credits()
		if err == nil {
			err = ledger.Seed(t.Context(), "acme", 50_000_000_000)
		}
		if err != nil {
			t.Fatal(err)
		}
		return config.Store(), unload, ledger
	}
	oldStore, unloadOld, old := begin(first)
	memory, breakers := oldStore.Memory(), oldStore.Breakers()
	if _, ok := memory.(*shared.LocalMemory); !ok || memory == shared.Memory(&oldStore.shared.memory) || breakers == shared.Breakers(&oldStore.shared.breakers) {
		t.Error("the memory and the breakers are not those that are shared")
	}
	r := credits.Reservation{Org: "acme", Amount: 10, Holds: []credits.Hold{{Account: credits.Account{Org: "acme"}}}}
	if err := old.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	_, unload, _ := begin(second)
	defer unload()
	unloadOld()
	ledger, err := oldStore.Credits()
	if err != nil || ledger == old || oldStore.Memory() == memory || oldStore.Breakers() == breakers {
		t.Fatalf("after the reload something is the same, %v", err)
	}
	if err := ledger.Seed(t.Context(), "acme", 50_000_000_000); err != nil {
		t.Fatal(err)
	}
	if err := old.Charge(t.Context(), r, 7); err != nil {
		t.Errorf("a call in flight: %v", err)
	}
	for l, spent := range map[credits.Ledger]int64{old: 7, ledger: 0} {
		if b, err := l.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "acme"}}); err != nil || int64(b.Spent) != spent || b.Granted != 50_000_000_000 {
			t.Errorf("%+v, %v; want %d spent", b, err, spent)
		}
	}
}

// A reload that shares credits with other nodes, and one that no longer does, leave the file beside the
// journal to one ledger: calls in flight still write to it.
func TestTheFileOfCreditsHasOneLedger(t *testing.T) {
	db, ctx := filepath.Join(t.TempDir(), "weir.db"), t.Context()
	begin := func(settings string) (*Store, func(), credits.Ledger) {
		config, unload := configured(t, db, settings)
		if err := config.Start(); err != nil {
			t.Fatal(err)
		}
		ledger, err := config.Store().Credits()
		if err == nil {
			err = ledger.Seed(ctx, "acme", 100)
		}
		if err != nil {
			t.Fatal(err)
		}
		return config.Store(), unload, ledger
	}
	account := credits.Hold{Account: credits.Account{Org: "acme"}}
	store, unload, old := begin("")
	call := credits.Reservation{Org: "acme", Amount: 10, Holds: []credits.Hold{account}}
	if err := old.Reserve(ctx, call); err != nil {
		t.Fatal(err)
	}
	for _, settings := range []string{`, "shared": {"module": "file", "path": "` + t.TempDir() + `"}`, ""} {
		_, next, _ := begin(settings)
		unload()
		unload = next
	}
	defer unload()
	ledger, err := store.Credits()
	if err == nil {
		err = errors.Join(ledger.Grant(ctx, "acme", 50), old.Charge(ctx, call, 7))
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := ledger.Balance(ctx, account); err != nil || b.Granted != 150 || b.Spent != 7 {
		t.Errorf("after a grant and the charge of a call in flight the balance is %+v, %v", b, err)
	}
}
