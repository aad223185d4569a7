package journal

import (
	"context"
	"math"
	"time"
)

const (
	// batchEntries and batchBytes (of metadata) bound a batch where the backend does
	// not.
	batchEntries = 512
	batchBytes   = 4 << 20
	// pace is the least time from one batch that was not full to the next, busyPace
	// from one that had at least busyEntries: of small batches, a backend writes the
	// same pages again and again.
	pace        = 50 * time.Millisecond
	busyPace    = 4 * pace
	busyEntries = 8

	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second

	never = math.MaxInt
)

// drain brings the backend up to date until the journal is closed and the
// backend has everything, or ctx ends.
func (j *Journal) drain(ctx context.Context) {
	defer close(j.drained)
	defer j.closeSegment()
	if !j.connect(ctx) {
		return
	}
	for {
		start := time.Now()
		d := j.readBatch(ctx)
		j.mu.Lock()
		// That a segment is over the backend must know before it goes.
		empty := d.entries == 0 && len(d.losses) == 0 && len(d.released) == 0 && d.End.Segment <= j.position.Segment
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
		j.mu.Lock()
		losses := j.losses != nil
		j.mu.Unlock()
		if losses { // while nothing is appended, nobody else saves them
			j.turn.Lock()
			j.saveLosses()
			j.turn.Unlock()
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
	if c := &j.cursor; c.segment != nil {
		more = c.scan.end < c.segment.size || c.segment.closed
	} else {
		i, _ := j.find(c.at.Segment)
		more = i < len(j.raw)
	}
	if more = more || j.released; more || j.settled {
		j.mu.Unlock()
		return more
	}
	j.threshold = 1
	j.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-j.wake:
	}
	j.mu.Lock()
	j.threshold = never
	j.mu.Unlock()
	return ctx.Err() == nil
}

// awaitBatch waits for a batch's worth of entries, but no longer than d.
func (j *Journal) awaitBatch(ctx context.Context, d time.Duration) {
	j.mu.Lock()
	if d <= 0 || j.closed || j.waiting >= batchEntries {
		j.mu.Unlock()
		return
	}
	j.threshold = batchEntries
	j.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-j.wake:
	case <-timer.C:
	}
	j.mu.Lock()
	j.threshold = never
	j.mu.Unlock()
}
