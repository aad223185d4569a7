package sqlite

import (
	"cmp"
	"database/sql/driver"
	"math"
	"slices"

	"github.com/weirhq/weir/storage"
)

// contentPage is the number of keys of a segment that are read at a time.
const contentPage = 2048

// contentKeys are the keys of the records with content in a segment, in the order of time. Keys
// from first to last are not read yet; first is the one to read next.
type contentKeys struct {
	segment     int64
	first, last int64
	// candidate reports whether a search may find an entry. It is known once begun.
	candidate func(ordinal uint32) bool
	begun     bool
}

// each calls do once, for a statement with the condition. If the index of content finds the records,
// it calls do for the keys of those of which the rest of the filter can be true: in
// portions in the order of time, or for all at once. Each portion is twice the size of the one before,
// because do may begin with work that does not depend on the number of keys.
func (c *condition) each(contents storage.Contents, desc, atOnce bool, do func() error) error {
	if !c.byContent {
		return do()
	}
	segments, err := c.contentSegments(desc)
	if err != nil {
		return err
	}
	search := searchFor(contents, c.filter.Residual)
	compare := cmp.Compare[int64]
	if desc {
		compare = func(a, b int64) int { return cmp.Compare(b, a) }
	}
	chunk := matchChunk
	if atOnce {
		chunk = math.MaxInt / 2
	}
	var keys []int64
	ordered := 0 // keys that no key comes between any more
	for len(segments) > 0 {
		// The next keys of all are in the segment whose unread keys come first.
		slices.SortFunc(segments, func(a, b contentKeys) int { return compare(a.first, b.first) })
		found, more, err := c.readContentKeys(&segments[0], search, desc)
		if err != nil {
			return err
		}
		if !more {
			segments = segments[1:]
		}
		keys = append(keys, found...)
		slices.SortFunc(keys[ordered:], compare)
		ordered = len(keys)
		for _, s := range segments {
			i, _ := slices.BinarySearchFunc(keys[:ordered], s.first, compare)
			ordered = min(ordered, i)
		}
		for ordered >= chunk || ordered > 0 && len(segments) == 0 {
			n := min(ordered, chunk)
			c.keys = compactJSON(keys[:n])
			if err := do(); err != nil {
				return err
			}
			keys, ordered = keys[n:], ordered-n
			chunk *= 2
		}
	}
	return nil
}

// contentSegments lists the segments that have content of records in the bounds of the condition.
func (c *condition) contentSegments(desc bool) (segments []contentKeys, err error) {
	const (
		next   = "SELECT min(content_segment) FROM details INDEXED BY " + withContent + " WHERE content_segment > "
		bound  = " FROM details INDEXED BY " + withContent + " WHERE content_segment = s AND n BETWEEN ? AND ?)"
		listed = "WITH RECURSIVE segments (s) AS (" + next + "-1 UNION ALL SELECT (" + next + "s) FROM segments WHERE s IS NOT NULL)" +
			" SELECT s, (SELECT min(n)" + bound + ", (SELECT max(n)" + bound + " FROM segments WHERE s IS NOT NULL"
	)
	err = c.r.c.query(c.ctx, listed, []driver.Value{c.from, c.to, c.from, c.to}, func(row []driver.Value) error {
		first, some := row[1].(int64)
		if !some {
			return nil
		}
		s := contentKeys{segment: row[0].(int64), first: first, last: row[2].(int64)}
		if desc {
			s.first, s.last = s.last, s.first
		}
		segments = append(segments, s)
		return nil
	})
	return segments, err
}

// readContentKeys reads the next keys of a segment that a search may find.
func (c *condition) readContentKeys(s *contentKeys, search storage.ContentSearch, desc bool) (keys []int64, more bool, err error) {
	if !s.begun {
		s.candidate, s.begun = search.Candidates(uint64(s.segment)), true
	}
	if s.candidate == nil {
		return nil, false, nil
	}
	from, to, direction, step := s.first, s.last, "", int64(1)
	if desc {
		from, to, direction, step = to, from, " DESC", -1
	}
	rows := 0
	err = c.r.c.query(c.ctx, "SELECT n, content_ordinal FROM details INDEXED BY "+withContent+" WHERE content_segment = ? AND n BETWEEN ? AND ? ORDER BY n"+direction+" LIMIT ?",
		[]driver.Value{s.segment, from, to, int64(contentPage)}, func(row []driver.Value) error {
			rows++
			n := row[0].(int64)
			ordinal, _ := row[1].(int64) // NULL is 0
			if s.first = n + step; s.candidate(uint32(ordinal)) {
				keys = append(keys, n)
			}
			return nil
		})
	return keys, rows == contentPage, err
}

// recordMatcher matches records one after the other, and reads no content that a search rules out.
type recordMatcher struct {
	*storage.Matcher
	search storage.ContentSearch
	// candidates are what search has answered of segments.
	candidates map[uint64]func(ordinal uint32) bool
}

// maxCandidates bounds the segments that a recordMatcher remembers: records are read in the order of
// time, and so are their segments, nearly.
const maxCandidates = 16

// matcher matches the rest of the filter on records that the condition has found.
func (c *condition) matcher(contents storage.Contents, cancel *storage.CancelCheck) *recordMatcher {
	m := &recordMatcher{Matcher: storage.NewMatcher(c.filter.Residual, cancel), search: anything{}, candidates: make(map[uint64]func(uint32) bool)}
	if !c.byContent { // else each has asked the search
		m.search = searchFor(contents, c.filter.Residual)
	}
	return m
}

// Match is the method of storage.Matcher.
func (m *recordMatcher) Match(r *storage.Record, load func() *storage.Content) bool {
	if r.Content == (storage.ContentRef{}) {
		return m.Matcher.Match(r, load)
	}
	candidate, known := m.candidates[r.Content.Segment]
	if !known {
		if len(m.candidates) == maxCandidates {
			clear(m.candidates)
		}
		candidate = m.search.Candidates(r.Content.Segment)
		m.candidates[r.Content.Segment] = candidate
	}
	return candidate != nil && candidate(r.Content.Ordinal) && m.Matcher.Match(r, load)
}

// searchFor begins a search if contents can rule out content.
func searchFor(contents storage.Contents, f storage.Filter) storage.ContentSearch {
	if s, ok := contents.(storage.ContentSearcher); ok {
		return s.Search(f)
	}
	return anything{}
}

// anything is a search that rules out no content.
type anything struct{}

func (anything) Candidates(uint64) func(uint32) bool { return func(uint32) bool { return true } }
