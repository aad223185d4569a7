package backup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage/control"
	objects "github.com/weirhq/weir/storage/control/embedded"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

// Keys and credits of another store are refused, however far its files reach, until somebody accepts
// them.
func TestFilesOfAnotherStoreAreRefused(t *testing.T) {
	var stores [2]*live
	for i := range stores {
		l := begin(t, t.TempDir())
		var err error
		if l.keys, err = objects.Open(l.path+journalSuffix, l.Journal, zap.NewNop()); err != nil {
			t.Fatal(err)
		}
		for range 1 + 5*i { // the other reaches further
			if _, _, err := (&control.Organisation{Log: l.keys, Name: "acme"}).CreateKey(t.Context(), control.Settings{}); err != nil {
				t.Fatal(err)
			}
			l.call(t, 0)
		}
		if err := errors.Join(l.Flush(t.Context()), l.keys.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		l.end()
		stores[i] = l
	}
	dir, other := stores[0].path+journalSuffix, stores[1].path+journalSuffix
	for _, name := range []string{objects.FileName, embedded.FileName, embedded.FileName + ".state"} {
		text, err := os.ReadFile(filepath.Join(other, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if reports, _, err := Check(t.Context(), stores[0].path, new(sqlite.Storage)); err != nil || len(reports[0].Problems) != 2 {
		t.Errorf("Check says %q, %v", reports[0].Problems, err)
	}
	open := func() (credits, keys error) {
		j, err := journal.Open(t.Context(), sqlite.New(stores[0].path), journal.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close(t.Context())
		ledger, credits := embedded.Open(dir, j, zap.NewNop())
		if credits == nil {
			defer ledger.Close(t.Context())
		}
		log, keys := objects.Open(dir, j, zap.NewNop())
		if keys == nil {
			defer log.Close(t.Context())
		}
		return credits, keys
	}
	credits, keys := open()
	for _, err := range []error{credits, keys} {
		if _, ok := errors.AsType[*journal.RefusedFileError](err); !ok {
			t.Errorf("a file of another store is refused with %v", err)
		}
	}
	for _, name := range []string{embedded.FileName, objects.FileName} {
		if _, err := Forget(stores[0].path, name); err != nil {
			t.Fatal(err)
		}
	}
	if credits, keys := open(); credits != nil || keys != nil {
		t.Errorf("accepted files are refused with %v, %v", credits, keys)
	}
}
