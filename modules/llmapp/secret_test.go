package llmapp

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSecret(t *testing.T) {
	t.Setenv("WEIR_TEST_SECRET", "configured")
	db := filepath.Join(t.TempDir(), "weir.db")
	secret := func(config string) string {
		app, unload, err := load(t, config)
		if err != nil {
			t.Fatal(err)
		}
		defer unload()
		store, err := app.Store("")
		if err != nil {
			t.Fatal(err)
		}
		s, err := app.Secret(store)
		if err != nil {
			t.Fatal(err)
		}
		return string(s)
	}
	stores := `"stores": {"default": ` + sqliteAt(db) + `}`
	if got := secret(`{` + stores + `, "secret": "{env.WEIR_TEST_SECRET}"}`); got != "configured" {
		t.Errorf("the secret is %q", got)
	}
	first, second := secret(`{`+stores+`}`), secret(`{`+stores+`}`)
	if len(first) < 20 || first != second {
		t.Errorf("secrets %q and %q, want one that stays", first, second)
	}
	info, err := os.Stat(db + ".segments/secret")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v %v", info, err)
	}
}
