package money

import (
	"context"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// Creators knows who created the keys of an organisation as their own: budgets count the calls of such
// a key as its creator's. It keeps what it has found out, and is for one goroutine.
type Creators struct {
	org   *control.Organisation // its Log is nil if the organisation has none
	known map[string]*control.Creator
}

// Creators returns who created the keys of an organisation.
func (m *Budgets) Creators(org string) (*Creators, error) {
	store, err := m.store(org)
	if err != nil {
		return nil, err
	}
	log, err := store.ControlIfAny()
	return &Creators{&control.Organisation{Log: log, Name: org}, make(map[string]*control.Creator)}, err
}

// AsCaller returns a recorded call as if the creator of its key had made it, r itself for a key that
// nobody created as their own. A key keeps its creator when it is deleted.
func (c *Creators) AsCaller(ctx context.Context, r *storage.Record) (*storage.Record, error) {
	if c.org.Log == nil || r.KeyID == "" {
		return r, nil
	}
	by, known := c.known[r.KeyID]
	if !known {
		var err error
		if by, err = c.org.CreatorOf(ctx, r.KeyID); err != nil {
			return nil, err
		}
		c.known[r.KeyID] = by
	}
	if by == nil {
		return r, nil
	}
	return by.AsCaller(r), nil
}
