package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/weirhq/weir/storage/columnar"
)

// The number of names that a cache holds before it begins to forget.
const (
	nameGeneration = 32 << 10 // the writer: some 5 MB
	textGeneration = 64 << 10 // the readers: some 5 MB
)

// cache keeps what was used lately: between one and two generations of entries.
// It is not safe for concurrent use.
type cache[K comparable, V any] struct {
	generation int // entries, above 0
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
	if c.young == nil || len(c.young) >= c.generation {
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[k] = v
}

func (c *cache[K, V]) clear() { c.young, c.old = nil, nil }

// The kinds of names that no column refers to.
const (
	assetKind = "asset"
	scoreKind = columnar.ScoreNames
)

// propertyKind is the kind of the values of one property.
func propertyKind(name string) string { return "property:" + name }

// nameHash spreads texts over 32 bits, so that nobody can make many texts with the same hash.
func nameHash(name []byte) int64 {
	sum := sha256.Sum256(name)
	return int64(int32(binary.BigEndian.Uint32(sum[:])))
}

// compareHash compares a name with the hash that was written with it.
func compareHash(name, hash driver.Value) error {
	if nameHash([]byte(name.(string))) != hash {
		return fmt.Errorf("the name %q: %w", name, errDamaged)
	}
	return nil
}

// isName is true of the name with the nameArgs that are the first arguments.
const isName = "hash = ?3 AND name = ?2 AND +kind = ?1"

func nameArgs(kind, name string) []driver.Value {
	return []driver.Value{kind, name, nameHash([]byte(name))}
}

// name is the id of a name, 0 when no record has it.
func (r reader) name(ctx context.Context, kind, name string) (uint32, error) {
	id, err := r.c.integer(ctx, "SELECT id FROM names WHERE "+isName, nameArgs(kind, name)...)
	return uint32(id), err
}

// textBlock is the number of texts that are read at a time.
const textBlock = 4 << 10

// nameReader is the readers' side of the table names: what an id means.
type nameReader struct {
	mu     sync.Mutex
	cached cache[uint32, string] // guarded by mu
}

func newNameReader() *nameReader {
	return &nameReader{cached: cache[uint32, string]{generation: textGeneration}}
}

// texts returns the names of ids, "" for an id that no name has. The id 0 stands for no text.
func (r reader) texts(ctx context.Context, ids []uint32) ([]string, error) {
	texts := make([]string, len(ids))
	var unknown []uint64 // ids with their places
	r.names.mu.Lock()
	for i, id := range ids {
		if i > 0 && id == ids[i-1] && texts[i-1] != "" {
			texts[i] = texts[i-1]
			continue
		}
		text, ok := r.names.cached.get(id)
		if texts[i] = text; !ok && id != 0 {
			unknown = append(unknown, uint64(id)<<32|uint64(i))
		}
	}
	r.names.mu.Unlock()
	slices.Sort(unknown)
	for block := range slices.Chunk(unknown, textBlock) {
		if err := r.readTexts(ctx, block, texts); err != nil {
			return nil, err
		}
	}
	unknown = slices.CompactFunc(unknown, func(a, b uint64) bool { return a>>32 == b>>32 })
	if len(unknown) > textBlock { // so many are seldom asked for again
		return texts, nil
	}
	r.names.mu.Lock()
	defer r.names.mu.Unlock()
	for _, x := range unknown {
		if text := texts[uint32(x)]; text != "" {
			r.names.cached.put(uint32(x>>32), text)
		}
	}
	return texts, nil
}

// readTexts reads the names of ids that ascend to their places.
func (r reader) readTexts(ctx context.Context, ids []uint64, texts []string) error {
	first, last := int64(ids[0]>>32), int64(ids[len(ids)-1]>>32)
	// Names are numbered as they come: the wanted names mostly follow each other.
	query, args := "SELECT id, name, hash FROM names WHERE id BETWEEN ? AND ? ORDER BY id", []driver.Value{first, last}
	const skipped = 4 // of the names between, for each that is wanted
	if last-first > skipped*int64(len(ids)) {
		wanted := make([]uint64, len(ids))
		for i, x := range ids {
			wanted[i] = x >> 32
		}
		query, args = "SELECT id, name, hash FROM names WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", []driver.Value{compactJSON(wanted)}
	}
	i := 0
	return loader{ctx, r}.query(query, args, func(row []driver.Value) error {
		id := uint64(row[0].(int64))
		for i < len(ids) && ids[i]>>32 < id {
			i++
		}
		if i == len(ids) || ids[i]>>32 != id {
			return nil
		}
		for ; i < len(ids) && ids[i]>>32 == id; i++ {
			texts[uint32(ids[i])] = row[1].(string)
		}
		return compareHash(row[1], row[2])
	})
}
