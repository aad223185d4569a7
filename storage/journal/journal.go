// Package journal is the durable queue between traffic and a backend, and the
// store of content. DESIGN.md has its invariants and its format.
package journal

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
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

	// Tests replace these.
	now  func() time.Time
	open func(path string, flag int) (file, error)
	// firstSegment is the number of the first segment of a new journal. Default: the
	// seconds since 1970, which no journal that was here before has used.
	firstSegment uint64
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 30
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.open == nil {
		o.open = openFile
	}
	if o.firstSegment == 0 {
		o.firstSegment = uint64(o.now().Unix())
	}
	return o
}

// settings are the options, which Reconfigure replaces.
type settings struct{ atomic.Pointer[Options] }

func (s *settings) now() moment { return storage.Millis(s.Load().now()) }

func (s *settings) logger() *zap.Logger { return s.Load().Logger }

// contentRetention is how long content is kept, 0 for ever.
func (o *Options) contentRetention() time.Duration {
	if o.ContentRetention == 0 || o.Retention > 0 && o.Retention < o.ContentRetention {
		return o.Retention
	}
	return o.ContentRetention
}

// age is how old a segment gets before the next begins. Content goes by the
// segment, so this is the grain of its retention.
func (o *Options) age() time.Duration {
	const most = time.Hour
	if r := o.contentRetention(); r > 0 {
		return min(most, r/10)
	}
	return most
}

// Journal is an open journal with its backend.
type Journal struct {
	backend storage.Backend
	dir     string
	lock    *os.File
	archive archive

	// turn is held by whoever writes to the active segment. It comes before mu.
	turn    sync.Mutex
	active  *segment
	looked  time.Time          // when checkDirectory was called
	largest int64              // size of the largest group
	next    uint64             // number of the next segment
	ends    []storage.Position // of segments whose files may go on behind them
	// chunks are those of the active segment. Appends look into them before their turn.
	chunks atomic.Pointer[chunkTable]
	spare  []*draft
	pieces [][]byte

	// writer is held during each Write and Prune of the backend.
	writer sync.Mutex

	mu      sync.Mutex
	options settings
	closed  bool // nothing is appended any more
	settled bool // and what was being appended is
	failing bool // the disk refuses writes
	full    bool // entries were lost since the backend last took some

	queue    []*draft
	raw      []*segment // by number
	versions versions

	// What the backend has not taken yet.
	pendingBytes int64
	// waiting counts entries since the drain last looked; it wants to be woken
	// at threshold.
	waiting, threshold int
	ledger             ledger

	identity uuid.UUID
	// cut is where the batch behind position ended that an earlier process wrote.
	cut           storage.Position
	checkpointMu  sync.Mutex
	checkpoint    checkpointFile
	checkpointErr error // why it cannot be written

	// position is how far the backend is, progress is closed when that changes.
	position storage.Position
	progress chan struct{}

	counts       Status
	err          error // why the backend refuses writes
	failingSince time.Time

	recent recent

	wake, tidy      chan struct{} // for the drain and the maintenance
	cursor          cursor        // the drain's own
	stopDrain       context.CancelFunc
	stopMaintenance context.CancelFunc
	tried           chan struct{} // closed when the backend was opened for the first time, or was not
	connected       chan struct{} // closed when the backend is open
	drained         chan struct{} // closed when the drain has ended
	maintained      chan struct{} // closed when the maintenance has ended
	upkeep          chan struct{} // has an element while maintenance or a backup runs
	erased          time.Time     // when the backend erased last; maintenance alone uses it
}

func newJournal(b storage.Backend, o Options) *Journal {
	j := &Journal{
		backend: b, dir: o.Dir,
		versions: newVersions(), ledger: ledger{entries: map[string]int64{}},
		threshold: never, progress: make(chan struct{}),
		wake: make(chan struct{}, 1), tidy: make(chan struct{}, 1),
		tried: make(chan struct{}), connected: make(chan struct{}), drained: make(chan struct{}), maintained: make(chan struct{}),
		upkeep: make(chan struct{}, 1),
	}
	j.archive.dir, j.archive.options, j.archive.ledger = j.dir, &j.options, &j.ledger
	o = o.withDefaults()
	j.options.Store(&o)
	return j
}

// Open opens the journal in o.Dir and passes over what a crash left half written.
// The backend is opened, and brought up to date, in the background: it may be down
// for as long as MaxBytes last.
func Open(ctx context.Context, b storage.Backend, o Options) (*Journal, error) {
	j := newJournal(b, o)
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var err error
	if j.lock, err = lock(j.dir); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := j.start(ctx); err != nil {
		j.shut()
		return nil, err
	}
	return j, nil
}

func (j *Journal) start(ctx context.Context) error {
	last, err := j.recover()
	if err == nil {
		err = takeSpare(j.dir)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	var s checkpoint
	found, err := j.checkpoint.open(j.dir, &s)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if !found {
		s = checkpoint{Journal: uuid.New()}
		if last == 0 {
			// The backend may remember content of a journal that is gone.
			last = j.options.Load().firstSegment - 1
		}
	}
	j.identity, j.position, j.cut = s.Journal, s.Position, s.Cut
	j.next = max(last, s.Position.Segment) + 1
	left, err := j.replay()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.restoreHeld(s.Held)
	page, err := j.ledger.page.open(j.dir)
	if err != nil {
		j.options.logger().Error("exchanges are counted in memory alone: those that a crash interrupts will not be known", zap.Error(err))
	}
	j.ledger.reconcile(&s, left, page, j.options.now())
	j.turn.Lock()
	j.saveLosses()
	j.turn.Unlock()
	j.saveCheckpoint(s.Cut)
	ctx = context.WithoutCancel(ctx)
	drainCtx, stopDrain := context.WithCancel(ctx)
	maintenanceCtx, stopMaintenance := context.WithCancel(ctx)
	j.stopDrain, j.stopMaintenance = stopDrain, stopMaintenance
	go j.drain(drainCtx)
	go j.maintain(maintenanceCtx)
	return nil
}

// Backend is the backend behind the journal, for queries.
func (j *Journal) Backend() storage.Backend { return j.backend }

// Contents reads the content of records where it is kept: in the backend, or in the
// journal.
func (j *Journal) Contents() storage.Contents {
	if keeper, ok := j.backend.(storage.ContentKeeper); ok {
		return keptContents{j, keeper}
	}
	return j
}

// Connected waits until the backend was opened for the first time, or was not, and
// returns why it takes no records. It will be tried again.
func (j *Journal) Connected(ctx context.Context) error {
	select {
	case <-j.tried:
	case <-j.drained:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Reconfigure changes the settings, except Dir, without reopening.
func (j *Journal) Reconfigure(o Options) {
	before := j.options.Load()
	o.now, o.open, o.firstSegment = before.now, before.open, before.firstSegment
	o = o.withDefaults()
	j.options.Store(&o)
	signal(j.tidy)
}

// Retention is how long records are kept, 0 for ever.
func (j *Journal) Retention() time.Duration {
	return j.options.Load().Retention
}

// Close drains until ctx ends and closes the backend. What is left then is
// replayed at the next Open.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	j.settle()
	signal(j.wake)
	j.stopMaintenance()
	select {
	case <-j.drained:
	case <-ctx.Done():
	}
	j.stopDrain()
	<-j.drained
	<-j.maintained
	err := j.backend.Close()
	j.shut()
	return err
}

// settle lets the last appends end, and ends their segment.
func (j *Journal) settle() {
	for {
		j.turn.Lock()
		j.mu.Lock()
		quiet := len(j.queue) == 0
		j.mu.Unlock()
		if quiet {
			break
		}
		j.turn.Unlock()
		runtime.Gosched()
	}
	defer j.turn.Unlock()
	if err := j.checkDirectory(); err != nil {
		j.options.logger().Error("the journal cannot be written: what it has not brought to the backend is lost at its end", zap.Error(err))
	}
	j.saveLosses()
	if s := j.active; s != nil {
		j.close(s)
	}
	j.mu.Lock()
	j.settled = true
	j.mu.Unlock()
}

// shut gives up the files.
func (j *Journal) shut() {
	j.mu.Lock()
	for _, s := range j.raw {
		j.unref(s)
	}
	j.raw = nil
	j.mu.Unlock()
	j.ledger.close()
	j.checkpoint.close()
	j.lock.Close()
}

// Interface guard.
var _ storage.Contents = (*Journal)(nil)

// Status is the state of a journal. Counters grow from the time it was opened.
type Status struct {
	// PendingRecords and PendingBytes wait for the backend.
	PendingRecords, PendingBytes int64
	// MaxBytes is what PendingBytes may come to.
	MaxBytes int64
	// RawSegments are not sealed yet, SealedSegments are; the bytes are those
	// of their files.
	RawSegments, SealedSegments int
	RawBytes, SealedBytes       int64
	// Appended and Drained count entries: versions of records, annotations, losses.
	Appended, Drained int64
	// Lost counts entries that were given up, by the reasons of storage.Loss.
	Lost map[string]int64
	// Err is why the backend refuses writes since FailingSince, nil when it
	// does not.
	Err          error
	FailingSince time.Time
	// Writes times the writes to the segments, Drains those to the backend.
	Writes, Drains Durations
}

// Durations is a number of operations and their time.
type Durations struct {
	Count int64
	Sum   time.Duration
}

func (d *Durations) add(t time.Duration) {
	d.Count++
	d.Sum += t
}

// Status is a snapshot of the journal's state.
func (j *Journal) Status() Status {
	j.mu.Lock()
	s := j.counts
	s.PendingRecords, s.PendingBytes = int64(len(j.versions.pending)), j.pendingBytes
	s.MaxBytes = j.options.Load().MaxBytes
	for _, raw := range j.raw {
		s.RawSegments++
		s.RawBytes += raw.size
	}
	s.Err, s.FailingSince = j.err, j.failingSince
	j.mu.Unlock()
	s.Lost = j.ledger.lostEntries()
	s.SealedSegments, s.SealedBytes = j.archive.total()
	return s
}

// Fits tells whether so many bytes of entries would not exceed MaxBytes now. It
// is for those who can keep what does not fit, and try again: Append would lose
// it.
func (j *Journal) Fits(bytes int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pendingBytes+bytes <= j.options.Load().MaxBytes
}
