package llmapp

import (
	"path/filepath"
	"testing"
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
		if list := ledger.Balances(); len(list) != 1 || list[0].Org != "acme" || list[0].Granted != 50_500_000_000 {
			t.Errorf("balances %+v", list)
		}
		if !app.HasCredits("acme") || app.HasCredits("free") || app.HasCredits("default") {
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
