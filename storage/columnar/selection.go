package columnar

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// selection keeps, of some rows of a chunk, those of which a filter is true, in place and in order.
type selection func(c *Chunk, rows []int32) []int32

// keep makes a selection of a function that decides for a row.
func keep(matches func(c *Chunk, row int) bool) selection {
	return func(c *Chunk, rows []int32) []int32 {
		kept := rows[:0]
		for _, row := range rows {
			if matches(c, int(row)) {
				kept = append(kept, row)
			}
		}
		return kept
	}
}

// join makes the selection of a filter from the selections of its leaves.
func join(f storage.Filter, leaves map[*storage.Leaf]selection) selection {
	b, ok := f.(*storage.Branch)
	if !ok {
		return leaves[f.(*storage.Leaf)]
	}
	operands := storage.Conjuncts
	if b.Or {
		operands = storage.Disjuncts
	}
	var parts []selection
	for part := range operands(f) {
		parts = append(parts, join(part, leaves))
	}
	if b.Or {
		return anyOf(parts)
	}
	return func(c *Chunk, rows []int32) []int32 {
		for _, part := range parts {
			if rows = part(c, rows); len(rows) == 0 {
				break
			}
		}
		return rows
	}
}

// anyOf keeps the rows that any of the parts keeps. Each part sees the rows that none before kept.
func anyOf(parts []selection) selection {
	var rest, found []int32
	return func(c *Chunk, rows []int32) []int32 {
		rest = append(rest[:0], rows...)
		for _, part := range parts {
			found = append(found[:0], rest...)
			rest = without(rest, part(c, found))
		}
		return without(rows, rest)
	}
}

// without takes some of the rows away, which are in the order of the rows.
func without(rows, some []int32) []int32 {
	kept := rows[:0]
	for _, row := range rows {
		if len(some) > 0 && some[0] == row {
			some = some[1:]
		} else {
			kept = append(kept, row)
		}
	}
	return kept
}

// The fields that compare scores.
var (
	feedbackField = storage.LookupField(storage.RequestResponse, storage.FeedbackScore)
	ratingField   = storage.LookupField(storage.FeedbackGroup, "rating")
	scoresField   = storage.LookupField(storage.RequestResponse, "scores_column")
)

// hasName matches a JSON array of names that has a name.
func hasName(name string) func(array string) bool {
	return func(array string) (found bool) {
		gjson.Parse(array).ForEach(func(_, v gjson.Result) bool {
			found = v.Str == name
			return !found
		})
		return found
	}
}

// leaf compiles a leaf, nil if it compares what the columns have not.
func (s *scan) leaf(l *storage.Leaf, p *storage.CancelCheck) selection {
	switch {
	case isProperty(l):
		return s.property(l, p)
	case l.Field.Kind == storage.PropertyKey:
		s.need(propertyNamesColumn)
		return s.matches(hasName(l.Text), false, func(c *Chunk) []uint32 { return c.columns[propertyNamesColumn] })
	case l.Field.Map && l.Field.Kind == storage.Number:
		return s.scored(l.Key, l.MatchesScore(0, false), func(v float64) bool { return l.MatchesScore(v, true) })
	case l.Field == feedbackField, l.Field == ratingField:
		return s.scored(storage.FeedbackScore, false, func(v float64) bool { return (v != 0) == l.Bool })
	case l.Field == scoresField:
		return s.scoresText(storage.TextMatcher(l.Op, l.Text, p))
	case l.Field.Map:
		return nil
	}
	i := columnOf(l.Field)
	switch {
	case l.Field.Name == "total_tokens":
		s.need(inputColumn, outputColumn)
		return keep(func(c *Chunk, row int) bool {
			total := plugins.Usage{Input: c.value(inputColumn, row), Output: c.value(outputColumn, row)}.Total()
			return l.CompareWhole(total.N, total.Valid)
		})
	case l.Field.Column != nil && l.Field.Column.Name == "created_at":
		return moment(l, func(c *Chunk, row int) storage.Timestamp { return CreatedAt(c.n[row]) })
	case i < 0:
		return nil
	}
	s.need(i)
	switch {
	case i == respondedColumn:
		return moment(l, (*Chunk).respondedAt)
	case i == endStateColumn:
		matches := storage.TextMatcher(l.Op, l.Text, p)
		return keep(func(c *Chunk, row int) bool { return matches(storage.EndState(c.at(i, row)).String()) })
	case l.Field.Kind == storage.Boolean:
		return keep(func(c *Chunk, row int) bool { return (c.at(i, row) != 0) == l.Bool })
	case l.Field.Kind == storage.Text:
		return s.text(l, i, p)
	}
	return s.number(l, i)
}

// columnRange is a range of values of a column, as the column has them.
type columnRange struct {
	column    int
	low, high uint32
}

// mayBeIn reports whether a block may have a value of the range. A value that is wide may be any.
func (r columnRange) mayBeIn(b block) bool {
	return b.Max == isWide || int64(r.low) <= b.Max && int64(r.high) >= b.Base
}

// number compares a column of whole numbers.
func (s *scan) number(l *storage.Leaf, column int) selection {
	matches := func(c *Chunk, row int) bool {
		v := c.value(column, row)
		return l.CompareWhole(v.N, v.Valid)
	}
	low, high, ok := bounds(l)
	if !ok {
		return keep(matches)
	}
	s.ranges[l] = []columnRange{{column, low, high}}
	return func(c *Chunk, rows []int32) []int32 {
		x, kept := c.columns[column], rows[:0]
		if x == nil {
			return kept // of an unknown number no comparison with bounds is true
		}
		for _, row := range rows {
			if v := x[row]; v-low <= high-low && low <= high || v == isWide && matches(c, int(row)) {
				kept = append(kept, row)
			}
		}
		return kept
	}
}

// bounds are the least and the largest of the numbers that a leaf is true of, as columns have them.
// ok is false if it is true of other numbers.
func bounds(l *storage.Leaf) (low, high uint32, ok bool) {
	const lowest, highest = 1, isWide - 1
	if l.Op == storage.IsNull || l.Op == storage.NotEquals {
		return 0, 0, false
	}
	op, to, possible := l.Integer()
	if !possible {
		return 0, 0, false
	}
	at := uint32(min(max(to, -1), highest) + 1) // 0 if all numbers of columns are greater
	switch op {
	case storage.GT:
		return min(at, highest) + 1, highest, true
	case storage.GTE:
		return max(at, lowest), highest, true
	case storage.LT:
		return lowest, max(at, 1) - 1, true
	case storage.LTE:
		return lowest, min(at, highest), true
	case storage.Equals:
		return max(at, lowest), min(at, highest), true
	}
	return 0, 0, false
}

func moment(l *storage.Leaf, value func(*Chunk, int) storage.Timestamp) selection {
	return keep(func(c *Chunk, row int) bool {
		at := value(c, row)
		return at != 0 && storage.Compare(l.Op, at, l.Time)
	})
}

// isProperty reports whether a leaf compares the value of a property.
func isProperty(l *storage.Leaf) bool {
	return l.Field.Map && l.Field.Kind == storage.Text && l.Field.Content == 0
}

// text compares a column of texts.
func (s *scan) text(l *storage.Leaf, column int, p *storage.CancelCheck) selection {
	if l.Op == storage.Equals {
		var id uint32
		if l.Text != "" {
			var err error
			if id, err = s.source.Name(kinds[column], l.Text); err != nil {
				s.failed = err
			}
			if id == 0 {
				return func(_ *Chunk, rows []int32) []int32 { return rows[:0] }
			}
		}
		s.ranges[l] = []columnRange{{column, id, id}}
		return keep(func(c *Chunk, row int) bool { return c.at(column, row) == id })
	}
	matches := storage.TextMatcher(l.Op, l.Text, p)
	return s.matches(matches, matches(""), func(c *Chunk) []uint32 { return c.columns[column] })
}

// matches returns a selection that matches each text of a column once. lacks is the result
// for a row without a text. The texts of a chunk are read together.
func (s *scan) matches(matches func(string) bool, lacks bool, column func(*Chunk) []uint32) selection {
	const (
		unknown = iota
		differs
		matched
	)
	var results storage.Pages[uint32]
	return keep(func(c *Chunk, row int) bool {
		of := column(c)
		if of == nil || of[row] == 0 {
			return lacks
		}
		id := of[row]
		result := results.At(int(id))
		if *result == unknown {
			var ids []uint32
			for _, id := range of {
				if x := results.At(int(id)); id != 0 && *x == unknown {
					*x = differs
					ids = append(ids, id)
				}
			}
			texts, err := s.source.Texts(ids)
			if err != nil {
				s.failed = err
				return false
			}
			for i, text := range texts {
				if matches(text) {
					*results.At(int(ids[i])) = matched
				}
			}
		}
		return *result == matched
	})
}

// keySet is a set of keys of requests, in ascending order.
type keySet struct {
	keys []int64
	// next is the index where the key after the last key that was looked for is likely to
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

// chosenOf are the requests of a chunk that match the residual. Chunks of requests
// that came out of order overlap: they are asked for together, once.
func (s *scan) chosenOf(c *Chunk, from, to int64) (*keySet, error) {
	if c.sorted {
		return s.chosen(from, to)
	}
	var err error
	if s.all == nil {
		s.all, err = s.chosen(s.from, s.to)
	}
	return s.all, err
}

// chosen asks the source for the requests from a key to another key that match the
// residual.
func (s *scan) chosen(from, to int64) (*keySet, error) {
	keys, err := s.source.Chosen(s.residual, from, to, s.scores)
	return &keySet{keys: keys}, err
}
