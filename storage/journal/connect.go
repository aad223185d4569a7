package journal

import (
	"cmp"
	"context"
	"errors"
	"io"
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

// relocate goes on from where the backend says it is: behind the journal's
// position after a power cut or a restored backup, or before it when the journal
// could not write its own. What lies between counts otherwise than it did.
func (j *Journal) relocate(to storage.Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	from := j.position
	j.cursor.at = to
	if to == from {
		return nil
	}
	j.position, j.cut = to, storage.Position{}
	low, high, sign := to, from, int64(1) // the backend has less
	if from.Before(to) {
		low, high, sign = from, to, -1
	}
	i, _ := j.find(low.Segment)
	for _, s := range j.raw[i:] {
		if !(storage.Position{Segment: s.number}).Before(high) {
			break
		}
		if err := j.recount(s, low, high, sign); err != nil {
			return err
		}
	}
	j.heldCount = len(j.held.positions())
	j.released = j.heldCount > 0
	j.next = max(j.next, to.Segment+1)
	return nil
}

// recount takes the entries of a segment between two positions for ones that the
// backend has not, or has if sign is -1. It needs the mutex.
func (j *Journal) recount(s *segment, low, high storage.Position, sign int64) error {
	sc := s.scanner(0, scanWindow)
	if s.number == low.Segment && low.Ordinal > 0 {
		sc = s.scanner(low.Ordinal, scanWindow)
		_, _ = sc.seek(low.Ordinal)
	}
	for {
		from := sc.off
		e, err := sc.next()
		at := storage.Position{Segment: s.number, Ordinal: e.ordinal}
		if errors.Is(err, io.EOF) || err == nil && !at.Before(high) {
			return nil
		}
		if err != nil {
			return err
		}
		j.pendingBytes += sign * (sc.off - from)
		var r record
		if e.kind != kindRecord || identityWire.parse(e.metadata, &r) != nil {
			continue
		}
		p, waits := j.pending[r.ID]
		switch {
		case sign > 0 && (!waits || p.last.Before(at)):
			j.pending[r.ID] = pending{r.Org, at}
		case sign < 0:
			if waits && p.last.Before(high) {
				delete(j.pending, r.ID)
			}
			switch {
			case r.EndState != storage.Interrupted:
				delete(j.held, r.ID) // the backend has it, with what was held
			case !j.recovered[at]:
				j.restore(s, &e) // perhaps it was held back
			}
		}
		if r.Number > 0 {
			s.exchanges += sign
			j.ledger.waiting += sign
			j.ledger.recorded -= sign
		}
	}
}
