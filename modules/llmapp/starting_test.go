package llmapp

import (
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/modules/internal/stores"
)

// A store into which a call came before its configuration has started is not ready: its
// organisations have no credits yet.
func TestAStoreIsReadyWhenItHasStarted(t *testing.T) {
	app, unload, err := load(t, `{"stores": {"default": `+sqliteAt(filepath.Join(t.TempDir(), "a.db"))+`}, "orgs": {"acme": {"credits": "1"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	defer unload()
	store, err := app.Store(stores.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Journal(); err != nil {
		t.Fatal(err)
	}
	if stores.Ready(stores.CheckHealth(t.Context())) == nil {
		t.Error("ready before the start")
	}
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	if err := stores.Ready(stores.CheckHealth(t.Context())); err != nil {
		t.Errorf("not ready after the start: %v", err)
	}
}
