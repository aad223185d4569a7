package storage

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrNotFound: there is no such record in this organisation.
var ErrNotFound = errors.New("no such record")

// Backend keeps records and answers queries about them. The host owns queueing,
// retries, pooling and life cycle: it opens a backend once, calls Write, Apply
// and Prune from one goroutine at a time, and queries from many, also during a
// write. Methods honour their context and return its error when it ends.
type Backend interface {
	// Open opens the store, or creates and migrates it. contents reads the
	// bodies of records by their ContentRef; it stays valid until Close.
	// Open returns the position of the last batch that was written, so that the
	// host can go on from there. After Close it may be called again.
	Open(ctx context.Context, contents Contents) (Position, error)

	// Write makes a batch durable, all or nothing. It is idempotent: a record
	// whose ID is known replaces the earlier version but keeps the late facts
	// which that one gathered. Scores and Feedback of a record given here are not
	// read: they come as facts.
	Write(ctx context.Context, batch *Batch) error

	// Requests answers one page of records without content.
	Requests(ctx context.Context, q *RequestQuery) ([]*Record, error)
	// Request answers one record, or ErrNotFound.
	Request(ctx context.Context, org string, id uuid.UUID) (*Record, error)
	// Exists tells whether any organisation has a record of that id.
	Exists(ctx context.Context, id uuid.UUID) (bool, error)

	Analytics
	// SessionTag answers the tag of a session, "" if it has none.
	SessionTag(ctx context.Context, org, sessionID string) (string, error)

	// Ledger answers what the batches told of all exchanges.
	Ledger(ctx context.Context) (Ledger, error)

	// Prune deletes the records created before the given time, a bounded
	// number at a time, and says whether there are more.
	Prune(ctx context.Context, before Timestamp) (more bool, err error)

	// Close closes the store. Queries in flight fail.
	Close() error
}

// Position is a place in the journal: everything before it has been written.
type Position struct {
	Segment uint64
	Ordinal uint32
}

// Batch is what the journal hands to a backend at a time, in its order.
type Batch struct {
	// Records are new or amended records; an ID stands at most once.
	Records []*Record
	// Facts apply to records of this batch or earlier ones.
	Annotations []*Annotation
	// Losses add to the ledger, once however often the batch is written.
	Losses []Loss
	// Recorded and Number are those of the Ledger as it is with the batch.
	Recorded int64
	Number   uint64
	// End is the position after the batch; it becomes durable with it.
	End Position
}

// Fact is something learned about a record or session after it ended. Applying
// one twice changes nothing. Facts about unknown records are dropped.
type Annotation struct {
	Org string
	// RequestID names the record, SessionID the session (for Tag alone).
	RequestID uuid.UUID
	SessionID string
	At        Timestamp

	// Scores are merged into the record's, by name.
	Scores map[string]float64
	// Feedback replaces the record's.
	Feedback *Feedback
	// Property is set on the record.
	Property *Property
	// Tag replaces the session's tag.
	Tag *string
}

// Property is a named label of a record.
type Property struct{ Name, Value string }

// Contents reads content by reference.
type Contents interface {
	// Content returns what a record carries besides its metrics, in stored
	// form: bodies without Content-Encoding, a streamed answer assembled into
	// one object. It returns nil without error when the content has been
	// deleted or is damaged, or ref is zero.
	Content(ctx context.Context, ref ContentRef) (*Content, error)
	// Reader returns a reader of those parts of the content of many records.
	Reader(parts ContentPart) ContentReader
}

// ContentReader reads the content of one record after the other. It is fast when
// their references ascend or descend, as the times of the records do. It is not
// safe for concurrent use, and must be closed.
type ContentReader interface {
	// Content is as that of Contents, but what it returns may lack what is not of
	// the reader's parts, and holds only until the next call.
	Content(ctx context.Context, ref ContentRef) (*Content, error)
	// Close gives up what the reader holds.
	Close()
}

// RequestQuery asks for records.
type RequestQuery struct {
	Org    string
	Filter Filter
	// Cached, Scored and Experiment choose records that are so, or are not;
	// nil chooses all.
	Cached, Scored, Experiment *bool
	// Sort orders the answer; ties break by ID in the direction of the first
	// key. No key means newest first.
	Sort []Sort
	// Random orders by chance, whatever Sort says.
	Random bool
	Offset int
	Limit  int
}

// DefaultTimeout bounds a query that nobody else bounds.
const DefaultTimeout = 10 * time.Second
