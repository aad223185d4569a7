package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// pending is a record that the backend has not taken yet.
type pending struct {
	org string
	// last is where its newest version stands.
	last storage.Position
}

func before(a, b storage.Position) bool {
	return a.Segment < b.Segment || a.Segment == b.Segment && a.Ordinal < b.Ordinal
}

// Claim reserves an id that a client chose. It is false when the id is
// claimed, pending, or known to the backend, and when the backend cannot tell.
func (j *Journal) Claim(ctx context.Context, id uuid.UUID) bool {
	j.mu.Lock()
	_, claimed := j.claims[id]
	_, waits := j.pending[id]
	if claimed || waits {
		j.mu.Unlock()
		return false
	}
	j.claims[id] = struct{}{}
	j.mu.Unlock()
	if exists, err := j.backend.Exists(ctx, id); exists || err != nil {
		j.Release(id)
		return false
	}
	return true
}

// Release gives up a claim, once the record was appended or will not be.
func (j *Journal) Release(id uuid.UUID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.claims, id)
}

// Pending tells whether the organisation has a record of that id which was
// appended and is not in the backend yet.
func (j *Journal) Pending(org string, id uuid.UUID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, waits := j.pending[id]
	return waits && p.org == org
}

// replay counts what the backend has not taken of earlier processes.
func (j *Journal) replay() (left backlog, err error) {
	j.cursor.at = j.position
	i, _ := j.find(j.position.Segment)
	for _, s := range j.raw[i:] {
		sc := s.scanner(0, scanWindow)
		if s.number == j.position.Segment && j.position.Ordinal > 0 {
			sc = s.scanner(j.position.Ordinal, scanWindow)
			_, _ = sc.seek(j.position.Ordinal)
		}
		from := sc.off
		for {
			e, err := sc.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return left, fmt.Errorf("reading %s: %w", s.path, err)
			}
			var r record
			var l loss
			switch {
			case e.kind == kindRecord && identityWire.parse(e.metadata, &r) == nil:
				j.pending[r.ID] = pending{r.Org, storage.Position{Segment: s.number, Ordinal: e.ordinal}}
				if r.Number > 0 {
					s.exchanges++
					left.exchanges++
					left.number = max(left.number, r.Number)
				}
			case e.kind == kindLoss && lossWire.parse(e.metadata, &l) == nil:
				left.losses = append(left.losses, l)
			}
		}
		left.damaged += sc.lost
		j.pendingBytes += sc.off - from
	}
	return left, nil
}

// identityWire reads no more of a record than whose it is, and its number.
var identityWire = message[record]{1: recordWire[1], 2: recordWire[2], 72: recordWire[72]}

// Flush waits until everything appended before the call is in the backend.
func (j *Journal) Flush(ctx context.Context) error {
	j.mu.Lock()
	var target storage.Position
	if n := len(j.raw); n > 0 {
		target = storage.Position{Segment: j.raw[n-1].number, Ordinal: j.raw[n-1].entries}
	}
	for before(j.position, target) {
		progress := j.progress
		j.mu.Unlock()
		signal(j.wake) // the drain need not rest
		select {
		case <-progress:
		case <-j.drained:
			return errClosed
		case <-ctx.Done():
			j.mu.Lock()
			defer j.mu.Unlock()
			return errors.Join(ctx.Err(), j.err)
		}
		j.mu.Lock()
	}
	j.mu.Unlock()
	return nil
}
