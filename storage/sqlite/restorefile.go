package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/weirhq/weir/internal/libsqlite"
)

// RestoreFile implements storage.FileRestorer. The connections still have the file that was deleted.
func (b *Backend) RestoreFile(ctx context.Context) error {
	fresh := b.path + ".new"
	err := b.withWriter(func(w *writer) error {
		if err := remove(fresh); err != nil {
			return err
		}
		if err := w.copyTo(ctx, fresh); err != nil {
			return errors.Join(err, remove(fresh))
		}
		return nil
	})
	if err == nil {
		err = b.Close()
	}
	if err == nil || errors.Is(err, errClosed) { // by a try before
		err = b.replaceFile(fresh)
	}
	if err == nil {
		_, err = b.Open(ctx, b.host)
	}
	if err != nil {
		return fmt.Errorf("writing %s again: %w", b.path, explain(err))
	}
	return nil
}

// replaceFile gives the database's name to another file, if it is there. SQLite would take the log of the file
// before for that of the new one.
func (b *Backend) replaceFile(fresh string) error {
	if _, err := os.Stat(fresh); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(remove(b.path+"-wal"), remove(b.path+"-shm")); err != nil {
		return err
	}
	return os.Rename(fresh, b.path)
}

// copyTo writes a copy of the database that survives a power cut.
func (w *writer) copyTo(ctx context.Context, path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	return errors.Join(libsqlite.Copy(ctx, w.c.Conn, path), f.Sync(), f.Close())
}

// remove removes a file that may not be there.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
