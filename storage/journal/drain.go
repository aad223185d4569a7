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

	never = math.MaxInt
)

// delivery is how far the backend is, and how it gets the rest. The journal's mutex guards
// what no other comment does.
type delivery struct {
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
	// given and rejected are those of the checkpoint.
	given    map[uint64]recordCount
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

// drain brings the backend up to date until the journal is closed and the
// backend has everything, or ctx ends.
func (j *Journal) drain(ctx context.Context) {
	defer close(j.delivery.ended)
	defer j.closeSegment()
	if !j.connect(ctx) {
		return
	}
	for {
		start := time.Now()
		d := j.readBatch(ctx)
		j.mu.Lock()
		// That a segment is over the backend must know before it goes.
		empty := d.entries == 0 && len(d.losses) == 0 && len(d.released) == 0 && d.End.Segment <= j.delivery.position.Segment
		j.mu.Unlock()
		if empty {
			j.mu.Lock()
			j.advanceTo(d)
			j.mu.Unlock()
			if !j.awaitEntry(ctx) {
				return
			}
			continue
		}
		if !j.deliver(ctx, d) {
			return
		}
		if j.ledger.owes() { // while nothing is appended, nobody else saves them
			j.log.turn.Lock()
			j.saveLosses()
			j.log.turn.Unlock()
		}
		if !d.full {
			delay := j.limits().Delay
			if d.entries >= busyEntries {
				delay = max(delay, busyPace)
			}
			j.awaitBatch(ctx, delay-time.Since(start))
		}
	}
}

// awaitEntry waits until there is something to read. It is false when there will not
// be.
func (j *Journal) awaitEntry(ctx context.Context) bool {
	j.mu.Lock()
	var more bool
	if c := &j.delivery.cursor; c.segment != nil {
		more = c.scan.end < c.segment.size || c.segment.closed
	} else {
		i, _ := j.log.find(c.at.Segment)
		more = i < len(j.log.unsealed)
	}
	if more = more || j.versions.released; more || j.settled {
		j.mu.Unlock()
		return more
	}
	j.delivery.threshold = 1
	j.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-j.delivery.wake:
	}
	j.mu.Lock()
	j.delivery.threshold = never
	j.mu.Unlock()
	return ctx.Err() == nil
}

// awaitBatch waits for a batch's worth of entries, but no longer than d.
func (j *Journal) awaitBatch(ctx context.Context, d time.Duration) {
	j.mu.Lock()
	if d <= 0 || j.closed || j.delivery.waiting >= batchEntries {
		j.mu.Unlock()
		return
	}
	j.delivery.threshold = batchEntries
	j.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-j.delivery.wake:
	case <-timer.C:
	}
	j.mu.Lock()
	j.delivery.threshold = never
	j.mu.Unlock()
}

// deliver writes a batch, however often it takes. It is false when ctx ended.
func (j *Journal) deliver(ctx context.Context, d *batch) bool {
	d.Records = j.erasures.records.Load().apply(d.Records)
	j.mu.Lock()
	j.delivery.rejected = nil // the backend rejects them again
	j.mu.Unlock()
	j.saveCheckpoint(d.End)
	start := time.Now()
	if !j.writeBatch(ctx, d, &d.Batch) {
		return false
	}
	j.delivered(d, time.Since(start))
	return true
}

// writeBatch writes a batch, whole or in parts. Entries that the backend rejects count as lost.
func (j *Journal) writeBatch(ctx context.Context, d *batch, b *storage.Batch) bool {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		j.delivery.writer.Lock()
		for _, r := range b.Records {
			if r.CreatedAt < j.delivery.old {
				j.delivery.late[r.Org] = true
			}
		}
		err := j.backend.Write(ctx, b)
		j.delivery.writer.Unlock()
		entries := len(b.Records) + len(b.Annotations)
		divide := errors.Is(err, storage.ErrRejected) || errors.Is(err, storage.ErrTooLarge)
		switch {
		case err == nil:
			j.delivery.recent.add(b.Records)
			return true
		case ctx.Err() != nil:
			return false
		case divide && entries == 1:
			j.reject(d, b, err)
			return j.writeBatch(ctx, d, endOf(b))
		case divide && entries > 1:
			first, second := halves(b, d.start)
			return j.writeBatch(ctx, d, first) && j.writeBatch(ctx, d, second) && j.writeBatch(ctx, d, endOf(b))
		}
		j.noteFailure(err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// endOf is the part of a divided batch that alone says that the batch is over.
func endOf(b *storage.Batch) *storage.Batch {
	return &storage.Batch{Journal: b.Journal, ID: b.ID + "/end", End: b.End}
}

// halves takes a batch notCopied, in its order. The position stays at start.
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
func (j *Journal) reject(d *batch, b *storage.Batch, err error) {
	l := storage.Loss{Reason: storage.LostRejected, Count: 1}
	var key storage.RecordKey
	j.mu.Lock()
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
	j.ledger.drop(l)
	d.exchanges -= l.Exchanges
	j.delivery.rejected = addLoss(j.delivery.rejected, l)
	logger := j.options.logger()
	j.mu.Unlock()
	j.saveCheckpoint(d.End)
	logger.Error("the backend rejects an entry, which is lost", zap.String("organisation", key.Org), zap.Stringer("request_id", key.ID), zap.Error(err))
}

// noteFailure keeps why the backend does not take a batch.
func (j *Journal) noteFailure(err error) {
	j.mu.Lock()
	first, o := j.delivery.err == nil, j.options.Load()
	if j.delivery.err = err; first {
		j.delivery.failingSince = o.now()
	}
	j.mu.Unlock()
	if first {
		o.Logger.Error("the backend refuses records: they wait in the journal", zap.Error(err))
	}
}

// delivered books what the backend has taken.
func (j *Journal) delivered(d *batch, took time.Duration) {
	j.mu.Lock()
	recovered, logger := j.delivery.err != nil, j.options.logger()
	j.delivery.err, j.delivery.failingSince, j.full = nil, time.Time{}, false
	j.counts.Drained += int64(d.entries)
	j.ledger.delivered(d.exchanges, d.number, d.losses)
	j.versions.forget(d.released)
	j.counts.Drains.add(took)
	j.advanceTo(d)
	j.delivery.rejected = nil // d.losses has them
	if d.given != nil {
		if j.delivery.given == nil {
			j.delivery.given = make(map[uint64]recordCount)
		}
		j.delivery.given[d.given.number] = d.given.given
	}
	j.mu.Unlock()
	j.saveCheckpoint(storage.Position{})
	if j.listGiven() {
		j.saveCheckpoint(storage.Position{})
	}
	if recovered {
		logger.Info("the backend takes records again")
	}
}

// advanceTo moves the position behind a batch. It needs the mutex.
func (j *Journal) advanceTo(d *batch) {
	if d.End == (storage.Position{}) { // there is no segment
		return
	}
	if d.End.Segment > j.delivery.position.Segment {
		signal(j.maintenance.wake) // there may be one to seal
	}
	j.delivery.position = d.End
	j.pendingBytes -= d.bytes
	j.versions.passed(d.records, d.End, d.gap)
	close(j.delivery.progress)
	j.delivery.progress = make(chan struct{})
}

// limits are the backend's limits, or the journal's where the backend has none.
func (j *Journal) limits() storage.Limits {
	l := j.backend.Limits()
	return storage.Limits{
		Entries: cmp.Or(l.Entries, batchEntries), Bytes: cmp.Or(l.Bytes, batchBytes), Delay: cmp.Or(l.Delay, pace),
	}
}

// connect opens the backend, however often it takes. It is false when ctx ended,
// or the journal was closed meanwhile.
func (j *Journal) connect(ctx context.Context) bool {
	host := &storage.Host{Journal: j.identity, Position: j.delivery.position, Database: j.delivery.database, Contents: j, Damaged: j.tellDatabase}
	first := true
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		position, err := j.backend.Open(ctx, host)
		if err == nil {
			err = j.relocate(position)
		}
		if err == nil {
			j.mu.Lock()
			j.delivery.database = host.Database
			j.mu.Unlock()
			j.countDatabaseLoss(host.Position, position)
		}
		if err != nil && ctx.Err() == nil {
			j.noteFailure(err)
		}
		if err == nil {
			j.mu.Lock()
			j.delivery.err, j.delivery.failingSince = nil, time.Time{}
			j.mu.Unlock()
			close(j.delivery.connected)
			if len(j.erasures.unfinished()) > 0 {
				signal(j.maintenance.wake) // it can seal now what was drained before
			}
		}
		if first {
			close(j.delivery.tried)
			first = false
		}
		if err == nil {
			return true
		}
		j.mu.Lock()
		closed := j.closed
		j.mu.Unlock()
		if closed {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-j.delivery.wake:
		case <-time.After(wait):
		}
	}
}
