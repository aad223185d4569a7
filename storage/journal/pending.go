package journal

import (
	"context"

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
