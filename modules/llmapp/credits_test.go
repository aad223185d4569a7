package llmapp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage/backup"
	"github.com/weirhq/weir/storage/credits"
)

func TestCreditsAreGrantedOnce(t *testing.T) {
	config := func(credits string) string {
		return `{"stores": {"default": ` + sqliteAt(filepath.Join(t.TempDir(), "weir.db")) + `}, "orgs": {"acme": {"credits": "` + credits + `"}, "free": {}}}`
	}
	once := config("50.5")
	for range 2 { // the second finds what the first left
		app, unload, err := load(t, once)
		if err != nil {
			t.Fatal(err)
		}
		if err := app.Start(); err != nil {
			t.Fatal(err)
		}
		store, _ := app.Store("")
		ledger, err := store.Credits()
		if err != nil {
			t.Fatal(err)
		}
		if list, err := ledger.Balances(t.Context()); err != nil || len(list) != 1 || list[0].Org != "acme" || list[0].Granted != 50_500_000_000 {
			t.Errorf("balances %+v", list)
		}
		if !app.Money().HasCredits("acme") || app.Money().HasCredits("free") || app.Money().HasCredits("default") {
			t.Error("the wrong organisations pay")
		}
		unload()
	}
	for _, bad := range []string{"fifty", "-1", "1e3"} {
		if _, unload, err := load(t, config(bad)); err == nil {
			unload()
			t.Errorf("credits %s were accepted", bad)
		}
	}
}

// When the credits have been deleted, the configuration starts, nothing can be
// spent, and the grant is not given again until the operator asks for that.
func TestDeletedCreditsAreNotGrantedAgain(t *testing.T) {
	db := filepath.Join(t.TempDir(), "weir.db")
	config := `{"stores": {"default": ` + sqliteAt(db) + `}, "orgs": {"acme": {"credits": "50"}}}`
	path := filepath.Join(db+".segments", "credits")
	for _, run := range []struct {
		remove    []string
		forget    bool
		available bool
	}{
		{nil, false, true},
		{[]string{path}, false, false},
		{nil, false, false},
		{[]string{path + ".state"}, false, false}, // the journal knows, too
		{nil, true, true},                         // as the error says
	} {
		for _, name := range run.remove {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		if run.forget {
			if _, err := backup.Forget(db, "credits"); err != nil {
				t.Fatal(err)
			}
		}
		app, unload, err := load(t, config)
		if err != nil {
			t.Fatal(err)
		}
		if err := app.Start(); err != nil {
			t.Fatal(err)
		}
		store, _ := app.Store("")
		ledger, err := store.Credits()
		switch {
		case !run.available:
			if !errors.Is(err, credits.ErrUnavailable) || !strings.Contains(err.Error(), path) {
				t.Errorf("after %q is removed the error is %v", run.remove, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			if b, err := ledger.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "acme"}}); err != nil || b.Granted != 50e9 {
				t.Errorf("the balance is %+v, %v", b, err)
			}
		}
		unload()
	}
}
