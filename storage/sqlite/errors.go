package sqlite

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/storage"
)

// explain marks errors of SQLite that a person can do something about, and says what.
func explain(err error) error {
	switch libsqlite.Code(err) {
	case libsqlite.NotADB:
		return fmt.Errorf("%w: the path names some other file, or the database is damaged: %w", err, storage.ErrRejected)
	case libsqlite.Corrupt:
		return fmt.Errorf("%w: %w", err, errDamaged)
	case libsqlite.Busy, libsqlite.Locked, libsqlite.Protocol:
		return fmt.Errorf("%w: %w", err, errLocked)
	}
	return err
}

// rejected marks an error as storage.ErrRejected if SQLite can never store what it was given, such
// as a change of a damaged record.
func rejected(err error) error {
	switch libsqlite.Code(err) {
	case libsqlite.Constraint, libsqlite.TooBig, libsqlite.Mismatch:
		return fmt.Errorf("%w: %w", storage.ErrRejected, err)
	}
	if errors.Is(err, errDamaged) {
		return fmt.Errorf("%w: %w", storage.ErrRejected, err)
	}
	return err
}
