package columnar

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/weirhq/weir/storage"
)

// Property is a property of the request with a key. Value is the id of the property's value.
type Property struct {
	Key   int64
	Name  string
	Value uint32
}

// SetProperties gives a chunk the columns of at most limit properties, and notes whether there are more.
func (c *Chunk) SetProperties(properties []Property, limit int) {
	c.properties, c.others = make(map[string][]uint32), false
	rowOf := c.finder()
	for _, p := range properties {
		row := rowOf(p.Key)
		if row < 0 {
			continue
		}
		column := c.properties[p.Name]
		if column == nil {
			if len(c.properties) == limit || !utf8.ValidString(p.Name) {
				c.others = true
				continue
			}
			column = make([]uint32, len(c.n))
			c.properties[p.Name] = column
		}
		column[row] = p.Value
	}
}

// visitedChunk identifies the chunk that was looked at last. Files are read into the same memory, one
// after the other, but no two files have the same keys.
type visitedChunk struct {
	of   *Chunk
	low  int64
	rows int
}

// again reports whether c is the chunk that was looked at last, and remembers c.
func (v *visitedChunk) again(c *Chunk) bool {
	before := *v
	*v = visitedChunk{c, c.low, len(c.n)}
	return before == *v
}

// propertyColumn returns the values of a property in the rows of a chunk, as ids of names:
// from the file or the tail if it has the property, else from the source.
type propertyColumn struct {
	*scan
	name string
	last visitedChunk
	ids  []uint32 // of the last chunk
}

// propertyOf returns the column of a property, nil if no row has it. It is not known if the
// chunk is from neither a file nor the tail.
func (s *scan) propertyOf(c *Chunk, name string) (column []uint32, known bool) {
	if c.tail == nil {
		column, known = c.properties[name], c.properties != nil && !c.others
		known = known || column != nil
		s.asked = s.asked || !known
		return column, known
	}
	column, err := c.tail.column(c, name, s.source)
	s.failed = cmp.Or(s.failed, err)
	return column, err == nil
}

// in returns the column of a chunk, nil if no row has the property.
func (p *propertyColumn) in(c *Chunk) []uint32 {
	if p.last.again(c) {
		return p.ids
	}
	column, known := p.propertyOf(c, p.name)
	if p.ids = column; !known {
		p.ids = make([]uint32, len(c.n))
		p.read(c)
	}
	return p.ids
}

func (p *propertyColumn) read(c *Chunk) {
	rowOf := c.finder()
	err := p.source.Properties(p.name, max(c.low, p.from), min(c.high, p.to), func(key int64, value uint32) {
		if i := rowOf(key); i >= 0 {
			p.ids[i] = value
		}
	})
	p.failed = cmp.Or(p.failed, err)
}

// propertyDimension groups by the values of a property. The empty value counts as no value.
func (x *rows) propertyDimension(name string) (*dimension, error) {
	empty, err := x.source.PropertyValue(name, "")
	return &dimension{
		name: "property " + name,
		begin: func(s *scan) numberer {
			column := propertyColumn{scan: s, name: name}
			return func(c *Chunk, rows []int32, t *groupTable, groups []int) ([]int32, []int) {
				ids := column.in(c)
				numberTexts(ids, rows, t, groups)
				if ids != nil && empty != 0 {
					for i, row := range rows {
						if ids[row] == empty {
							groups[i] = 0
						}
					}
				}
				return rows, groups
			}
		},
		keys:     x.textKeys,
		property: name,
	}, err
}

// property matches the values of a property. Of requests that lack it the negative
// operators are true.
func (s *scan) property(l *storage.Leaf, p *storage.CancelCheck) selection {
	s.needs.properties = append(s.needs.properties, l.Key)
	lacks := l.Op.Negative()
	if l.Op != storage.Equals && l.Op != storage.NotEquals {
		column := propertyColumn{scan: s, name: l.Key}
		return s.matches(storage.TextMatcher(l.Op, l.Text, p), lacks, column.in)
	}
	id, err := s.source.PropertyValue(l.Key, l.Text)
	s.failed = cmp.Or(s.failed, err)
	x := propertyRequests{scan: s, id: id, name: l.Key}
	return keep(func(c *Chunk, row int) bool { return x.has(c, row) != lacks })
}

// propertyRequests are the requests that have a value of a property: by the column if the chunk has
// a column of the property, else as the source knows them.
type propertyRequests struct {
	*scan
	id     uint32 // of the value, 0 if no request has it
	name   string
	last   visitedChunk
	known  bool // of the last chunk
	column []uint32
	keys   *keySet
	// everywhere are the requests of the whole scan.
	everywhere *keySet
}

func (x *propertyRequests) has(c *Chunk, row int) bool {
	if !x.last.again(c) {
		if x.column, x.known = x.propertyOf(c, x.name); !x.known {
			x.keys = x.in(c)
		}
	}
	if !x.known {
		return x.keys.has(c.n[row])
	}
	return x.id != 0 && x.column != nil && x.column[row] == x.id
}

// in asks once for all chunks of requests that came out of order: these chunks overlap.
func (x *propertyRequests) in(c *Chunk) *keySet {
	if c.sorted {
		return x.read(max(c.low, x.from), min(c.high, x.to))
	}
	if x.everywhere == nil {
		x.everywhere = x.read(x.from, x.to)
	}
	return x.everywhere
}

func (x *propertyRequests) read(from, to int64) *keySet {
	keys, err := x.source.WithProperty(x.id, from, to)
	x.failed = cmp.Or(x.failed, err)
	slices.Sort(keys)
	return &keySet{keys: keys}
}
