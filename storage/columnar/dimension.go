package columnar

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// dimension is what rows are grouped by. A row has a value of it, several, or none. A value is a
// number that keys translates, such as the id of a name.
type dimension struct {
	// name is the same for dimensions that give a row the same value. "" if a row's value depends on
	// rows of other files.
	name string
	// begin returns the numberer of a scan; nil for scores, which chunkScores numbers.
	begin func(*scan) numberer
	// keys returns the keys that values stand for, in their order.
	keys func(values []uint64) ([]storage.Key, error)
	// columns are the indexes in Columns of the columns that numberers read.
	columns []int
	// property is the property whose column is read, "" if no such column is read.
	property string
	// groups are the groups of the query, by value.
	groups groupTable
}

// numberer sets groups[i] to the group that t has for the value of rows[i], 0 if the row has none. It
// returns both slices. If rows have several values, the slices it returns have a row for each value.
type numberer func(c *Chunk, rows []int32, t *groupTable, groups []int) ([]int32, []int)

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

// dimension returns the dimension d of a query, for which inColumns is true. tags are the tags of
// sessions, by the sessions' ids.
func (x *rows) dimension(q *storage.GroupQuery, d storage.Dimension, tags map[string]string) (*dimension, error) {
	switch d.Name {
	case "":
		return &dimension{
			name: "all",
			begin: func(*scan) numberer {
				return func(_ *Chunk, rows []int32, _ *groupTable, groups []int) ([]int32, []int) {
					clear(groups)
					return rows, groups
				}
			},
			keys: func(values []uint64) ([]storage.Key, error) { return make([]storage.Key, len(values)), nil },
		}, nil
	case storage.ByScore:
		return &dimension{keys: x.textKeys}, nil
	case storage.BySession:
		return x.sessionDimension(tags), nil
	case storage.ByProperty:
		return x.propertyDimension(d.Property)
	case storage.ByTree:
		return x.treeDimension(q)
	}
	f := storage.LookupField(storage.RequestResponse, string(d.Name))
	known := func(column int) func(*Chunk, int) plugins.Count {
		return func(c *Chunk, row int) plugins.Count { return plugins.Known(int64(c.at(column, row))) }
	}
	switch i := columnOf(f); {
	case i == endStateColumn:
		return valueDimension(i, known(i), func(v int64) string { return storage.EndState(v).String() }), nil
	case f.Kind == storage.Boolean:
		return valueDimension(i, known(i), func(v int64) string { return strconv.FormatBool(v != 0) }), nil
	case f.Kind == storage.Number:
		value := func(c *Chunk, row int) plugins.Count { return c.value(i, row) }
		return valueDimension(i, value, func(v int64) string { return strconv.FormatInt(v, 10) }), nil
	default:
		return x.textDimension(i), nil
	}
}

// textDimension groups by the texts of a column, whose values are the ids of names.
func (x *rows) textDimension(column int) *dimension {
	return &dimension{
		name: Columns[column],
		begin: func(*scan) numberer {
			return func(c *Chunk, rows []int32, t *groupTable, groups []int) ([]int32, []int) {
				numberTexts(c.columns[column], rows, t, groups)
				return rows, groups
			}
		},
		keys:    x.textKeys,
		columns: []int{column},
	}
}

// numberTexts is the numberer of a column of ids of names. column is nil if no row has a name. Rows
// that follow each other often have the same name, so it looks only at changes.
func numberTexts(column []uint32, rows []int32, t *groupTable, groups []int) {
	if column == nil {
		clear(groups)
		return
	}
	last, group := uint32(0), 0
	for i, row := range rows {
		if id := column[row]; id != last {
			if last, group = id, 0; id != 0 {
				group = t.number(uint64(id))
			}
		}
		groups[i] = group
	}
}

// texts returns the texts of ids of names.
func (x *rows) texts(values []uint64) ([]string, error) {
	ids := make([]uint32, len(values))
	for i, v := range values {
		ids[i] = uint32(v)
	}
	return x.source.Texts(ids)
}

// textKeys returns the texts of ids of names as keys.
func (x *rows) textKeys(values []uint64) ([]storage.Key, error) {
	texts, err := x.texts(values)
	keys := make([]storage.Key, len(texts))
	for i, text := range texts {
		keys[i].ID = text
	}
	return keys, err
}

// Session is a session by the ids of its id and its name.
type Session struct{ ID, Name uint32 }

// sessionDimension groups by the ids of sessions together with their names: the value has the id of
// the session's id in its lower half, and that of the session's name in its upper half.
func (x *rows) sessionDimension(tags map[string]string) *dimension {
	const nameShift = 32
	return &dimension{
		name: "session",
		begin: func(*scan) numberer {
			return func(c *Chunk, rows []int32, t *groupTable, groups []int) ([]int32, []int) {
				for i, row := range rows {
					groups[i] = 0
					if id := c.at(sessionColumn, int(row)); id != 0 {
						groups[i] = t.number(uint64(id) | uint64(c.at(sessionNameColumn, int(row)))<<nameShift)
					}
				}
				return rows, groups
			}
		},
		keys: func(values []uint64) ([]storage.Key, error) {
			keys, err := x.textKeys(values)
			if err != nil {
				return nil, err
			}
			for i := range values {
				values[i] >>= nameShift
			}
			names, err := x.texts(values)
			for i, name := range names {
				keys[i].Name, keys[i].Tag = name, tags[keys[i].ID]
			}
			return keys, err
		},
		columns: []int{sessionColumn, sessionNameColumn},
	}
}

// valueDimension groups by the whole numbers of a column, which value reads and text writes.
func valueDimension(column int, value func(*Chunk, int) plugins.Count, text func(int64) string) *dimension {
	return &dimension{
		name: Columns[column],
		begin: func(*scan) numberer {
			return func(c *Chunk, rows []int32, t *groupTable, groups []int) ([]int32, []int) {
				for i, row := range rows {
					groups[i] = 0
					if v := value(c, int(row)); v.Valid {
						groups[i] = t.number(uint64(v.N))
					}
				}
				return rows, groups
			}
		},
		keys: func(values []uint64) ([]storage.Key, error) {
			keys := make([]storage.Key, len(values))
			for i, v := range values {
				keys[i].ID = text(int64(v))
			}
			return keys, nil
		},
		columns: []int{column},
	}
}

// groupPropertyNames answers a query that groups by the names of properties, and perhaps by other
// dimensions, each by itself.
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
			// This scan waits for no turn: properties have few names, and the query cannot begin anew,
			// because it has answered its other groups already.
			names := &rows{ctx: x.ctx, source: x.source, org: x.org, tail: x.tail, turn: &Turn{engine: x.turn.engine, many: true}}
			names.dimensions = []*dimension{names.propertyNameDimension()}
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
func (x *rows) propertyNameDimension() *dimension {
	names := propertyNames{values: make(map[string]uint64)}
	return &dimension{
		begin: func(s *scan) numberer {
			sets := propertyNameSets{rows: x, names: &names}
			return func(c *Chunk, rows []int32, t *groupTable, groups []int) ([]int32, []int) {
				rows, groups, err := sets.number(c.columns[propertyNamesColumn], rows, t, groups)
				if err != nil {
					s.failed = err
				}
				return rows, groups
			}
		},
		keys: func(values []uint64) ([]storage.Key, error) {
			keys := make([]storage.Key, len(values))
			for i, v := range values {
				keys[i].ID = names.byValue[v]
			}
			return keys, nil
		},
		columns: []int{propertyNamesColumn},
	}
}

// propertyNames are the names of properties that the scans of a query have met.
type propertyNames struct {
	mu      sync.Mutex
	byValue []string          // guarded by mu
	values  map[string]uint64 // by name; guarded by mu
}

// valuesOf returns the values of the names in a set, a JSON array.
func (n *propertyNames) valuesOf(set string) (values []uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	gjson.Parse(set).ForEach(func(_, name gjson.Result) bool {
		value, ok := n.values[name.Str]
		if !ok {
			value = uint64(len(n.byValue))
			n.byValue = append(n.byValue, name.Str)
			n.values[name.Str] = value
		}
		values = append(values, value)
		return true
	})
	return values
}

// propertyNameSets numbers the names of properties for one scan. A row has the id of a text that is the
// set of its names, and few sets are different.
type propertyNameSets struct {
	rows  *rows
	names *propertyNames

	sets     groupTable
	values   [][]uint64 // the names in a set, by its number in sets
	setOf    []int      // by row; used again for each chunk
	expanded []int32    // the rows that number returns; used again for each chunk
}

// number is a numberer, except that it returns the error of reading the texts of new sets. column has
// the ids of sets.
func (p *propertyNameSets) number(column []uint32, rows []int32, t *groupTable, groups []int) ([]int32, []int, error) {
	p.expanded, p.setOf, groups = p.expanded[:0], slices.Grow(p.setOf[:0], len(rows))[:len(rows)], groups[:0]
	numberTexts(column, rows, &p.sets, p.setOf)
	if known := max(1, len(p.values)); known <= p.sets.len { // set 0 is that of rows without names
		texts, err := p.rows.texts(p.sets.list()[known-1:])
		if err != nil {
			return nil, nil, err
		}
		p.values = slices.Grow(p.values, known+len(texts))[:known]
		for _, text := range texts {
			p.values = append(p.values, p.names.valuesOf(text))
		}
	}
	for i, row := range rows {
		if p.setOf[i] == 0 {
			continue
		}
		for _, name := range p.values[p.setOf[i]] {
			p.expanded, groups = append(p.expanded, row), append(groups, t.number(name))
		}
	}
	return p.expanded, groups, nil
}
