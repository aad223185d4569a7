package storage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// ErrNotFound: there is no such record in this organisation.
var ErrNotFound = errors.New("no such record")

// Errors that a backend distinguishes, wrapped in its own. Any other error of Write
// or Open is taken to pass: the host tries again.
var (
	// ErrRejected: the batch can never be written as it is. The host writes each entry
	// of the batch by itself, and counts what is still rejected as lost. Open returns
	// ErrRejected when the store can never be used, such as a store of a later version.
	ErrRejected = errors.New("rejected by the storage backend")
	// ErrTooLarge: the batch has more than the store takes at once. The host writes its
	// halves; Limits should say from then on what the store takes. A batch of a single
	// entry counts as rejected.
	ErrTooLarge = errors.New("the batch is too large for the storage backend")
	// ErrUnavailable: the store is not open, or out of reach.
	ErrUnavailable = errors.New("the storage backend is not available")
)

// Backend keeps records and answers queries about them. The host, which is a
// journal, owns queueing, retries, timeouts and life cycle. It calls Open, Write,
// Prune and Close from one goroutine at a time, and queries from many, also during
// a write and before Open: they return ErrUnavailable then. Several journals may
// write to one store. Methods honour their context and return its error when it
// ends.
type Backend interface {
	// Open opens the store, or creates and migrates it, and returns the position
	// from which the journal shall go on: the end of the journal's last batch that the
	// store is sure to have. A backend that keeps no positions, because a batch that the
	// backend has taken is safe, returns h.Position. After an error, and after Close, Open
	// may be called again.
	Open(ctx context.Context, h *Host) (Position, error)

	// Limits bounds the batches. It may be called before Open.
	Limits() Limits

	// Write makes a batch durable. The batches of a journal come in order, each at
	// least once: after an error, or a crash of the host, a batch comes again with
	// the same ID, records and annotations. Records of exchanges that ended without a
	// last version come in batches of their own; after a crash, they may come again
	// in another batch. Records are known by organisation and ID. A record that is
	// known replaces the earlier version, but keeps its annotations. Scores and
	// Feedback of a record are not read: they come as annotations.
	Write(ctx context.Context, b *Batch) error

	// Requests returns one page of records without content.
	Requests(ctx context.Context, q *RequestQuery) ([]*Record, error)
	// Request returns one record, or ErrNotFound.
	Request(ctx context.Context, key RecordKey) (*Record, error)

	Grouper
	Conversations
	// SessionTag returns the tag of a session, "" if it has none.
	SessionTag(ctx context.Context, org, sessionID string) (string, error)
	// Views returns the saved views of an organisation, by name.
	Views(ctx context.Context, org string) ([]View, error)

	// Organisations returns the organisations in the store, sorted. The answer may name
	// organisations without records, because their last record was deleted.
	Organisations(ctx context.Context) ([]string, error)
	// SessionTags returns the tags of all sessions of an organisation, as they were set.
	SessionTags(ctx context.Context, org string) ([]*Annotation, error)

	// Prune deletes the records created before the given time, and the tags of
	// sessions that were set before that time, a bounded number at a time, and says
	// whether there are more. It may keep what is younger than the oldest by less
	// than its granularity.
	Prune(ctx context.Context, before Timestamp) (more bool, err error)

	// Close closes the store. Queries in flight fail.
	Close() error
}

// ContentKeeper is a Backend that keeps content itself, so that other nodes than the
// node that recorded the content can read it. It reads the content of a batch from its
// Host.
type ContentKeeper interface {
	Contents
	// PruneContent is Prune for content alone.
	PruneContent(ctx context.Context, before Timestamp) (more bool, err error)
}

// Eraser is a Backend whose files keep what was deleted for a while.
type Eraser interface {
	// Erase removes from the files what was deleted, as far as that needs no rewriting of all
	// that is left, and makes the files smaller. The host calls it each hour, in steps as
	// Prune; a step that fails is tried again.
	Erase(ctx context.Context) (more bool, err error)
}

// Repricing is a record as it was read, and the same with other costs.
type Repricing struct{ Before, After *Record }

// Repricer is a Backend to which several journals write. A version that one of them appends may
// count as older than one of another journal, so that costs are changed in place.
type Repricer interface {
	// Reprice replaces records of an organisation, with their keys, by those with other costs, if
	// they still are as they were read, apart from annotations. It returns the changes that it has
	// made. Batches may be written and records erased meanwhile.
	Reprice(ctx context.Context, org string, changes []Repricing) ([]Repricing, error)
}

// Marker is a Backend that marks its store, so that Open notices what the store has lost since.
type Marker interface {
	// Mark marks the store, and sets Host.Database. The host calls it after each Open, once what
	// Open found survives a power cut: a mark says that nothing is lost that the host does not know.
	Mark(ctx context.Context, h *Host) error
}

// Verifier is a Backend that can look for damage in its files.
type Verifier interface {
	// Verify reads all of the store while it is open, and returns what is wrong with it, as
	// ends of sentences that begin with the store's name.
	Verify(ctx context.Context) (problems []string, err error)
}

// Polled are the dialects of calls for which clients ask later, by the id that the provider
// gave: responses, batches, and what runs in the background.
var Polled = []plugins.Dialect{plugins.Responses, plugins.Batches, plugins.Runs, plugins.Interactions}

// ResponseFinder is a Backend that finds calls by the ids that providers give them.
type ResponseFinder interface {
	// Response returns the newest record of the dialects in Polled with a ResponseID, or
	// ErrNotFound.
	Response(ctx context.Context, org, responseID string) (*Record, error)
}

// SpanFinder is a Backend that finds the records of calls that were reported, many at once.
type SpanFinder interface {
	// Spans returns the keys of the records that have one of the span keys and that began
	// about its time, by the span key.
	Spans(ctx context.Context, org string, keys []SpanKey) (map[string][]RecordKey, error)
}

// SpanKey is one of Record.SpanKeys, and when a record that has it can have begun. A backend
// may look further.
type SpanKey struct {
	Key         string
	From, Until Timestamp
}

// Host describes the journal that opens a backend.
type Host struct {
	// Journal is the identity of the journal, for ever.
	Journal uuid.UUID
	// Position is the end of the last batch that a backend has taken.
	Position Position
	// Database is what Open or Mark has set it to before, at the last start, "" if neither has. A backend
	// that keeps no positions sets it to what distinguishes its database from one that was created
	// anew, and returns the zero Position for another database.
	Database string
	// Contents reads the content of the records that the journal has; it stays
	// valid until Close.
	Contents Contents
	// Damaged is called with what a query or a write has found wrong with the store, as the
	// end of a sentence that begins with the store's name; nil if nobody wants to know.
	Damaged func(found string)
}

// Limits bound the batches that a backend gets. The host chooses a limit that is 0.
type Limits struct {
	// Entries bounds the records and annotations of a batch.
	Entries int
	// Bytes bounds the size of a batch in the journal, without content. A single entry
	// may exceed the bound.
	Bytes int
	// Delay is the least time between two batches that are not full.
	Delay time.Duration
}

// Position is a place in the journal: everything before it has been written.
type Position struct {
	Segment uint64
	Ordinal uint32
}

// Compare orders the positions of a journal.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.Ordinal, q.Ordinal))
}

// Before reports whether p comes before q. Both are positions of the same journal.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// Batch holds the entries that the journal hands to a backend at once, in its order.
type Batch struct {
	// Journal is the identity of the journal.
	Journal uuid.UUID
	// ID identifies a batch of a journal. It does not change when the batch is
	// written again.
	ID string
	// Records are new or amended records. No two of them have the same key.
	Records []*Record
	// Annotations apply to records of this batch or earlier ones.
	Annotations []*Annotation
	// End is the position after the batch.
	End Position
}

// Annotation is something learned about a record or session after it ended.
// Applying an annotation twice changes nothing. An annotation about a record that is not
// known yet may be dropped, or become visible when the record is known.
type Annotation struct {
	masked

	Org string
	// RequestID names the record, SessionID the session (for Tag alone).
	RequestID uuid.UUID
	SessionID string
	At        Timestamp

	// Scores are merged into the record's, by name.
	Scores map[string]float64
	// Removed names scores that are removed from the record; FeedbackScore stands for
	// the record's feedback.
	Removed []string
	// Feedback replaces the record's.
	Feedback *Feedback
	// Property is set on the record.
	Property *Property
	// Tag replaces the session's tag.
	Tag *string
	// View replaces the organisation's view of this name. A View without a Screen deletes
	// the organisation's view.
	View *View
	// Conversation changes a conversation.
	Conversation *ConversationChange
}

// Key names the record that the annotation is about.
func (a *Annotation) Key() RecordKey { return RecordKey{a.Org, a.RequestID} }

// Apply changes a record by what the annotation says. It replaces the record's maps and does
// not change the old maps.
func (a *Annotation) Apply(r *Record) {
	if len(a.Scores)+len(a.Removed) > 0 {
		r.Scores = Merge(r.Scores, a.Scores)
	}
	r.Feedback = cmp.Or(a.Feedback, r.Feedback)
	for _, name := range a.Removed {
		delete(r.Scores, name)
		if name == FeedbackScore {
			r.Feedback = nil
		}
	}
	if p := a.Property; p != nil {
		r.Properties = Merge(r.Properties, map[string]string{p.Name: p.Value})
	}
	r.UpdatedAt = max(r.UpdatedAt, a.At)
}

// Merge returns the entries of a and b; b wins where both have a key. It changes neither map.
func Merge[V any](a, b map[string]V) map[string]V {
	m := make(map[string]V, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// Property is a named label of a record.
type Property struct{ Name, Value string }

// View is what a dashboard shows, under a name. It stays until it is deleted.
type View struct {
	Name string `json:"name"`
	// Screen and State are the dashboard's: one of its pages, and what is chosen there.
	Screen    string    `json:"screen"`
	State     string    `json:"state"`
	UpdatedAt Timestamp `json:"updated_at"`
}

// Contents reads the content of records.
type Contents interface {
	// Content returns what a record carries besides its metrics, in stored form:
	// bodies without Content-Encoding, a streamed answer assembled into one object.
	// It returns nil without error when the record had no content, or when the content
	// has been deleted or is damaged.
	Content(ctx context.Context, r *Record) (*Content, error)
	// Reader returns a reader of the given parts of the content of many records.
	Reader(parts ContentPart) ContentReader
}

// ContentReader reads the content of one record after the other. It is fast when
// the records' times ascend or descend. It is not safe for concurrent use, and must be
// closed.
type ContentReader interface {
	// Content is like Contents.Content, with two differences: the result may lack parts
	// that the reader does not read, and is valid only until the next call.
	Content(ctx context.Context, r *Record) (*Content, error)
	// Close gives up what the reader holds.
	Close()
}

// Prefetcher is a ContentReader that asks for the content of many records at once.
type Prefetcher interface {
	// Prefetch says which records are asked for next, in this order. Some may be left
	// out.
	Prefetch(records []*Record)
}

// RequestQuery asks for records.
type RequestQuery struct {
	Org    string
	Filter Filter
	// Cached, Scored and Experiment choose records with the property if true, and
	// records without the property if false; nil chooses all.
	Cached, Scored, Experiment *bool
	// Sort orders the answer; ties break by ID in the direction of the first
	// key. No key means newest first.
	Sort []Sort
	// Random orders by chance, whatever Sort says. Such a query has no After.
	Random bool
	// After, if not nil, is the place after which the answer begins: see Cursor.
	After *Cursor[SortKey]
	// Offset is the number of records that are left out at the beginning of the answer.
	Offset int
	Limit  int
	// Columns are the names of the columns that are needed of a record, beside its id and its time:
	// a backend may leave all else zero. Nil is the whole record.
	Columns []string
}

// EachPage asks for all that a query finds, by pages of its Limit, until one of the functions fails.
func (q *RequestQuery) EachPage(ask func(*RequestQuery) ([]*Record, error), each func([]*Record) error) error {
	page := *q
	for {
		records, err := ask(&page)
		if err == nil {
			err = each(records)
		}
		if err != nil || len(records) < page.Limit {
			return err
		}
		page.After = page.Cursor(records[len(records)-1], nil)
	}
}

// FileRestorer is a Backend whose file somebody can delete while it is open.
type FileRestorer interface {
	// RestoreFile writes the file again from what is open, and opens it. Queries and batches may get
	// ErrUnavailable meanwhile. After an error it may be called again. The host calls it while it writes nothing.
	RestoreFile(ctx context.Context) error
}

// Snapshotter is a Backend of local files, which can be copied while it is open. A
// Backend that is no Snapshotter is backed up by its own means.
type Snapshotter interface {
	// Snapshot holds the store as it is now. The host calls it while it writes nothing.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is a store as it was at a moment. It must be closed.
type Snapshot interface {
	// CopyTo writes the store to a directory, which must have no file of the store yet.
	// Batches may be written to the store meanwhile.
	CopyTo(ctx context.Context, dir string) error
	Close() error
}

// Checker is the module of a backend that keeps a store in a file.
type Checker interface {
	// CheckFile reads all of a file that no process uses, hands each record to match, with
	// its Org, ID, CreatedAt and Content, and returns the position of a journal. The error says
	// what is wrong with the file; it is an fs.ErrNotExist if there is no file.
	CheckFile(ctx context.Context, path string, journal uuid.UUID, match func(*Record)) (Position, error)
}

// Loss counts entries of the journal that were given up, so that no entry is lost
// in silence.
type Loss struct {
	// Reason is one of the Lost constants.
	Reason string `json:"reason"`
	// Count counts versions of records, and annotations; for LostContent, records.
	Count int64 `json:"entries"`
	// Exchanges counts the exchanges that have no record because of the loss.
	Exchanges int64 `json:"exchanges"`
	// From and To are the times of the first and the last entry that was lost.
	From Timestamp `json:"from"`
	To   Timestamp `json:"to"`
}

// Reasons of a Loss.
const (
	LostJournalFull   = "journal_full"   // the journal reached its size limit
	LostJournalFailed = "journal_failed" // the disk refused the write
	LostCorrupt       = "corrupt"        // a journal entry failed its checksum
	LostRejected      = "rejected"       // the backend can never store it
	// LostContent: bodies were deleted or damaged. The records are there without them.
	LostContent = "content"
	// LostDatabase: the database was gone or older than it was, and the segments no longer had
	// the records.
	LostDatabase = "database"
	// LostInterrupted: the process was killed before the exchange came to its
	// end, or its handler failed.
	LostInterrupted = "interrupted"
)

// LossReasons are all reasons of a Loss.
var LossReasons = []string{LostJournalFull, LostJournalFailed, LostCorrupt, LostRejected, LostContent, LostDatabase, LostInterrupted}
