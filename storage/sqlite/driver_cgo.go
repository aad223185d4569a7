//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"

	"github.com/weirhq/weir/storage"
)

// errDriver is nil where the driver works.
var errDriver error

func dial(name string) (handle, error) {
	opened, err := new(sqlite3.SQLiteDriver).Open(name)
	if err != nil {
		return nil, err
	}
	c := opened.(*sqlite3.SQLiteConn)
	if err := c.RegisterFunc("name_hash", nameHash, true); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// stepPages is the number of pages that are copied at a time, which takes a few milliseconds.
const stepPages = 1000

// copyPages overwrites the database of to with a copy of the database as from sees it.
func copyPages(ctx context.Context, to, from *conn) error {
	b, err := to.handle.(*sqlite3.SQLiteConn).Backup("main", from.handle.(*sqlite3.SQLiteConn), "main")
	if err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		if done, err = b.Step(stepPages); err == nil {
			err = ctx.Err()
		}
	}
	return errors.Join(err, b.Finish())
}

// explain marks errors of SQLite that a person can do something about, and says what.
func explain(err error) error {
	var failed sqlite3.Error
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Code {
	case sqlite3.ErrNotADB:
		return fmt.Errorf("%w: the path names some other file, or the database is damaged: %w", err, storage.ErrRejected)
	case sqlite3.ErrCorrupt:
		return fmt.Errorf("%w: %w", err, errDamaged)
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrProtocol:
		return fmt.Errorf("%w: %w", err, errLocked)
	}
	return err
}

// rejected marks an error as storage.ErrRejected if SQLite can never store what it was given, such
// as a change of a damaged record.
func rejected(err error) error {
	var failed sqlite3.Error
	if !errors.As(err, &failed) {
		if errors.Is(err, errDamaged) {
			return fmt.Errorf("%w: %w", storage.ErrRejected, err)
		}
		return err
	}
	switch failed.Code {
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch:
		return fmt.Errorf("%w: %w", storage.ErrRejected, err)
	}
	return err
}
