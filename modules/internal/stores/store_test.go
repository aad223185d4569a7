package stores

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

const keepsAll, keepsNothing = `, "retention": 0`, `, "retention": 1, "max_journal": 1, "otlp": {"endpoint": "http://127.0.0.1:1"}`

// TestSettingsThatAreNotInForce holds that a configuration deletes and changes
// nothing that was never started, or only in part.
func TestSettingsThatAreNotInForce(t *testing.T) {
	db := filepath.Join(t.TempDir(), "weir.db")
	_, unloadInvalid := configured(t, db, keepsNothing) // as when another app does not load
	unloadInvalid()

	old := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: storage.Millis(time.Now().Add(-time.Hour))}
	wantKept := func(s *Store) {
		t.Helper()
		j, err := s.Journal() // which a request can open before Start does
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		if err := j.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			_, err := j.Backend().Request(t.Context(), old.Key())
			if errors.Is(err, storage.ErrUnavailable) && time.Now().Before(limit) { // the journal opens it by and by
				continue
			}
			if err != nil {
				t.Errorf("an old record is gone: %v", err)
			}
			break
		}
		if !j.Fits(1000) || s.exported.Load() != nil {
			t.Error("other settings are in force than those of the configuration that runs")
		}
	}
	first, unloadFirst := configured(t, db, keepsAll)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	store := first.Store()
	if err := store.Opened().Append(old, nil); err != nil {
		t.Fatal(err)
	}
	wantKept(store)

	partial, unloadPartial := configured(t, db, keepsNothing)
	if err := partial.Start(); err != nil {
		t.Fatal(err)
	}
	wantKept(store)
	unloadPartial() // because another app did not start
	wantKept(store)

	next, unloadNext := configured(t, db, `, "max_journal": 1`)
	if err := next.Start(); err != nil {
		t.Fatal(err)
	}
	unloadFirst()
	if store.Opened().Fits(1000) {
		t.Error("the settings of the next configuration are not in force")
	}
	unloadNext()

	_, unloadLast := configured(t, db, keepsAll)
	defer unloadLast()
	wantKept(store)
}

// TestLateClose holds that a store stays open for who came while the last
// reference before was given up.
func TestLateClose(t *testing.T) {
	config, unload := configured(t, filepath.Join(t.TempDir(), "weir.db"), keepsAll)
	defer unload()
	if err := config.Start(); err != nil {
		t.Fatal(err)
	}
	store := config.Store()
	opened := store.Opened()
	if err := store.Destruct(); err != nil {
		t.Fatal(err)
	}
	if store.Opened() != opened {
		t.Error("the store was closed though a configuration refers to it")
	}
}
