package columnar

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// predicate tells whether a filter is true of a row of a chunk of requests.
type predicate func(c *Chunk, row int) bool

// join makes the predicate of a filter from the predicates of its leaves.
func join(f storage.Filter, leaves map[*storage.Leaf]predicate) predicate {
	if l, ok := f.(*storage.Leaf); ok {
		return leaves[l]
	}
	program := storage.Compile(f, nil)
	steps := make([]predicate, len(program.Steps))
	for i, step := range program.Steps {
		steps[i] = leaves[step.Filter.(*storage.Leaf)]
	}
	return func(c *Chunk, row int) bool {
		return program.Run(func(step int) bool { return steps[step](c, row) })
	}
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
func (s *scan) leaf(l *storage.Leaf, p *storage.CancelCheck) predicate {
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
		return comparison(l, func(c *Chunk, row int) plugins.Count {
			return plugins.Usage{Input: c.value(inputColumn, row), Output: c.value(outputColumn, row)}.Total()
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
	case i == costColumn, i == cacheSavingsColumn, i == cacheLossColumn, i == savedCostColumn, i == routingSavingsColumn:
		return comparison(l, func(c *Chunk, row int) plugins.Cost { return quantityOf[plugins.Nanodollars](c.value(i, row)) })
	case i == endStateColumn:
		matches := storage.TextMatcher(l.Op, l.Text, p)
		return func(c *Chunk, row int) bool { return matches(storage.EndState(c.at(i, row)).String()) }
	case l.Field.Kind == storage.Boolean:
		return func(c *Chunk, row int) bool { return (c.at(i, row) != 0) == l.Bool }
	case l.Field.Kind == storage.Text:
		return s.text(l, i, p)
	}
	return comparison(l, func(c *Chunk, row int) plugins.Count { return c.value(i, row) })
}

func comparison[T plugins.Unit](l *storage.Leaf, value func(*Chunk, int) plugins.Quantity[T]) predicate {
	return func(c *Chunk, row int) bool {
		v := value(c, row)
		return l.CompareWhole(int64(v.N), v.Valid)
	}
}

func moment(l *storage.Leaf, value func(*Chunk, int) storage.Timestamp) predicate {
	return func(c *Chunk, row int) bool {
		at := value(c, row)
		return at != 0 && storage.Compare(l.Op, at, l.Time)
	}
}

// isProperty tells whether a leaf compares the value of a property.
func isProperty(l *storage.Leaf) bool {
	return l.Field.Map && l.Field.Kind == storage.Text && l.Field.Content == 0
}

// text compares a column of texts.
func (s *scan) text(l *storage.Leaf, column int, p *storage.CancelCheck) predicate {
	if l.Op == storage.Equals {
		var id uint32
		if l.Text != "" {
			var err error
			if id, err = s.source.Name(kinds[column], l.Text); err != nil {
				s.failed = err
			}
			if id == 0 {
				return func(*Chunk, int) bool { return false }
			}
		}
		return func(c *Chunk, row int) bool { return c.at(column, row) == id }
	}
	matches := storage.TextMatcher(l.Op, l.Text, p)
	return s.matches(matches, matches(""), func(c *Chunk) []uint32 { return c.columns[column] })
}

// matches returns a predicate that matches each text of a column once. lacks is the result
// for a row without a text. The texts of a chunk are read together.
func (s *scan) matches(matches func(string) bool, lacks bool, column func(*Chunk) []uint32) predicate {
	const (
		unknown = iota
		differs
		matched
	)
	var results storage.Pages[uint32]
	return func(c *Chunk, row int) bool {
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
	}
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
