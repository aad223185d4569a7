package journal

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/storage"
)

// drainTimeout bounds how long a read of one record waits for the drain.
const drainTimeout = time.Second

// flushSoon is Flush for as long as a read of one record waits for the drain.
func (j *Journal) flushSoon(ctx context.Context) error { return j.flushWithin(ctx, drainTimeout) }

// flushWithin is Flush for at most a time.
func (j *Journal) flushWithin(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return j.Flush(ctx)
}

// Flush waits until everything appended before the call is in the backend, and until a backend that
// has lost records has again what the segments have of these.
func (j *Journal) Flush(ctx context.Context) error {
	pruned := j.checkpoints.pruned()
	j.mu.Lock()
	var target storage.Position
	if n := len(j.log.unsealed); n > 0 {
		target = storage.Position{Segment: j.log.unsealed[n-1].number, Ordinal: j.log.unsealed[n-1].entries}
	}
	for j.delivery.position.Before(target) || j.delivery.rebuilds(pruned) {
		progress := j.delivery.progress
		j.mu.Unlock()
		signal(j.delivery.wake) // the drain need not rest
		select {
		case <-progress:
		case <-j.delivery.ended:
			return errClosed
		case <-ctx.Done():
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.delivery.err != nil {
				return errors.Join(ctx.Err(), storage.ErrUnavailable, j.delivery.err)
			}
			return ctx.Err()
		}
		j.mu.Lock()
	}
	j.mu.Unlock()
	return nil
}
