package columnar

import (
	"slices"
	"sync"
)

// tailProperties are the columns of properties that queries have read from the Source for a chunk
// of a Tail. The copies of the chunk share them. A row's properties never change: a request that
// changes is deleted, and appended as another row.
type tailProperties struct {
	limit int // of properties

	// mu guards columns, and is not held while the Source is read.
	mu      sync.Mutex
	columns map[string]tailProperty
}

// tailProperty is a column of ids, 0 for rows that lack the property. It never changes.
type tailProperty struct {
	ids []uint32
	// deleted is how many rows had a tombstone when the column was read: it may lack their values.
	deleted int
}

// column returns the column of a chunk, nil if no row has the property. It reads those rows from the
// source that no query has read before.
func (t *tailProperties) column(c *Chunk, name string, source Source) ([]uint32, error) {
	deleted := len(c.n) - c.live
	t.mu.Lock()
	known := t.columns[name]
	t.mu.Unlock()
	if known.deleted > deleted { // the chunk is an older copy
		known = tailProperty{}
	}
	if len(known.ids) >= len(c.n) {
		return known.ids[:len(c.n)], nil
	}
	fresh := tailProperty{ids: make([]uint32, len(c.n)), deleted: deleted}
	copy(fresh.ids, known.ids)
	unread := c.n[len(known.ids):]
	rows := make(map[int64]int, len(unread))
	for i, n := range unread {
		if row := len(known.ids) + i; c.org[row] != 0 {
			rows[n] = row
		}
	}
	err := source.Properties(name, slices.Min(unread), slices.Max(unread), func(key int64, value uint32) {
		if row, found := rows[key]; found {
			fresh.ids[row] = value
		}
	})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, there := t.columns[name]; deleted >= now.deleted && len(fresh.ids) > len(now.ids) && (there || len(t.columns) < t.limit) {
		t.columns[name] = fresh
	}
	return fresh.ids, nil
}
