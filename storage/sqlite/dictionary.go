package sqlite

import (
	"context"
	"database/sql/driver"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/storage"
)

type nameKey struct{ kind, name string }

type nameEntry struct {
	id   driver.Value // an int64, made once for all records
	seen storage.Timestamp
}

// dictionary is the writer's side of the table names.
type dictionary struct {
	c      *conn
	cached cache[nameKey, nameEntry]
	// next is the next free id. No id is ever given twice while readers may
	// remember what it meant.
	next int64
	// block is the number of ids of a block.
	block int64
	// oldest is, for each block of ids, a time before which no name of the block was last
	// seen.
	oldest []storage.Timestamp
	// used are the ids that records were given while somebody looks for unused names, else nil.
	used map[int64]struct{}
}

// forgetOldest makes the next pruneNames look at all names.
func (d *dictionary) forgetOldest() {
	d.oldest = slices.Repeat([]storage.Timestamp{math.MinInt64}, int(d.next/d.block)+1)
}

// seenStep is how far behind names.seen may be, in milliseconds, so that a name
// which every record uses is not updated by every record.
const seenStep = storage.Timestamp(24 * time.Hour / time.Millisecond)

// id is the id of a name, new or not, that a record of the time at uses.
func (d *dictionary) id(kind, name string, at storage.Timestamp) (driver.Value, error) {
	key := nameKey{kind, name}
	entry, ok := d.cached.get(key)
	if !ok {
		var err error
		if entry, err = d.insert(key, at); err != nil {
			return nil, err
		}
		if entry.id == nil {
			if entry, err = d.find(key); err != nil {
				return nil, err
			}
		}
		d.cached.put(key, entry)
	}
	if d.used != nil {
		d.used[entry.id.(int64)] = struct{}{}
	}
	if at > entry.seen+seenStep {
		entry.seen = at
		if _, err := d.c.exec("UPDATE names SET seen = ? WHERE id = ?", int64(at), entry.id); err != nil {
			return nil, err
		}
		d.cached.put(key, entry)
	}
	return entry.id, nil
}

// insert inserts a name, unless it is there, in which case the entry is empty. Most that
// are not known are new: sessions.
func (d *dictionary) insert(key nameKey, at storage.Timestamp) (entry nameEntry, err error) {
	result, err := d.c.exec("INSERT INTO names (id, kind, name, hash, seen) SELECT ?4, ?1, ?2, ?3, ?5 WHERE NOT EXISTS (SELECT 1 FROM names WHERE "+isName+")",
		append(nameArgs(key.kind, key.name), d.next, int64(at))...)
	if err != nil {
		return entry, err
	}
	changes, err := result.RowsAffected()
	if changes == 0 || err != nil {
		return entry, err
	}
	if block := int(d.next / d.block); block == len(d.oldest) {
		d.oldest = append(d.oldest, at)
	} else {
		d.oldest[block] = min(d.oldest[block], at)
	}
	entry = nameEntry{d.next, at}
	d.next++
	return entry, nil
}

func (d *dictionary) find(key nameKey) (entry nameEntry, err error) {
	err = d.c.query(context.Background(), "SELECT id, seen FROM names WHERE "+isName,
		nameArgs(key.kind, key.name), func(row []driver.Value) error {
			entry = nameEntry{row[0], storage.Timestamp(row[1].(int64))}
			return nil
		})
	return entry, err
}

// blocksAtOnce bounds the blocks of a step: most names are in use, and a transaction for
// each block costs more than to look at it.
const blocksAtOnce = 16

// pruneNames deletes, once a day, names that no record created since uses. An index of when
// names were seen would cost each batch more than looking at the blocks in which some name was
// not seen since: the blocks of the oldest ids. Unused names are deleted in the order of their
// hashes, because each name would else touch another page.
func (w *writer) pruneNames(since storage.Timestamp) (more bool, err error) {
	if len(w.unused) == 0 {
		if w.pruneFrom == 0 && since < w.pruned+seenStep {
			return false, nil
		}
		if err := w.findUnused(since); err != nil {
			return false, err
		}
		if w.pruneFrom == len(w.names.oldest) {
			w.pruneFrom, w.pruned = 0, since
		}
	}
	if len(w.unused) > 0 {
		var ids []uint32
		for _, x := range w.unused[:min(len(w.unused), w.bounds.pruneRows)] {
			ids = append(ids, uint32(x))
		}
		w.unused = w.unused[len(ids):]
		w.names.cached.clear()
		_, err = w.c.exec("DELETE FROM names WHERE id IN (SELECT value FROM json_each(?)) AND seen < ?", compactJSON(ids), int64(since))
	}
	return w.pruneFrom > 0 || len(w.unused) > 0, err
}

// findUnused looks for names to delete in the next blocks.
func (w *writer) findUnused(since storage.Timestamp) error {
	blocks, ctx := w.names.oldest, context.Background()
	for looks := 0; w.pruneFrom < len(blocks) && looks < blocksAtOnce; w.pruneFrom++ {
		if blocks[w.pruneFrom] >= since {
			continue
		}
		looks++
		from, until := int64(w.pruneFrom)*w.names.block, int64(w.pruneFrom+1)*w.names.block
		oldest, err := w.c.integer(ctx, "SELECT coalesce(min(seen), ?) FROM names WHERE id >= ? AND id < ?", int64(math.MaxInt64), from, until)
		if err != nil {
			return err
		}
		if blocks[w.pruneFrom] = max(storage.Timestamp(oldest), since); storage.Timestamp(oldest) >= since {
			continue
		}
		unused, err := w.c.integers(ctx, "SELECT hash << 32 | id FROM names WHERE id >= ? AND id < ? AND seen < ?", from, until, int64(since))
		if err != nil {
			return err
		}
		w.unused = append(w.unused, unused...)
	}
	slices.Sort(w.unused)
	return nil
}
