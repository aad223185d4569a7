package sqlite

import (
	"database/sql/driver"
	"slices"
	"sync"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// source is what the column engine asks of the database for one query.
type source struct {
	loader
	// mu is held while a goroutine uses the connection.
	mu       *sync.Mutex
	org      string
	orgID    uint32 // 0 if no record has the organisation
	contents storage.Contents
	files    *columnFiles
}

// lock makes the connection this goroutine's until it calls what lock returns.
func (s source) lock() (unlock func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// Between implements columnar.Source.
func (s source) Between(after, to int64, limit int, chunk func() *columnar.Chunk) (rows int, err error) {
	defer s.lock()()
	return s.loader.Between(after, to, limit, chunk)
}

// Keys implements columnar.Source.
func (s source) Keys(keys []int64, chunk func() *columnar.Chunk) error {
	defer s.lock()()
	return s.loader.Keys(keys, chunk)
}

// Regions implements columnar.Source.
func (s source) Regions(from, to int64) ([]columnar.Region, error) {
	defer s.lock()()
	return s.r.regions(s.ctx, from, to)
}

// Changed implements columnar.Source.
func (s source) Changed(after, to int64) ([]int64, error) {
	defer s.lock()()
	return s.r.c.integers(s.ctx, "SELECT n FROM column_changes WHERE n > ? AND n <= ? ORDER BY n", after, to)
}

// Damaged implements columnar.Source.
func (s source) Damaged(x columnar.Region) { s.files.report(x) }

// Name implements columnar.Source.
func (s source) Name(kind, text string) (uint32, error) {
	defer s.lock()()
	return s.r.name(s.ctx, kind, text)
}

// PropertyValue implements columnar.Source.
func (s source) PropertyValue(property, text string) (uint32, error) {
	return s.Name(propertyKind(property), text)
}

// Texts implements columnar.Source.
func (s source) Texts(ids []uint32) ([]string, error) {
	defer s.lock()()
	return s.r.texts(s.ctx, ids)
}

// Properties implements columnar.Source.
func (s source) Properties(property string, from, to int64, each func(key int64, value uint32)) error {
	defer s.lock()()
	const query = "SELECT n, label FROM labels WHERE " + inBuckets + " AND +label IN (SELECT id FROM names WHERE kind = ?) AND n BETWEEN ? AND ?"
	return s.r.c.query(s.ctx, query, []driver.Value{bucketOf(from), bucketOf(to), propertyKind(property), from, to}, func(row []driver.Value) error {
		each(row[0].(int64), uint32(row[1].(int64)))
		return nil
	})
}

// WithProperty implements columnar.Source.
func (s source) WithProperty(value uint32, from, to int64) ([]int64, error) {
	defer s.lock()()
	return s.r.c.integers(s.ctx, "SELECT n FROM labels WHERE "+inBuckets+" AND label = ? AND n BETWEEN ? AND ?", bucketOf(from), bucketOf(to), int64(value), from, to)
}

// Scores implements columnar.Source.
func (s source) Scores(from, to int64, each func(columnar.Score)) error {
	defer s.lock()()
	return s.scores(from, to, each)
}

// Roots implements columnar.Source.
func (s source) Roots(ids []string, each func(place int, key int64)) error {
	defer s.lock()()
	return s.r.c.query(s.ctx, "SELECT r.n, id.key FROM json_each(?) id CROSS JOIN requests r ON r.request_id = unhex(id.value, '-') AND r.org = ?",
		[]driver.Value{compactJSON(ids), int64(s.orgID)}, func(row []driver.Value) error {
			each(int(row[1].(int64)), row[0].(int64))
			return nil
		})
}

var _ columnar.Source = source{}

// Chosen implements columnar.Source.
func (s source) Chosen(f storage.Filter, from, to int64, scored bool) (keys []int64, err error) {
	defer s.lock()()
	where := condition{ctx: s.ctx, r: s.r, from: from, to: to}
	part, isLeaf := f.(*storage.Leaf)
	if isLeaf && part.Op == storage.Equals && labelKind(part) != "" {
		// The columns know the organisation of each request.
		where.write("r."+inBuckets+" AND r.label = ?", bucketOf(from), bucketOf(to), where.lookup(labelKind(part), part.Text))
	} else {
		where.query(&storage.RequestQuery{Org: s.org, Filter: f})
	}
	where.write(" AND "+where.key()+" BETWEEN ? AND ?", from, to)
	if scored {
		where.and(where.AnyScore())
	}
	where.write(" ORDER BY " + where.key())
	if where.err != nil {
		return nil, where.err
	}
	err = where.each(s.contents, false, false, func() error {
		table, args := " FROM labels r", []driver.Value(nil)
		if where.filter != nil {
			table, args = where.source()
		}
		found, err := s.r.c.integers(s.ctx, "SELECT r.n"+table+" WHERE "+where.sql.String(), append(args, where.args...)...)
		if err == nil && where.filter != nil && !where.filter.Exact() {
			found, err = s.match(found, &where)
		}
		keys = append(keys, found...)
		return err
	})
	return keys, err
}

// match keeps the keys of records that match the rest of the filter that found them.
func (s source) match(keys []int64, found *condition) (kept []int64, err error) {
	kept = keys[:0]
	contents, reads := s.contents.Reader(storage.ContentParts(found.filter.Residual)), found.reads()
	defer contents.Close()
	m := found.matcher(s.contents, storage.NewCancelCheck(s.ctx.Err))
	for keys := range slices.Chunk(keys, matchChunk) {
		records, err := s.r.project(s.ctx, reads, keys)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			r.record.Org = s.org // whatever was read of it: who reads content compares the key
			ok := m.Match(&r.record, func() (c *storage.Content) {
				c, err = contents.Content(s.ctx, &r.record)
				return c
			})
			if err != nil {
				return nil, err
			}
			if ok {
				kept = append(kept, r.n)
			}
		}
	}
	return kept, nil
}
