package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"sync"
	"time"

	"github.com/weirhq/weir/storage"
)

// The number of names that a cache holds before it begins to forget.
const (
	generation     = 8 << 10
	nameGeneration = 32 << 10  // of those that records have: some 5 MB
	textGeneration = 256 << 10 // of those that groups have: some 20 MB
)

// cache keeps what was used lately: between one and two generations of entries.
// It is not safe for concurrent use.
type cache[K comparable, V any] struct {
	generation int
	young, old map[K]V
}

func (c *cache[K, V]) get(k K) (V, bool) {
	v, ok := c.young[k]
	if ok {
		return v, true
	}
	if v, ok = c.old[k]; ok {
		c.put(k, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(k K, v V) {
	if c.young == nil || len(c.young) >= cmp.Or(c.generation, generation) {
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[k] = v
}

func (c *cache[K, V]) clear() { c.young, c.old = nil, nil }

// The kinds of names that no column refers to.
const (
	assetKind = "asset"
	scoreKind = "score"
)

// propertyKind is the kind of the values of one property.
func propertyKind(name string) string { return "property:" + name }

type nameKey struct{ kind, name string }

type nameEntry struct {
	id   driver.Value // an int64, made once for all records
	seen storage.Timestamp
}

// dictionary is the writer's side of the table names.
type dictionary struct {
	c     *conn
	known cache[nameKey, nameEntry]
	// next is the next free id. No id is ever given twice while readers may
	// remember what it meant.
	next int64
}

// seenStep is how far behind names.seen may be, in milliseconds, so that a name
// which every record uses is not updated by every record.
const seenStep = storage.Timestamp(24 * time.Hour / time.Millisecond)

// id is the id of a name, new or not, that a record of the time at uses.
func (d *dictionary) id(kind, name string, at storage.Timestamp) (driver.Value, error) {
	key := nameKey{kind, name}
	entry, ok := d.known.get(key)
	if !ok {
		var err error
		if entry, err = d.find(key); err != nil {
			return nil, err
		}
	}
	switch {
	case entry.id == nil:
		entry = nameEntry{d.next, at}
		if _, err := d.c.exec("INSERT INTO names (id, kind, name, seen) VALUES (?, ?, ?, ?)", entry.id, kind, name, int64(at)); err != nil {
			return nil, err
		}
		d.next++
	case at > entry.seen+seenStep:
		entry.seen = at
		if _, err := d.c.exec("UPDATE names SET seen = ? WHERE id = ?", int64(at), entry.id); err != nil {
			return nil, err
		}
	case ok:
		return entry.id, nil
	}
	d.known.put(key, entry)
	return entry.id, nil
}

func (d *dictionary) find(key nameKey) (entry nameEntry, err error) {
	err = d.c.query(context.Background(), "SELECT id, seen FROM names WHERE kind = ? AND name = ?",
		[]driver.Value{key.kind, key.name}, func(row []driver.Value) error {
			entry = nameEntry{row[0], storage.Timestamp(row[1].(int64))}
			return nil
		})
	return entry, err
}

// nameReader is the readers' side of the table names: what an id means.
type nameReader struct {
	mu    sync.Mutex
	known cache[int64, string]
	// texts are those that analytics ask for.
	texts cache[uint32, string]
}

// names answers the names of ids.
func (r *nameReader) names(ctx context.Context, c *conn, ids map[int64]string) error {
	var unknown []int64
	r.mu.Lock()
	for id := range ids {
		name, ok := r.known.get(id)
		if !ok {
			unknown = append(unknown, id)
		}
		ids[id] = name
	}
	r.mu.Unlock()
	if unknown == nil {
		return nil
	}
	err := c.query(ctx, "SELECT id, name FROM names WHERE id IN (SELECT value FROM json_each(?))",
		[]driver.Value{compactJSON(unknown)}, func(row []driver.Value) error {
			ids[row[0].(int64)] = row[1].(string)
			return nil
		})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range unknown {
		r.known.put(id, ids[id])
	}
	return nil
}
