package sqlite

import (
	"database/sql/driver"
	"slices"
	"strconv"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// dimension numbers what the rows of chunks have of a storage.Dimension, from 1; 0
// is nothing.
type dimension struct {
	number func(c *chunk, row int) int
	key    func(group int) storage.Key
}

// inColumns tells whether rows can be grouped by the dimensions of a query.
func inColumns(q *storage.GroupQuery, by []storage.Dimension) bool {
	for _, d := range by {
		switch d.Name {
		case "", storage.BySession, storage.ByScore, storage.ByProperty:
			continue
		case storage.ByPropertyName:
			if q.Apart && q.CountOnly {
				continue
			}
		}
		if f := storage.LookupField(storage.RequestResponse, string(d.Name)); f == nil || cachedColumnOf(f) < 0 {
			return false
		}
	}
	return true
}

// dimension is one of those inColumns. tags are those of sessions.
func (x *rows) dimension(d storage.Dimension, tags map[string]string) (dimension, error) {
	switch d.Name {
	case "":
		return dimension{func(*chunk, int) int { return 0 }, func(int) storage.Key { return storage.Key{} }}, nil
	case storage.ByScore:
		return x.textDimension(scoreColumn, nil), nil
	case storage.ByProperty:
		return x.labelDimension(propertyKind(d.Property))
	}
	f := storage.LookupField(storage.RequestResponse, string(d.Name))
	switch i := cachedColumnOf(f); {
	case i == endStateColumn:
		return valueDimension(knownValue(i), func(v int64) string { return storage.EndState(v).String() }), nil
	case f.Kind == storage.Boolean:
		return valueDimension(knownValue(i), func(v int64) string { return strconv.FormatBool(v != 0) }), nil
	case f.Kind == storage.Number:
		value := func(c *chunk, row int) plugins.Count { return c.value(i, row) }
		return valueDimension(value, func(v int64) string { return strconv.FormatFloat(float64(v), 'f', -1, 64) }), nil
	default:
		return x.textDimension(i, tags), nil
	}
}

// knownValue reads a column of small numbers that are always known.
func knownValue(column int) func(*chunk, int) plugins.Count {
	return func(c *chunk, row int) plugins.Count { return plugins.Known(int64(c.at(column, row))) }
}

// textDimension groups by the texts of a column.
func (x *rows) textDimension(column int, tags map[string]string) dimension {
	texts := x.table.textsIn(column)
	return dimension{
		number: func(c *chunk, row int) int { return int(c.at(column, row)) },
		key: func(group int) storage.Key {
			t := texts.text(group)
			return storage.Key{ID: t.id, Name: t.name, Tag: tags[t.id]}
		},
	}
}

// valueDimension numbers values in the order in which they come.
func valueDimension(value func(*chunk, int) plugins.Count, text func(int64) string) dimension {
	var (
		few  [1024]int // for those that are less
		rest = make(map[int64]int)
		keys = []storage.Key{{}}
	)
	number := func(v int64) int {
		keys = append(keys, storage.Key{ID: text(v)})
		return len(keys) - 1
	}
	return dimension{
		number: func(c *chunk, row int) int {
			v := value(c, row)
			if !v.Valid {
				return 0
			}
			if 0 <= v.N && v.N < int64(len(few)) {
				if few[v.N] == 0 {
					few[v.N] = number(v.N)
				}
				return few[v.N]
			}
			if rest[v.N] == 0 {
				rest[v.N] = number(v.N)
			}
			return rest[v.N]
		},
		key: func(group int) storage.Key { return keys[group] },
	}
}

// labelDimension groups by a property, of which the database knows the records of
// each value.
func (x *rows) labelDimension(kind string) (dimension, error) {
	numbers, keys := make(map[int64]uint32), []storage.Key{{}}
	err := x.r.c.query(x.ctx, "SELECT id, name FROM names WHERE kind = ?", []driver.Value{kind}, func(row []driver.Value) error {
		if name := row[1].(string); name != "" {
			numbers[row[0].(int64)] = uint32(len(keys))
			keys = append(keys, storage.Key{ID: name})
		}
		return nil
	})
	chunks := make(map[*chunk][]uint32)
	return dimension{
		number: func(c *chunk, row int) int {
			column, ok := chunks[c]
			if !ok || len(column) != len(c.n) {
				if x.loader != nil {
					clear(chunks) // the chunk before is forgotten
				}
				column = x.labels(c, kind, numbers)
				chunks[c] = column
			}
			return int(column[row])
		},
		key: func(group int) storage.Key { return keys[group] },
	}, err
}

// labels makes a column of a chunk: the number of the label of a kind that each row
// has.
func (x *rows) labels(c *chunk, kind string, numbers map[int64]uint32) []uint32 {
	column := make([]uint32, len(c.n))
	rowsOf := func(n int64) (from, to int) {
		from, _ = slices.BinarySearch(c.n, n)
		for to = from; to < len(c.n) && c.n[to] == n; {
			to++
		}
		return from, to
	}
	if !c.sorted {
		byKey := make(map[int64]int, len(c.n))
		for i, n := range c.n {
			if c.org[i] != 0 { // at most one row of a request is
				byKey[n] = i
			}
		}
		rowsOf = func(n int64) (from, to int) {
			if i, ok := byKey[n]; ok {
				return i, i + 1
			}
			return 0, 0
		}
	}
	const query = "SELECT n, label FROM labels WHERE label IN (SELECT id FROM names WHERE kind = ?) AND n BETWEEN ? AND ?"
	err := x.r.c.query(x.ctx, query, []driver.Value{kind, c.low, c.high}, func(row []driver.Value) error {
		from, to := rowsOf(row[0].(int64))
		for i := from; i < to; i++ {
			column[i] = numbers[row[1].(int64)]
		}
		return nil
	})
	if x.failed == nil {
		x.failed = err
	}
	return column
}
