package journal

import (
	"cmp"
	"context"
	"time"

	"github.com/weirhq/weir/storage"
)

// limits are those of the backend, or ours.
func (j *Journal) limits() storage.Limits {
	l := j.backend.Limits()
	return storage.Limits{
		Entries: cmp.Or(l.Entries, batchEntries), Bytes: cmp.Or(l.Bytes, batchBytes), Delay: cmp.Or(l.Delay, pace),
	}
}

// connect opens the backend, however often it takes. It is false when ctx ended,
// or the journal was closed meanwhile.
func (j *Journal) connect(ctx context.Context) bool {
	host := &storage.Host{Journal: j.identity, Position: j.position, Contents: j}
	first := true
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		position, err := j.backend.Open(ctx, host)
		if err == nil {
			err = j.relocate(position)
		}
		if err != nil && ctx.Err() == nil {
			j.noteFailure(err)
		}
		if err == nil {
			j.mu.Lock()
			j.err, j.failingSince = nil, time.Time{}
			j.mu.Unlock()
			close(j.connected)
		}
		if first {
			close(j.tried)
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
		case <-j.wake:
		case <-time.After(wait):
		}
	}
}
