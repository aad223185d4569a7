package columnar

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// dimension numbers what the rows of chunks have of a storage.Dimension, from 1; 0
// is nothing.
type dimension struct {
	// numbers sets the groups of rows; it is nil for scores, which have no column.
	numbers func(c *Chunk, rows []int32, groups []int)
	// expand returns a row for each group of rows, with its group, if rows have several groups.
	expand  func(c *Chunk, rows []int32, groups []int) ([]int32, []int)
	keys    func(groups []int) []storage.Key
	columns []int
	texts   *textGroups
	// property is the property whose column is read, "" if no such column is read.
	property string
}

// inColumns reports whether columns have all dimensions of a query.
func inColumns(q *storage.GroupQuery, by []storage.Dimension) bool {
	for _, d := range by {
		switch d.Name {
		case "", storage.BySession, storage.ByScore, storage.ByProperty:
			continue
		case storage.ByPropertyName:
			if q.Apart || len(q.By) == 1 {
				continue
			}
		}
		if f := storage.LookupField(storage.RequestResponse, string(d.Name)); f == nil || columnOf(f) < 0 {
			return false
		}
	}
	return true
}

// dimension is a dimension for which inColumns is true, for a query. tags are the tags of
// sessions.
func (x *rows) dimension(q *storage.GroupQuery, d storage.Dimension, tags map[string]string) (dimension, error) {
	switch d.Name {
	case "":
		return dimension{numbers: func(_ *Chunk, _ []int32, groups []int) { clear(groups) }, keys: func(groups []int) []storage.Key { return make([]storage.Key, len(groups)) }}, nil
	case storage.ByScore:
		texts := newTextGroups(x)
		return dimension{texts: texts, keys: texts.keys}, nil
	case storage.BySession:
		return x.sessionDimension(tags), nil
	case storage.ByProperty:
		return x.propertyDimension(d.Property)
	case storage.ByTree:
		return x.treeDimension(q)
	}
	f := storage.LookupField(storage.RequestResponse, string(d.Name))
	switch i := columnOf(f); {
	case i == endStateColumn:
		return valueDimension(knownValue(i), func(v int64) string { return storage.EndState(v).String() }, i), nil
	case f.Kind == storage.Boolean:
		return valueDimension(knownValue(i), func(v int64) string { return strconv.FormatBool(v != 0) }, i), nil
	case f.Kind == storage.Number:
		value := func(c *Chunk, row int) plugins.Count { return c.value(i, row) }
		return valueDimension(value, func(v int64) string { return strconv.FormatInt(v, 10) }, i), nil
	default:
		return x.textDimension(i), nil
	}
}

// eachRow makes a function that sets the groups of rows of one that returns the group of a row.
func eachRow(number func(c *Chunk, row int) int) func(c *Chunk, rows []int32, groups []int) {
	return func(c *Chunk, rows []int32, groups []int) {
		for i, row := range rows {
			groups[i] = number(c, int(row))
		}
	}
}

// knownValue reads a column of small numbers that are always known.
func knownValue(column int) func(*Chunk, int) plugins.Count {
	return func(c *Chunk, row int) plugins.Count { return plugins.Known(int64(c.at(column, row))) }
}

// textDimension groups by the texts of a column.
func (x *rows) textDimension(column int) dimension {
	texts := newTextGroups(x)
	return dimension{
		numbers: func(c *Chunk, rows []int32, groups []int) { texts.numbers(c.columns[column], rows, groups) },
		keys:    texts.keys,
		columns: []int{column},
		texts:   texts,
	}
}

// Session is a session by the ids of its id and its name.
type Session struct{ ID, Name uint32 }

// sessionDimension groups by the ids of sessions together with their names.
func (x *rows) sessionDimension(tags map[string]string) dimension {
	ids, names := newTextGroups(x), newTextGroups(x)
	others := make(map[Session]int) // the groups of an id that has another name than in its first group
	return dimension{
		numbers: eachRow(func(c *Chunk, row int) int {
			s := Session{c.at(sessionColumn, row), c.at(sessionNameColumn, row)}
			group := ids.number(s.ID)
			switch {
			case group == 0:
				return 0
			case group == names.len:
				return names.add(s.Name)
			case *names.ids.At(group) == s.Name:
				return group
			}
			other, ok := others[s]
			if !ok {
				other = ids.add(s.ID)
				names.add(s.Name)
				others[s] = other
			}
			return other
		}),
		keys: func(groups []int) []storage.Key {
			keys := ids.keys(groups)
			for i, name := range names.textsOf(groups) {
				keys[i].Name, keys[i].Tag = name, tags[keys[i].ID]
			}
			return keys
		},
		columns: []int{sessionColumn, sessionNameColumn},
	}
}

// valueDimension numbers values in the order in which they come.
func valueDimension(value func(*Chunk, int) plugins.Count, text func(int64) string, columns ...int) dimension {
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
		numbers: eachRow(func(c *Chunk, row int) int {
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
		}),
		keys: func(groups []int) []storage.Key {
			of := make([]storage.Key, len(groups))
			for i, group := range groups {
				of[i] = keys[group]
			}
			return of
		},
		columns: columns,
	}
}

// groupPropertyNames answers a query that groups by the names of properties, and
// perhaps by other dimensions separately.
func groupPropertyNames(q *storage.GroupQuery, x *rows, each func(*storage.GroupTotals) error) error {
	part := func(rows storage.Rows, sets []int) error {
		narrowed := *q
		narrowed.By = nil
		for _, set := range sets {
			narrowed.By = append(narrowed.By, q.By[set])
		}
		return storage.GroupRows(&narrowed, rows, func(g *storage.GroupTotals) error {
			total := *g
			total.Set = sets[g.Set]
			return each(&total)
		})
	}
	var others []int
	for set, d := range q.By {
		if d.Name != storage.ByPropertyName {
			others = append(others, set)
		}
	}
	if len(others) > 0 {
		if err := part(x, others); err != nil {
			return err
		}
	}
	for set, d := range q.By {
		if d.Name == storage.ByPropertyName {
			// They wait for no turn: properties have few names, and the query cannot begin anew,
			// because it has answered its other groups already.
			names := &rows{ctx: x.ctx, source: x.source, org: x.org, tail: x.tail, turn: &Turn{engine: x.turn.engine, many: true}}
			names.dimensions = []dimension{names.propertyNameDimension()}
			if err := part(names, []int{set}); err != nil {
				return err
			}
			x.failed = cmp.Or(x.failed, names.failed)
		}
	}
	return nil
}

// propertyNameDimension groups by the names of properties: a request has a row for each of its
// properties.
func (x *rows) propertyNameDimension() dimension {
	sets := x.textDimension(propertyNamesColumn)
	names, numbers := make([]string, 1), make(map[string]int) // by group, and the groups; the first is none
	var ofSet [][]int                                         // the groups of the names in a set
	groupsIn := func(set int) (groups []int) {
		gjson.Parse(sets.keys([]int{set})[0].ID).ForEach(func(_, name gjson.Result) bool {
			group := numbers[name.Str]
			if group == 0 {
				group = len(names)
				names = append(names, name.Str)
				numbers[name.Str] = group
			}
			groups = append(groups, group)
			return true
		})
		return groups
	}
	var expanded []int32
	var setOf []int
	return dimension{
		expand: func(c *Chunk, rows []int32, groups []int) ([]int32, []int) {
			expanded, setOf = expanded[:0], slices.Grow(setOf[:0], len(rows))[:len(rows)]
			sets.numbers(c, rows, setOf)
			for i, row := range rows {
				for set := setOf[i]; set >= len(ofSet); {
					ofSet = append(ofSet, groupsIn(len(ofSet)))
				}
				for _, group := range ofSet[setOf[i]] {
					expanded, groups = append(expanded, row), append(groups, group)
				}
			}
			return expanded, groups
		},
		keys: func(groups []int) []storage.Key {
			keys := make([]storage.Key, len(groups))
			for i, group := range groups {
				keys[i].ID = names[group]
			}
			return keys
		},
		columns: sets.columns,
	}
}
