package storage

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Peers is a Backend to which several journals write, and in which each leaves word for the others. What
// a journal wrote before it left a note, whoever has read the note can query.
type Peers interface {
	// Notes returns the note of each journal that has left one. That of another journal, which has written to
	// the backend, is without text.
	Notes(ctx context.Context) (map[uuid.UUID]Note, error)
	// LeaveNote replaces the note of a journal.
	LeaveNote(ctx context.Context, journal uuid.UUID, text string) error
	// AddErased adds an entry to the list of what a journal has erased. The entries have the numbers 1, 2
	// and so on. The same entry may be added again.
	AddErased(ctx context.Context, journal uuid.UUID, number int64, entry []byte) error
	// ErasedBy returns the entries of a journal's list after so many, up to the first that is missing.
	ErasedBy(ctx context.Context, journal uuid.UUID, after int64) ([][]byte, error)
}

// Note is what a journal tells the other journals of its backend.
type Note struct {
	Text string
	// Age is for how long the note has been there, or less if the backend has heard of the journal since. It goes
	// by the clock of the backend, and is 0 if that does not know when it heard of a journal without a note.
	Age time.Duration
}
