// Package journal is the durable queue between traffic and a backend, and the
// store of content. DESIGN.md has its invariants and its format.
package journal

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
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
	// AwaitLedger keeps segments from being sealed or deleted before LedgerRead is called: a ledger
	// reads their charges first.
	AwaitLedger bool
	// Retention is how long records are kept, 0 for ever. ContentRetention is how long
	// their bodies are kept, 0 for as long as the records.
	Retention, ContentRetention time.Duration
	// Holds returns the holds of an organisation. Default: there are none.
	Holds func(ctx context.Context, org string) ([]Hold, error)
	// LowPriority runs work that traffic goes before. Default: as any other work.
	LowPriority func(do func())
	// Scan reads a page for what goes through many records of an organisation, when it is the
	// organisation's turn. Default: at once.
	Scan func(ctx context.Context, org string, read func() error) error
	// Mask returns what masks an entry before it is written, nil for nothing: what the
	// organisation has masked, and also what is masked in the entry's content. Default: nothing
	// is masked.
	Mask func(org string, also mask.Content) *mask.Masker
	// Logger logs losses and failures. Default: no logs.
	Logger *zap.Logger

	// Tests replace these.
	now  func() time.Time
	open func(path string, flag int) (file, error)
	// firstSegment is the number of the first segment of a new journal. Default: the
	// seconds since 1970, which no journal that was here before has used.
	firstSegment uint64
	// maxErased bounds the records that an erasure chooses at once: a place is kept for each until it is done, and
	// a hash for ever. Default: 1,000,000.
	maxErased int64
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 30
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 64 << 20
	}
	if o.LowPriority == nil {
		o.LowPriority = func(do func()) { do() }
	}
	if o.Scan == nil {
		o.Scan = func(_ context.Context, _ string, read func() error) error { return read() }
	}
	if o.Holds == nil {
		o.Holds = func(context.Context, string) ([]Hold, error) { return nil, nil }
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
	if o.maxErased == 0 {
		o.maxErased = maxErased
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
	const maxPause = time.Hour
	if r := o.contentRetention(); r > 0 {
		return min(maxPause, r/10)
	}
	return maxPause
}

// Journal is an open journal with its backend: a log that is appended to, a delivery that
// brings what is appended to the backend, an archive of content that was delivered, and a
// ledger of what became of all exchanges.
type Journal struct {
	backend  storage.Backend
	dir      string
	lock     *os.File
	identity uuid.UUID
	options  settings

	log         log
	delivery    delivery
	archive     archive
	ledger      ledger
	checkpoints checkpoints
	maintenance maintenance
	witness     Witness
	erasures    erasures
	nodes       nodes
	removals    atomic.Uint64 // see Removals
	// holding is held while a hold changes, and for reading while something is deleted under holds.
	holding sync.RWMutex

	// mu guards what follows, and what the log and the delivery say that it guards.
	mu      sync.Mutex
	closed  bool // nothing is appended any more
	settled bool // and what was being appended is
	full    bool // entries were lost since the backend last took some
	// awaitsLedger is true until LedgerRead if Options.AwaitLedger is.
	awaitsLedger bool
	counts       Status
	// versions and pendingBytes are what the backend has not taken yet.
	versions     versions
	pendingBytes int64
}

func newJournal(b storage.Backend, o Options) *Journal {
	j := &Journal{
		backend: b, dir: o.Dir,
		versions: newVersions(), ledger: ledger{entries: map[string]int64{}},
		delivery: delivery{
			threshold: never, progress: make(chan struct{}), wake: make(chan struct{}, 1),
			tried: make(chan struct{}), connected: make(chan struct{}), ended: make(chan struct{}),
		},
		maintenance: maintenance{wake: make(chan struct{}, 1), ended: make(chan struct{}), turn: make(chan struct{}, 1)},
	}
	j.delivery.j, j.maintenance.j, j.witness.j, j.erasures.j = j, j, j, j
	shared, _ := b.(storage.Nodes)
	j.nodes = nodes{j: j, backend: shared, read: make(map[uuid.UUID]erasedParts), flushes: make(map[uuid.UUID]pendingFlush)}
	j.log.dir, j.log.options, j.log.mu, j.log.wake = o.Dir, &j.options, &j.mu, j.delivery.wake
	j.archive.dir, j.archive.options, j.archive.ledger = j.dir, &j.options, &j.ledger
	o = o.withDefaults()
	j.options.Store(&o)
	j.awaitsLedger = o.AwaitLedger
	return j
}

// Open opens the journal in o.Dir and passes over what a crash left half written.
// The backend is opened, and brought up to date, in the background: it may be down
// for as long as MaxBytes last.
func Open(ctx context.Context, b storage.Backend, o Options) (*Journal, error) {
	j := newJournal(b, o)
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, fmt.Errorf("name a folder in which this user can create files: %w", err)
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
	damage, found, err := j.checkpoints.open(j.dir, &s)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	page, err := j.ledger.page.open(j.dir)
	if err != nil {
		j.options.logger().Error("exchanges are counted in memory alone: those that a crash interrupts will not be known", zap.Error(err))
	}
	forgotten := !found && (page.begun > 0 || last > 0)
	if !found {
		s = checkpoint{Journal: uuid.New()}
		if forgotten {
			s.Reach = &reach{Forgotten: true}
		}
		if last == 0 {
			// The backend may remember content of a journal that is gone.
			last = j.options.Load().firstSegment - 1
		}
	}
	j.witness.restore(s.Reach)
	j.erasures.open()
	j.delivery.takeCheckpoint(&s)
	j.log.reserveNumber(max(last, s.Position.Segment) + 1)
	unapplied, err := j.replay()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if j.log.newestRaw() == 0 {
		j.nodes.oldestAt = j.options.now()
	}
	j.restoreHeld(s.Held)
	if forgotten {
		damage = append(damage, s.takeRecorded(page, unapplied))
	}
	_, keeps := j.backend.(storage.ContentKeeper)
	fromFiles, entries, contents := j.compare(&s, page, keeps)
	unapplied.damaged += entries
	j.witness.tell(slices.Concat(damage, fromFiles, j.archive.check())...)
	j.archive.lose(contents, s.Reach)
	j.ledger.reconcile(&s, unapplied, page, j.options.now())
	j.log.turn.Lock()
	j.saveLosses()
	j.log.turn.Unlock()
	j.delivery.saveRebuilt()
	j.saveCheckpoint(s.BatchEnd)
	j.startTasks(context.WithoutCancel(ctx))
	return nil
}

// startTasks starts the goroutines of the journal. Close stops them.
func (j *Journal) startTasks(ctx context.Context) {
	drainCtx, stopDrain := context.WithCancel(ctx)
	maintenanceCtx, stopMaintenance := context.WithCancel(ctx)
	j.delivery.stop, j.maintenance.stop = stopDrain, stopMaintenance
	go j.delivery.run(drainCtx)
	var background sync.WaitGroup
	background.Go(func() { j.maintenance.run(maintenanceCtx) })
	background.Go(func() { j.nodes.run(maintenanceCtx) })
	background.Go(func() { j.syncEverySecond(maintenanceCtx) })
	background.Go(func() { j.witness.verifyDaily(maintenanceCtx) })
	go func() {
		background.Wait()
		close(j.maintenance.ended)
	}()
}

// Witness says of the files that other packages keep in the directory how far they reach.
func (j *Journal) Witness() *Witness { return &j.witness }

// Identity is the identity of the journal, which stays the same as long as there is its directory.
func (j *Journal) Identity() uuid.UUID { return j.identity }

// Backend is the backend behind the journal, for queries.
func (j *Journal) Backend() storage.Backend { return j.backend }

// Contents reads the content of records where it is kept: in the backend, or in the
// journal.
func (j *Journal) Contents() storage.Contents {
	if keeper, ok := j.backend.(storage.ContentKeeper); ok {
		return backendContents{j, keeper}
	}
	return segmentContents{j}
}

// Connected waits until the backend was opened for the first time, or was not, and
// returns why it takes no records. It will be tried again.
func (j *Journal) Connected(ctx context.Context) error {
	select {
	case <-j.delivery.tried:
	case <-j.delivery.ended:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.delivery.err
}

// isConnected reports whether the backend was opened.
func (dv *delivery) isConnected() bool {
	select {
	case <-dv.connected:
		return true
	default:
		return false
	}
}

// Reconfigure changes the settings, except Dir, without reopening.
func (j *Journal) Reconfigure(o Options) {
	before := j.options.Load()
	o.now, o.open, o.firstSegment, o.maxErased = before.now, before.open, before.firstSegment, before.maxErased
	o = o.withDefaults()
	j.options.Store(&o)
	if !o.AwaitLedger {
		j.LedgerRead()
	}
	signal(j.maintenance.wake)
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
	signal(j.delivery.wake)
	j.maintenance.stop()
	select {
	case <-j.delivery.ended:
	case <-ctx.Done():
	}
	j.delivery.stop()
	<-j.delivery.ended
	<-j.maintenance.ended
	j.nodes.leave(ctx)
	err := j.backend.Close()
	j.shut()
	return err
}

// settle lets the last appends end, and ends their segment.
func (j *Journal) settle() {
	for {
		j.log.turn.Lock()
		j.mu.Lock()
		quiet := len(j.log.queue) == 0
		j.mu.Unlock()
		if quiet {
			break
		}
		j.log.turn.Unlock()
		runtime.Gosched()
	}
	defer j.log.turn.Unlock()
	if err := j.checkDirectory(); err != nil {
		j.options.logger().Error("the journal cannot be written: what it has not brought to the backend is lost at its end", zap.Error(err))
	}
	j.saveLosses()
	if s := j.log.active; s != nil {
		j.log.close(s)
	}
	j.mu.Lock()
	j.settled = true
	j.mu.Unlock()
}

// shut gives up the files.
func (j *Journal) shut() {
	j.mu.Lock()
	for _, s := range j.log.unsealed {
		j.log.unref(s)
	}
	j.log.unsealed = nil
	j.mu.Unlock()
	j.ledger.close()
	j.checkpoints.close()
	j.lock.Close()
}

// Interface guard.

// Status is the state of a journal. Counters grow from the time it was opened.
type Status struct {
	// PendingRecords and PendingBytes wait for the backend.
	PendingRecords int64 `json:"pending_records"`
	PendingBytes   int64 `json:"pending_bytes"`
	// RawSegments counts the segments that are not sealed yet, SealedSegments the sealed
	// segments. RawBytes and SealedBytes are the sizes of their files.
	RawSegments    int   `json:"raw_segments"`
	RawBytes       int64 `json:"raw_bytes"`
	SealedSegments int   `json:"sealed_segments"`
	SealedBytes    int64 `json:"sealed_bytes"`
	// Appended and Drained count entries: versions of records, annotations, losses.
	Appended int64 `json:"appended"`
	Drained  int64 `json:"drained"`
	// Lost counts entries that were given up, by the reasons of storage.Loss.
	Lost map[string]int64 `json:"lost"`
	// MaxBytes is what PendingBytes may come to.
	MaxBytes int64 `json:"-"`
	// Err is why the backend refuses writes since FailingSince, nil when it
	// does not.
	Err          error     `json:"-"`
	FailingSince time.Time `json:"-"`
	// Writes times the writes to the segments, Drains the writes to the backend.
	Writes, Drains Durations `json:"-"`
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
	for _, segment := range j.log.unsealed {
		s.RawSegments++
		s.RawBytes += segment.size
	}
	s.Err, s.FailingSince = j.delivery.err, j.delivery.failingSince
	j.mu.Unlock()
	s.Lost = j.ledger.lostEntries()
	s.SealedSegments, s.SealedBytes = j.archive.total()
	return s
}

// Fits reports whether entries of this size fit into MaxBytes now. It is for callers who can try again
// later: Append would lose the entries.
func (j *Journal) Fits(bytes int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pendingBytes+bytes <= j.options.Load().MaxBytes
}
