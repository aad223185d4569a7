package sqlite

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// predicate tells whether a filter is true of a row of a chunk of requests.
type predicate func(c *chunk, row int) bool

// join makes the predicate of a filter of those of its leaves.
func join(f storage.Filter, leaves map[*storage.Leaf]predicate) predicate {
	if l, ok := f.(*storage.Leaf); ok {
		return leaves[l]
	}
	program := storage.Compile(f, nil)
	steps := make([]predicate, len(program.Steps))
	for i, step := range program.Steps {
		steps[i] = leaves[step.Filter.(*storage.Leaf)]
	}
	return func(c *chunk, row int) bool {
		return program.Run(func(step int) bool { return steps[step](c, row) })
	}
}

// leaf compiles a leaf, nil if it compares what the table has not.
func (t *table) leaf(l *storage.Leaf, p *storage.CancelCheck) predicate {
	if l.Field.Map {
		return nil
	}
	i := cachedColumnOf(l.Field)
	switch {
	case l.Field.Name == "total_tokens":
		return comparison(l, func(c *chunk, row int) plugins.Count {
			return plugins.Usage{Input: c.value(inputColumn, row), Output: c.value(outputColumn, row)}.Total()
		})
	case columnOf(l.Field) == "created_at":
		return moment(l, func(c *chunk, row int) storage.Timestamp { return createdAt(c.n[row]) })
	case i < 0:
		return nil
	case i == respondedColumn:
		return moment(l, (*chunk).respondedAt)
	case i == costColumn, i == cacheSavingsColumn:
		return comparison(l, func(c *chunk, row int) plugins.Cost { return quantityOf[plugins.Nanodollars](c.value(i, row)) })
	case i == endStateColumn:
		matches := storage.TextMatcher(l.Op, l.Text, p)
		return func(c *chunk, row int) bool { return matches(storage.EndState(c.at(i, row)).String()) }
	case l.Field.Kind == storage.Boolean:
		return func(c *chunk, row int) bool { return (c.at(i, row) != 0) == l.Bool }
	case l.Field.Kind == storage.Text:
		return t.text(l, i, p)
	}
	return comparison(l, func(c *chunk, row int) plugins.Count { return c.value(i, row) })
}

func comparison[T plugins.Unit](l *storage.Leaf, value func(*chunk, int) plugins.Quantity[T]) predicate {
	return func(c *chunk, row int) bool {
		v := value(c, row)
		return l.CompareNumber(v.Float(), v.Valid)
	}
}

func moment(l *storage.Leaf, value func(*chunk, int) storage.Timestamp) predicate {
	return func(c *chunk, row int) bool {
		at := value(c, row)
		return at != 0 && storage.Compare(l.Op, at, l.Time)
	}
}

// text matches each text once.
func (t *table) text(l *storage.Leaf, column int, p *storage.CancelCheck) predicate {
	matches := storage.TextMatcher(l.Op, l.Text, p)
	texts := t.textsIn(column)
	var known []bool
	var results []bool
	return func(c *chunk, row int) bool {
		i := int(c.at(column, row))
		if i >= len(known) {
			more := 1 + len(texts.all) - len(known)
			known, results = append(known, make([]bool, more)...), append(results, make([]bool, more)...)
		}
		if !known[i] {
			known[i], results[i] = true, matches(texts.text(i).id)
		}
		return results[i]
	}
}
