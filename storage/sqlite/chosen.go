package sqlite

import (
	"database/sql/driver"
	"slices"

	"github.com/weirhq/weir/storage"
)

// keySet is a set of keys of requests, in ascending order.
type keySet struct {
	keys []int64
	// next is where the key after the last one that was looked for is likely to
	// be.
	next int
}

// has is fast for keys that ascend.
func (s *keySet) has(n int64) bool {
	for range 4 {
		switch {
		case s.next == len(s.keys) || s.keys[s.next] > n:
			if s.next == 0 || s.keys[s.next-1] < n {
				return false
			}
			s.next--
		case s.keys[s.next] == n:
			return true
		default:
			s.next++
		}
	}
	var found bool
	s.next, found = slices.BinarySearch(s.keys, n)
	return found
}

// chosenOf are the requests of a chunk of which the residual is true. Chunks of
// requests that came out of order overlap: they are asked for together, once.
func (s *scan) chosenOf(c *chunk, from, to int64) (*keySet, error) {
	if c.sorted {
		return s.chosen(from, to)
	}
	var err error
	if s.all == nil {
		s.all, err = s.chosen(s.from, s.to)
	}
	return s.all, err
}

// chosen asks the database for the requests from a key to another of which the
// residual is true.
func (s *scan) chosen(from, to int64) (*keySet, error) {
	where := condition{ctx: s.ctx, r: s.r, residual: storage.All{}}
	query := "SELECT r.n FROM requests r WHERE "
	part, isLeaf := s.residual.(*storage.Leaf)
	if isLeaf && part.Op == storage.Equals && labelKind(part) != "" {
		// The columns know whose the requests are.
		query = "SELECT r.n FROM labels r WHERE "
		where.write("r."+inBuckets+" AND r.label = ?", bucketOf(from), bucketOf(to), where.lookup(labelKind(part), part.Text))
	} else {
		where.query(&storage.RequestQuery{Org: s.org, Filter: s.residual})
		if where.byLabel {
			query = "SELECT r.n FROM labels l CROSS JOIN requests r ON r.n = l.n WHERE "
		}
	}
	key := "r.n"
	if where.byLabel {
		key = "l.n"
	}
	where.write(" AND "+key+" BETWEEN ? AND ?", from, to)
	if s.scores {
		where.write(" AND r.n IN (SELECT n FROM scores)")
	}
	where.write(" ORDER BY " + key)
	if where.err != nil {
		return nil, where.err
	}
	set := new(keySet)
	err := s.r.c.query(s.ctx, query+where.sql.String(), where.args, func(row []driver.Value) error {
		set.keys = append(set.keys, row[0].(int64))
		return nil
	})
	if err == nil && !where.exact() {
		err = s.match(set, where.residual, where.reads())
	}
	return set, err
}

// match keeps those keys whose records match.
func (s *scan) match(set *keySet, f storage.Filter, reads *projection) error {
	kept := set.keys[:0]
	contents := s.contents.Reader(storage.ContentParts(f))
	defer contents.Close()
	m := storage.NewMatcher(f, storage.NewCancelCheck(s.ctx.Err))
	for keys := range slices.Chunk(set.keys, matchChunk) {
		records, err := s.r.project(s.ctx, reads, keys)
		if err != nil {
			return err
		}
		for _, r := range records {
			ok := m.Match(&r.Record, func() (c *storage.Content) {
				c, err = contents.Content(s.ctx, &r.Record)
				return c
			})
			if err != nil {
				return err
			}
			if ok {
				kept = append(kept, r.n)
			}
		}
	}
	set.keys = kept
	return nil
}
