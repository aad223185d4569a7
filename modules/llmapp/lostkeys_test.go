package llmapp

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"
)

// A start without the file of keys and budgets refuses what needs it, and makes no new file.
func TestLostKeysAreUnavailable(t *testing.T) {
	db := filepath.Join(t.TempDir(), "weir.db")
	config := `{"stores": {"default": ` + sqliteAt(db) + `}, "keys": [{"secret": "configured"}]}`
	start := func() (*App, func()) {
		t.Helper()
		app, unload, err := load(t, config)
		if err == nil {
			err = app.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return app, unload
	}
	app, unload := start()
	store, _ := app.Store("")
	log, err := store.Control()
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := (&control.Organisation{Log: log, Name: stores.DefaultName}).CreateKey(t.Context(), control.Settings{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	unload()
	path := filepath.Join(db+".segments", embedded.FileName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		app, unload = start()
		if key, err := app.Authenticator().Authenticate(t.Context(), secret); !errors.Is(err, access.ErrKeysUnavailable) {
			t.Errorf("the key opens %+v, %v", key, err)
		}
		if _, err := app.Authenticator().Authenticate(t.Context(), "configured"); err != nil {
			t.Error(err)
		}
		if budgets, err := app.Money().Of(stores.DefaultName); err == nil {
			t.Errorf("the budgets are %v", budgets)
		}
		unload()
		if _, err := os.Stat(path); err == nil {
			t.Error("a new file was made")
		}
	}
}
