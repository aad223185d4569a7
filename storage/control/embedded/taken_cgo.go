//go:build cgo

package embedded

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// isTaken reports whether an object of that name is there.
func isTaken(err error) bool {
	refused, ok := errors.AsType[sqlite3.Error](err)
	return ok && refused.ExtendedCode == sqlite3.ErrConstraintUnique
}
