package embedded

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/journal"
)

// A flipped bit in an object is not read as another object: the file is refused, and the check tells.
func TestAFlippedObjectIsRefused(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := open(t, dir)
	k, _, err := acme(l).CreateKey(ctx, control.Settings{Name: "the name of the key"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := Check(dir, journal.Reach{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("the name"), []byte("thd name")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(dir, journal.Reach{}); !errors.Is(err, errChecksum) {
		t.Errorf("the check says %v", err)
	}
	if l, err := Open(dir, nil, zap.NewNop()); err == nil {
		t.Errorf("the file opens, and has %s", k.ID)
		_ = l.Close(ctx)
	} else if _, ok := errors.AsType[*journal.RefusedFileError](err); !ok {
		t.Errorf("the file is refused with %v", err)
	}
}

// Whoever changes an object by hand need not mind its sum, as an earlier version of Weir does not.
func TestAnEditedObjectHasNoSum(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := open(t, dir)
	k, _, err := acme(l).CreateKey(ctx, control.Settings{Name: "before"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.db.Exec("UPDATE objects SET value = replace(value, 'before', 'after')"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if k, err := control.Get[control.Key](ctx, acme(l), k.ID); err != nil || k.Object.Name != "after" {
			t.Fatal(k, err)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		l = open(t, dir)
	}
}
