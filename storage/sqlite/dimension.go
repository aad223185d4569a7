package sqlite

import (
	"database/sql/driver"
	"strconv"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// dimension numbers what the rows of chunks have of a storage.Dimension, from 1; 0
// is nothing.
type dimension struct {
	// number is nil of scores, which are no column.
	number  func(c *chunk, row int) int
	key     func(group int) storage.Key
	columns []int
	texts   *textGroups
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
		return dimension{number: func(*chunk, int) int { return 0 }, key: func(int) storage.Key { return storage.Key{} }}, nil
	case storage.ByScore:
		texts := newTextGroups(x)
		return dimension{texts: texts, key: func(group int) storage.Key { return storage.Key{ID: texts.text(group)} }}, nil
	case storage.BySession:
		return x.sessionDimension(tags), nil
	case storage.ByProperty:
		return x.labelDimension(propertyKind(d.Property))
	}
	f := storage.LookupField(storage.RequestResponse, string(d.Name))
	switch i := cachedColumnOf(f); {
	case i == endStateColumn:
		return valueDimension(knownValue(i), func(v int64) string { return storage.EndState(v).String() }, i), nil
	case f.Kind == storage.Boolean:
		return valueDimension(knownValue(i), func(v int64) string { return strconv.FormatBool(v != 0) }, i), nil
	case f.Kind == storage.Number:
		value := func(c *chunk, row int) plugins.Count { return c.value(i, row) }
		return valueDimension(value, func(v int64) string { return strconv.FormatFloat(float64(v), 'f', -1, 64) }, i), nil
	default:
		return x.textDimension(i), nil
	}
}

// knownValue reads a column of small numbers that are always known.
func knownValue(column int) func(*chunk, int) plugins.Count {
	return func(c *chunk, row int) plugins.Count { return plugins.Known(int64(c.at(column, row))) }
}

// textDimension groups by the texts of a column.
func (x *rows) textDimension(column int) dimension {
	texts := newTextGroups(x)
	return dimension{
		number:  func(c *chunk, row int) int { return texts.number(c.at(column, row)) },
		key:     func(group int) storage.Key { return storage.Key{ID: texts.text(group)} },
		columns: []int{column},
		texts:   texts,
	}
}

// session is a session by the ids of its id and its name.
type session struct{ id, name uint32 }

// sessionDimension groups by the ids of sessions together with their names.
func (x *rows) sessionDimension(tags map[string]string) dimension {
	ids, names := newTextGroups(x), newTextGroups(x)
	others := make(map[session]int) // the groups of an id that has another name than in its first group
	return dimension{
		number: func(c *chunk, row int) int {
			s := session{c.at(sessionColumn, row), c.at(sessionNameColumn, row)}
			group := ids.number(s.id)
			switch {
			case group == 0:
				return 0
			case group == len(names.ids):
				names.ids = append(names.ids, s.name)
				return group
			case names.ids[group] == s.name:
				return group
			}
			other, ok := others[s]
			if !ok {
				other = len(ids.ids)
				ids.ids, names.ids = append(ids.ids, s.id), append(names.ids, s.name)
				others[s] = other
			}
			return other
		},
		key: func(group int) storage.Key {
			id := ids.text(group)
			return storage.Key{ID: id, Name: names.text(group), Tag: tags[id]}
		},
		columns: []int{sessionColumn, sessionNameColumn},
	}
}

// valueDimension numbers values in the order in which they come.
func valueDimension(value func(*chunk, int) plugins.Count, text func(int64) string, columns ...int) dimension {
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
		key:     func(group int) storage.Key { return keys[group] },
		columns: columns,
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
	var (
		of     *chunk
		column []uint32
		low    int64
	)
	return dimension{
		number: func(c *chunk, row int) int {
			if c != of || c.low != low || len(column) != len(c.n) {
				of, low, column = c, c.low, x.labels(c, kind, numbers)
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
	rowOf := c.finder()
	const query = "SELECT n, label FROM labels WHERE " + inBuckets + " AND +label IN (SELECT id FROM names WHERE kind = ?) AND n BETWEEN ? AND ?"
	err := x.r.c.query(x.ctx, query, []driver.Value{bucketOf(c.low), bucketOf(c.high), kind, c.low, c.high}, func(row []driver.Value) error {
		if i := rowOf(row[0].(int64)); i >= 0 {
			column[i] = numbers[row[1].(int64)]
		}
		return nil
	})
	if x.failed == nil {
		x.failed = err
	}
	return column
}
