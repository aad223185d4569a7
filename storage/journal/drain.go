package journal

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

const (
	// batchEntries and batchBytes (of metadata) bound a batch if the backend has no
	// bounds.
	batchEntries = 512
	batchBytes   = 4 << 20
	// pace is the least time from a batch that was not full to the next batch. busyPace is
	// the least time if the batch had at least busyEntries entries: for small batches, a
	// backend writes the same pages again and again.
	pace        = 50 * time.Millisecond
	busyPace    = 4 * pace
	busyEntries = 8

	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second

	// maxRebuilt bounds the sealed segments in checkpoint.Rebuilt, which has room for so many. With
	// more, the drain waits until the list of sealed segments can be written.
	maxRebuilt = 1000

	never = math.MaxInt
)

// delivery is how far the backend is, and how it gets the rest. The journal's mutex guards
// what no other comment does.
type delivery struct {
	j *Journal

	// writer is held during each Write and Prune of the backend.
	writer sync.Mutex
	// late are the organisations of which records from before old were written since retention last
	// read the backend. The writer guards both.
	late map[string]bool
	old  storage.Timestamp

	// position is how far the backend is, progress is closed when that changes.
	position storage.Position
	progress chan struct{}
	// batchEnd is the end of the first batch after position, if an earlier process may
	// have written that batch. Else it is not after position.
	batchEnd storage.Position
	// rebuild is where the backend was before it had lost records: it gets the sealed segments
	// between position and rebuild again. The drain alone changes it, with the mutex.
	rebuild storage.Position
	// rebuilt and rejected are those of the checkpoint.
	rebuilt  map[uint64]recordCount
	rejected []storage.Loss
	// database is storage.Host.Database.
	database string
	// err is why the backend refuses writes since failingSince, nil if it does not.
	err          error
	failingSince time.Time
	// waiting counts entries since the drain last looked. The drain wants to be woken
	// if there are as many as threshold.
	waiting, threshold int

	recent recent // has a mutex of its own
	cursor cursor // the drain's alone

	// These never change.
	wake      chan struct{}
	stop      context.CancelFunc
	tried     chan struct{} // closed when the backend was opened for the first time, or was not
	connected chan struct{} // closed when the backend is open
	ended     chan struct{} // closed when the drain has ended
}

// takeCheckpoint takes over where the last process was.
func (dv *delivery) takeCheckpoint(s *checkpoint) {
	dv.j.identity = s.Journal
	dv.position, dv.batchEnd, dv.rebuild, dv.database = s.Position, s.BatchEnd, s.Rebuild, s.Database
	dv.rebuilt, dv.rejected = s.Rebuilt, parseLosses(s.Rejected)
	dv.j.archive.noteRebuilt(s.Rebuilt)
}

// run brings the backend up to date until the journal is closed and the
// backend has everything, or ctx ends.
func (dv *delivery) run(ctx context.Context) {
	defer close(dv.ended)
	defer dv.closeSegment()
	if !dv.connect(ctx) {
		return
	}
	for {
		start := time.Now()
		d := dv.readBatch(ctx)
		dv.j.mu.Lock()
		// That a segment is over the backend must know before it goes.
		empty := d.entries == 0 && len(d.losses) == 0 && len(d.released) == 0 && d.End.Segment <= dv.position.Segment
		dv.j.mu.Unlock()
		if empty {
			dv.j.mu.Lock()
			dv.advanceTo(d)
			dv.j.mu.Unlock()
			if !dv.awaitEntry(ctx) {
				return
			}
			continue
		}
		if !dv.deliver(ctx, d) {
			return
		}
		if dv.j.ledger.hasUnsaved() { // while nothing is appended, nobody else saves them
			dv.j.log.turn.Lock()
			dv.j.saveLosses()
			dv.j.log.turn.Unlock()
		}
		if !d.full {
			delay := dv.limits().Delay
			if d.entries >= busyEntries {
				delay = max(delay, busyPace)
			}
			dv.awaitBatch(ctx, delay-time.Since(start))
		}
	}
}

// awaitEntry waits until there is something to read. It is false when there will not
// be.
func (dv *delivery) awaitEntry(ctx context.Context) bool {
	dv.j.mu.Lock()
	var more bool
	if c := &dv.cursor; c.segment != nil {
		more = c.scan.end < c.segment.size || c.segment.closed
	} else {
		i, _ := dv.j.log.find(c.at.Segment)
		more = i < len(dv.j.log.unsealed)
	}
	if more = more || dv.j.versions.released; more || dv.j.settled {
		dv.j.mu.Unlock()
		return more
	}
	dv.threshold = 1
	dv.j.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-dv.wake:
	}
	dv.j.mu.Lock()
	dv.threshold = never
	dv.j.mu.Unlock()
	return ctx.Err() == nil
}

// awaitBatch waits for a batch's worth of entries, but no longer than d.
func (dv *delivery) awaitBatch(ctx context.Context, d time.Duration) {
	dv.j.mu.Lock()
	if d <= 0 || dv.j.closed || dv.waiting >= batchEntries {
		dv.j.mu.Unlock()
		return
	}
	dv.threshold = batchEntries
	dv.j.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-dv.wake:
	case <-timer.C:
	}
	dv.j.mu.Lock()
	dv.threshold = never
	dv.j.mu.Unlock()
}

// deliver writes a batch, however often it takes. It is false when ctx ended.
func (dv *delivery) deliver(ctx context.Context, d *batch) bool {
	dv.j.mu.Lock()
	dv.rejected = nil // the backend rejects them again
	dv.j.mu.Unlock()
	dv.j.saveCheckpoint(d.End)
	start := time.Now()
	if !dv.writeBatch(ctx, d, &d.Batch) {
		return false
	}
	dv.delivered(d, time.Since(start))
	for len(dv.rebuilt) >= maxRebuilt && !dv.saveRebuilt() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lastRetry):
		}
	}
	return true
}

// writeBatch writes a batch, whole or in parts. Entries that the backend rejects count as lost.
func (dv *delivery) writeBatch(ctx context.Context, d *batch, b *storage.Batch) bool {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		dv.writer.Lock()
		erased := dv.j.erasures.records.Load() // also what was erased since the attempt before
		b.Records = erased.apply(b.Records)
		for i, a := range b.Annotations {
			b.Annotations[i] = erased.applyTo(a)
		}
		for _, r := range b.Records {
			if r.CreatedAt < dv.old {
				dv.late[r.Org] = true
			}
		}
		err := dv.j.backend.Write(ctx, b)
		dv.writer.Unlock()
		entries := len(b.Records) + len(b.Annotations)
		divide := errors.Is(err, storage.ErrRejected) || errors.Is(err, storage.ErrTooLarge)
		switch {
		case err == nil:
			dv.recent.add(b.Records)
			return true
		case ctx.Err() != nil:
			return false
		case divide && entries == 1:
			dv.reject(d, b, err)
			return dv.writeBatch(ctx, d, endOf(b))
		case divide && entries > 1:
			first, second := halves(b, d.start)
			return dv.writeBatch(ctx, d, first) && dv.writeBatch(ctx, d, second) && dv.writeBatch(ctx, d, endOf(b))
		}
		dv.noteFailure(err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// awaitWrite waits for the attempt to write a batch that runs, if any: what is written later has
// nothing of what is erased now.
func (dv *delivery) awaitWrite() {
	dv.writer.Lock()
	defer dv.writer.Unlock()
}

// endOf returns the part of a divided batch with its end and without entries.
func endOf(b *storage.Batch) *storage.Batch {
	return &storage.Batch{Journal: b.Journal, ID: b.ID + "/end", End: b.End}
}

// halves splits a batch into two, in its order. The position stays at start.
func halves(b *storage.Batch, start storage.Position) (first, second *storage.Batch) {
	first = &storage.Batch{Journal: b.Journal, ID: b.ID + "/0", End: start}
	second = &storage.Batch{Journal: b.Journal, ID: b.ID + "/1", End: start}
	half := (len(b.Records) + len(b.Annotations)) / 2
	records := min(half, len(b.Records))
	first.Records, second.Records = b.Records[:records], b.Records[records:]
	first.Annotations, second.Annotations = b.Annotations[:half-records], b.Annotations[half-records:]
	return first, second
}

// reject counts the only entry of a batch as lost, because it can never be stored. The checkpoint
// has the loss before the backend has the end of the batch.
func (dv *delivery) reject(d *batch, b *storage.Batch, err error) {
	l := storage.Loss{Reason: storage.LostRejected, Count: 1}
	var key storage.RecordKey
	dv.j.mu.Lock()
	if len(b.Records) > 0 {
		key = b.Records[0].Key()
		l.From = b.Records[0].CreatedAt
		if d.began[key] {
			l.Exchanges = 1
		}
	} else {
		key = b.Annotations[0].Key()
		l.From = b.Annotations[0].At
	}
	l.To = l.From
	// It is part of the batch, so that it counts once if the batch comes again.
	d.losses = addLoss(d.losses, l)
	dv.j.ledger.drop(l)
	d.exchanges -= l.Exchanges
	dv.rejected = addLoss(dv.rejected, l)
	logger := dv.j.options.logger()
	dv.j.mu.Unlock()
	dv.j.saveCheckpoint(d.End)
	logger.Error("the backend rejects an entry, which is lost", zap.String("organisation", key.Org), zap.Stringer("request_id", key.ID), zap.Error(err))
}

// noteFailure keeps why the backend does not take a batch.
func (dv *delivery) noteFailure(err error) {
	dv.j.mu.Lock()
	first, o := dv.err == nil, dv.j.options.Load()
	if dv.err = err; first {
		dv.failingSince = o.now()
	}
	dv.j.mu.Unlock()
	if first {
		o.Logger.Error("the backend refuses records: they wait in the journal", zap.Error(err))
	}
}

// delivered books what the backend has taken.
func (dv *delivery) delivered(d *batch, took time.Duration) {
	dv.j.mu.Lock()
	recovered, logger := dv.err != nil, dv.j.options.logger()
	dv.err, dv.failingSince, dv.j.full = nil, time.Time{}, false
	dv.j.counts.Drained += int64(d.entries)
	dv.j.ledger.delivered(d.exchanges, d.number, d.losses)
	dv.j.versions.forget(d.released)
	dv.j.counts.Drains.add(took)
	dv.advanceTo(d)
	dv.rejected = nil // d.losses has them
	if d.rebuilt != nil {
		if dv.rebuilt == nil {
			dv.rebuilt = make(map[uint64]recordCount)
		}
		dv.rebuilt[d.rebuilt.number] = d.rebuilt.count
	}
	dv.j.mu.Unlock()
	dv.j.saveCheckpoint(storage.Position{})
	if dv.saveRebuilt() {
		dv.j.saveCheckpoint(storage.Position{})
	}
	if recovered {
		logger.Info("the backend takes records again")
		signal(dv.j.maintenance.wake) // what could not be erased meanwhile need not wait for the next minute
	}
}

// advanceTo moves the position after a batch. It needs the mutex.
func (dv *delivery) advanceTo(d *batch) {
	if d.End == (storage.Position{}) { // there is no segment
		return
	}
	if d.End.Segment > dv.position.Segment {
		signal(dv.j.maintenance.wake) // there may be one to seal
	}
	dv.position = d.End
	dv.j.pendingBytes -= d.bytes
	dv.j.versions.passed(d.records, d.End, d.gap)
	close(dv.progress)
	dv.progress = make(chan struct{})
}

// limits are the backend's limits, or the journal's where the backend has none.
func (dv *delivery) limits() storage.Limits {
	l := dv.j.backend.Limits()
	return storage.Limits{
		Entries: cmp.Or(l.Entries, batchEntries), Bytes: cmp.Or(l.Bytes, batchBytes), Delay: cmp.Or(l.Delay, pace),
	}
}

// connect opens the backend, however often it takes. It is false when ctx ended,
// or the journal was closed meanwhile.
func (dv *delivery) connect(ctx context.Context) bool {
	was, first := dv.position, true
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		host := &storage.Host{Journal: dv.j.identity, Position: was, Database: dv.database, Contents: segmentContents{dv.j}, Damaged: dv.j.witness.tellDatabase}
		position, err := dv.j.backend.Open(ctx, host)
		if err == nil {
			err = dv.relocate(position)
		}
		if err == nil {
			dv.j.mu.Lock()
			dv.database = host.Database
			dv.j.mu.Unlock()
			dv.countDatabaseLoss(was, position)
			was = position
			err = dv.mark(ctx, host)
		}
		if err == nil { // what other nodes have erased is known before anything is written
			_, err = dv.j.nodes.exchange(ctx)
			if errors.Is(err, errNotSaved) { // as on a full disk, which the drain makes room on; it is tried each second
				err = nil
			}
			if err != nil {
				err = errors.Join(err, dv.j.backend.Close())
			}
		}
		if err != nil && ctx.Err() == nil {
			dv.noteFailure(err)
		}
		if err == nil {
			dv.j.mu.Lock()
			dv.err, dv.failingSince = nil, time.Time{}
			dv.j.mu.Unlock()
			close(dv.connected)
			if len(dv.j.erasures.unfinished()) > 0 {
				signal(dv.j.maintenance.wake) // it can seal now what was drained before
			}
		}
		if first {
			close(dv.tried)
			first = false
		}
		if err == nil {
			return true
		}
		dv.j.mu.Lock()
		closed := dv.j.closed
		dv.j.mu.Unlock()
		if closed {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-dv.wake:
		case <-time.After(wait):
		}
	}
}

// mark has the backend mark its store, once the checkpoint says what the store had lost before.
func (dv *delivery) mark(ctx context.Context, host *storage.Host) error {
	marker, ok := dv.j.backend.(storage.Marker)
	if !ok {
		return nil
	}
	dv.j.saveCheckpoint(dv.batchEnd)
	err := dv.j.saveReach(true)
	if err == nil {
		err = marker.Mark(ctx, host)
	}
	if err != nil {
		return errors.Join(err, dv.j.backend.Close())
	}
	dv.j.mu.Lock()
	dv.database = host.Database
	dv.j.mu.Unlock()
	dv.j.saveCheckpoint(dv.batchEnd)
	return nil
}
