package sqlite

import (
	"database/sql/driver"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/storage"
)

// maxPropertyColumns bounds the properties that a file has as columns: clients name them.
// Tests make it smaller.
var maxPropertyColumns = 64

// properties gives a chunk columns of its properties, of ids of names, and keeps in
// others whether there are more.
func (l loader) properties(c *chunk) error {
	type label struct {
		row int
		id  int64
	}
	var labels []label
	kinds := make(map[int64]string)
	rowOf := c.finder()
	err := l.query("SELECT n, label FROM labels WHERE "+inBuckets+" AND n BETWEEN ? AND ?",
		[]driver.Value{bucketOf(c.low), bucketOf(c.high), c.low, c.high}, func(row []driver.Value) error {
			if i := rowOf(row[0].(int64)); i >= 0 {
				id := row[1].(int64)
				labels = append(labels, label{i, id})
				kinds[id] = ""
			}
			return nil
		})
	if err != nil {
		return err
	}
	ids := make([]int64, 0, len(kinds))
	for id := range kinds {
		ids = append(ids, id)
	}
	err = l.query("SELECT id, kind FROM names WHERE id IN (SELECT value FROM json_each(?))", []driver.Value{compactJSON(ids)}, func(row []driver.Value) error {
		kinds[row[0].(int64)] = row[1].(string)
		return nil
	})
	c.properties, c.others = make(map[string][]uint32), false
	for _, x := range labels {
		name, ok := strings.CutPrefix(kinds[x.id], propertyKind(""))
		if !ok {
			continue // an asset
		}
		column := c.properties[name]
		if column == nil {
			if len(c.properties) == maxPropertyColumns || !utf8.ValidString(name) {
				c.others = true
				continue
			}
			column = make([]uint32, len(c.n))
			c.properties[name] = column
		}
		column[x.row] = uint32(x.id)
	}
	return err
}

// visited remembers the chunk that was looked at last. Files are read into the same
// memory, one after the other, but no two have the same keys.
type visited struct {
	of   *chunk
	low  int64
	rows int
}

// again tells whether a chunk is that one, which it is from now on.
func (v *visited) again(c *chunk) bool {
	before := *v
	*v = visited{c, c.low, len(c.n)}
	return before == *v
}

// propertyColumn answers what the rows of a chunk have of one property, as ids of names:
// from the file where that has it, and else from the table labels.
type propertyColumn struct {
	x    *rows
	name string
	last visited
	ids  []uint32 // of the last chunk
}

// property is the column of a property, nil if no row has it. Of chunks that are from no
// file it is not known.
func (c *chunk) property(name string) (column []uint32, known bool) {
	column = c.properties[name]
	return column, column != nil || c.properties != nil && !c.others
}

// in is nil if no row has the property.
func (p *propertyColumn) in(c *chunk) []uint32 {
	if p.last.again(c) {
		return p.ids
	}
	column, known := c.property(p.name)
	if p.ids = column; !known {
		p.ids = make([]uint32, len(c.n))
		p.read(c)
	}
	return p.ids
}

func (p *propertyColumn) read(c *chunk) {
	rowOf := c.finder()
	const query = "SELECT n, label FROM labels WHERE " + inBuckets + " AND +label IN (SELECT id FROM names WHERE kind = ?) AND n BETWEEN ? AND ?"
	err := p.x.r.c.query(p.x.ctx, query, []driver.Value{bucketOf(c.low), bucketOf(c.high), propertyKind(p.name), c.low, c.high}, func(row []driver.Value) error {
		if i := rowOf(row[0].(int64)); i >= 0 {
			p.ids[i] = uint32(row[1].(int64))
		}
		return nil
	})
	if p.x.failed == nil {
		p.x.failed = err
	}
}

// propertyDimension groups by the values of a property. The empty one is none.
func (x *rows) propertyDimension(name string) (dimension, error) {
	empty, err := x.r.name(x.ctx, propertyKind(name), "")
	column, texts := propertyColumn{x: x, name: name}, newTextGroups(x)
	return dimension{
		number: func(c *chunk, row int) int {
			ids := column.in(c)
			if ids == nil || ids[row] == empty {
				return 0
			}
			return texts.number(ids[row])
		},
		keys:     texts.keys,
		property: name,
	}, err
}

// property matches the values of a property. Of requests that lack it the negative
// operators are true.
func (s *scan) property(l *storage.Leaf, p *storage.CancelCheck) predicate {
	s.properties = append(s.properties, l.Key)
	lacks := l.Op.Negative()
	if l.Op != storage.Equals && l.Op != storage.NotEquals {
		column := propertyColumn{x: s.rows, name: l.Key}
		return s.matches(storage.TextMatcher(l.Op, l.Text, p), lacks, column.in)
	}
	id, err := s.r.name(s.ctx, propertyKind(l.Key), l.Text)
	if err != nil {
		s.failed = err
	}
	x := labelled{scan: s, id: id, name: l.Key}
	return func(c *chunk, row int) bool { return x.has(c, row) != lacks }
}

// labelled are the requests that have one value of a property: by the column where the
// chunk has one, and else as the database knows them.
type labelled struct {
	*scan
	id     uint32 // 0 if no request has it
	name   string
	last   visited
	known  bool // of the last chunk
	column []uint32
	keys   *keySet
	// everywhere are the requests of the whole scan.
	everywhere *keySet
}

func (x *labelled) has(c *chunk, row int) bool {
	if !x.last.again(c) {
		if x.column, x.known = c.property(x.name); !x.known {
			x.keys = x.in(c)
		}
	}
	if !x.known {
		return x.keys.has(c.n[row])
	}
	return x.id != 0 && x.column != nil && x.column[row] == x.id
}

// in asks once for all chunks of requests that came out of order, which overlap.
func (x *labelled) in(c *chunk) *keySet {
	if c.sorted {
		return x.read(c.low, c.high)
	}
	if x.everywhere == nil {
		x.everywhere = x.read(x.from, x.to)
	}
	return x.everywhere
}

func (x *labelled) read(from, to int64) *keySet {
	set := new(keySet)
	err := x.r.c.query(x.ctx, "SELECT n FROM labels WHERE "+inBuckets+" AND label = ? AND n BETWEEN ? AND ?",
		[]driver.Value{bucketOf(from), bucketOf(to), int64(x.id), from, to}, func(row []driver.Value) error {
			set.keys = append(set.keys, row[0].(int64))
			return nil
		})
	if x.failed == nil {
		x.failed = err
	}
	slices.Sort(set.keys)
	return set
}
