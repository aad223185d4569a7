package storage

import (
	"context"

	"github.com/google/uuid"
)

// Snapshotter is a Backend of local files, which can be copied while it is open. One
// that is not is backed up by its own means.
type Snapshotter interface {
	// Snapshot holds the store as it is now. The host calls it while it writes nothing.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is a store as it was at one moment. It must be closed.
type Snapshot interface {
	// CopyTo writes the store to a directory, which has no file of it yet. Batches may be
	// written to the store meanwhile.
	CopyTo(ctx context.Context, dir string) error
	Close() error
}

// Checker is the module of a backend that keeps a store in a file.
type Checker interface {
	// CheckFile reads all of a file that no process uses, hands each record to match, with
	// its ID, CreatedAt and Content, and returns the position of a journal. The error says
	// what is wrong with the file; it is an fs.ErrNotExist where there is none.
	CheckFile(ctx context.Context, path string, journal uuid.UUID, match func(*Record)) (Position, error)
}
