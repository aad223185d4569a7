package journal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// deliver writes a batch, however often it takes. It is false when ctx ended.
func (j *Journal) deliver(ctx context.Context, d *delivery) bool {
	j.saveCheckpoint(d.End)
	start := time.Now()
	if !j.writeBatch(ctx, d, &d.Batch) {
		return false
	}
	j.delivered(d, time.Since(start))
	return true
}

// writeBatch writes a batch, whole or in parts, but for what the backend rejects of it.
func (j *Journal) writeBatch(ctx context.Context, d *delivery, b *storage.Batch) bool {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		j.writer.Lock()
		err := j.backend.Write(ctx, b)
		j.writer.Unlock()
		entries := len(b.Records) + len(b.Annotations)
		divide := errors.Is(err, storage.ErrRejected) || errors.Is(err, storage.ErrTooLarge)
		switch {
		case err == nil:
			j.recent.add(b.Records)
			return true
		case ctx.Err() != nil:
			return false
		case divide && entries == 1:
			j.reject(d, b, err)
			return true
		case divide && entries > 1:
			// The last part alone says that the batch is over.
			last := &storage.Batch{Journal: b.Journal, ID: b.ID + "/end", End: b.End}
			first, second := halves(b, d.start)
			return j.writeBatch(ctx, d, first) && j.writeBatch(ctx, d, second) && j.writeBatch(ctx, d, last)
		}
		j.noteFailure(err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// halves takes a batch apart, in its order. The position stays at start.
func halves(b *storage.Batch, start storage.Position) (first, second *storage.Batch) {
	first = &storage.Batch{Journal: b.Journal, ID: b.ID + "/0", End: start}
	second = &storage.Batch{Journal: b.Journal, ID: b.ID + "/1", End: start}
	half := (len(b.Records) + len(b.Annotations)) / 2
	records := min(half, len(b.Records))
	first.Records, second.Records = b.Records[:records], b.Records[records:]
	first.Annotations, second.Annotations = b.Annotations[:half-records], b.Annotations[half-records:]
	return first, second
}

// reject counts as lost the one entry of a batch that can never be stored.
func (j *Journal) reject(d *delivery, b *storage.Batch, err error) {
	l := storage.Loss{Reason: storage.LostRejected, Count: 1}
	var id uuid.UUID
	j.mu.Lock()
	if len(b.Records) > 0 {
		id = b.Records[0].ID
		l.From = b.Records[0].CreatedAt
		if d.began[id] {
			l.Exchanges = 1
		}
	} else {
		id = b.Annotations[0].RequestID
		l.From = b.Annotations[0].At
	}
	l.To = l.From
	// It is part of the batch, so that it counts once if the batch comes again.
	d.losses = addLoss(d.losses, l)
	j.lost[l.Reason]++
	j.ledger.losses = addIncident(j.ledger.losses, l)
	if l.Exchanges > 0 {
		j.ledger.waiting--
		d.exchanges--
	}
	logger := j.options.Logger
	j.mu.Unlock()
	logger.Error("the backend rejects an entry, which is lost", zap.Stringer("request_id", id), zap.Error(err))
}

// noteFailure keeps why the backend does not take a batch.
func (j *Journal) noteFailure(err error) {
	j.mu.Lock()
	first, o := j.err == nil, j.options
	if j.err = err; first {
		j.failingSince = o.now()
	}
	j.mu.Unlock()
	if first {
		o.Logger.Error("the backend refuses records: they wait in the journal", zap.Error(err))
	}
}

// delivered books what the backend has taken.
func (j *Journal) delivered(d *delivery, took time.Duration) {
	j.mu.Lock()
	recovered, logger := j.err != nil, j.options.Logger
	j.err, j.failingSince, j.full = nil, time.Time{}, false
	j.counts.Drained += int64(d.entries)
	j.ledger.recorded += d.exchanges
	j.ledger.number = max(j.ledger.number, d.number)
	j.ledger.drained = slices.Clone(j.ledger.drained)
	for _, l := range d.losses {
		j.ledger.drained = addIncident(j.ledger.drained, l)
	}
	j.forgetHeld(d)
	j.ledger.waiting -= d.exchanges
	j.counts.Drains.add(took)
	j.advanceTo(d)
	j.mu.Unlock()
	j.saveCheckpoint(storage.Position{})
	if recovered {
		logger.Info("the backend takes records again")
	}
}

// advanceTo moves the position behind a batch. It needs the mutex.
func (j *Journal) advanceTo(d *delivery) {
	if d.End == (storage.Position{}) { // there is no segment
		return
	}
	if d.End.Segment > j.position.Segment {
		signal(j.tidy) // there may be one to seal
	}
	j.position = d.End
	j.pendingBytes -= d.bytes
	for _, id := range d.records {
		if p, waits := j.pending[id]; waits && p.last.Before(d.End) {
			delete(j.pending, id)
		}
	}
	if d.gap {
		maps.DeleteFunc(j.pending, func(_ uuid.UUID, p pending) bool { return p.last.Before(d.End) })
	}
	if len(d.records) >= batchEntries && len(j.pending) == 0 {
		j.pending = map[uuid.UUID]pending{} // a map keeps the room that a backlog needed
	}
	close(j.progress)
	j.progress = make(chan struct{})
}
