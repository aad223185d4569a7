package storage

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
)

// MaxSortKeys bounds the sort keys of one query.
const MaxSortKeys = 20

// OrderBy is one sort key of a query. What lacks the value comes last in both
// directions; text sorts by bytes.
type OrderBy[K ~string] struct {
	Key K
	// Name is the property's or prompt input's, for the keys of requests that take
	// one.
	Name string
	Desc bool
}

// ordering is how users or sessions are put into order.
type ordering[K ~string, T any] struct {
	// standard is the key of a query that names no key; it sorts descending.
	standard K
	values   map[K]func(*T) Value
	// tie breaks ties, in the direction of the first key.
	tie func(*T) [2]string
}

// keys are the sort keys of a query, or the standard order.
func (o *ordering[K, T]) keys(sorts []OrderBy[K]) []OrderBy[K] {
	if len(sorts) == 0 {
		return []OrderBy[K]{{Key: o.standard, Desc: true}}
	}
	return sorts
}

func (o *ordering[K, T]) cursor(row *T, sorts []OrderBy[K]) *Cursor[K] {
	c := &Cursor[K]{Sorts: o.keys(sorts), Tie: o.tie(row)}
	for _, s := range c.Sorts {
		c.Values = append(c.Values, o.values[s.Key](row))
	}
	return c
}

// ranked is a row with its value of the first key, by which most comparisons are decided.
type ranked[T any] struct {
	row   *T
	first Value
}

// pager finds what stands on one page of all rows in order.
type pager[K ~string, T any] struct {
	*ordering[K, T]
	sorts         []OrderBy[K]
	after         *Cursor[K]
	offset, limit int
	order         func(a, b ranked[T]) int
	best          []ranked[T]
	// last is the last row of the page, as far as is known, nil while there is room.
	last *ranked[T]
}

func (o *ordering[K, T]) pager(sorts []OrderBy[K], after *Cursor[K], offset, limit int, cancel *CancelCheck) *pager[K, T] {
	sorts = o.keys(sorts)
	order := CancellableOrder(cancel, func(a, b ranked[T]) int {
		if d := a.first.compare(b.first, sorts[0].Desc); d != 0 {
			return d
		}
		for _, s := range sorts[1:] {
			if d := o.values[s.Key](a.row).compare(o.values[s.Key](b.row), s.Desc); d != 0 {
				return d
			}
		}
		x, y := o.tie(a.row), o.tie(b.row)
		return directed(slices.Compare(x[:], y[:]), sorts[0].Desc)
	})
	return &pager[K, T]{ordering: o, sorts: sorts, after: after, offset: offset, limit: limit, order: order}
}

// mayHold returns false if the first key shows that a row is not on the page.
func (g *pager[K, T]) mayHold(row *T) bool {
	first, desc := g.values[g.sorts[0].Key](row), g.sorts[0].Desc
	return g.limit > 0 && (g.last == nil || first.compare(g.last.first, desc) <= 0) && (g.after == nil || first.compare(g.after.Values[0], desc) >= 0)
}

func (g *pager[K, T]) add(row T) {
	r := ranked[T]{&row, g.values[g.sorts[0].Key](&row)}
	if g.last != nil && g.order(r, *g.last) >= 0 || g.after != nil && g.cursor(&row, g.sorts).Compare(g.after) <= 0 {
		return
	}
	g.best = append(g.best, r)
	if want := g.offset + min(g.limit, math.MaxInt-g.offset); len(g.best) > sortedAtOnce && len(g.best)/2 >= want {
		slices.SortFunc(g.best, g.order)
		clear(g.best[want:])
		g.best = g.best[:want]
		g.last = new(g.best[want-1])
	}
}

// rows returns the rows of the page, never nil.
func (g *pager[K, T]) rows() []T {
	slices.SortFunc(g.best, g.order)
	best := g.best[min(g.offset, len(g.best)):]
	page := make([]T, min(g.limit, len(best)))
	for i := range page {
		page[i] = *best[i].row
	}
	return page
}

// sortedAtOnce is how many rows may be put into order for a page with few of them.
const sortedAtOnce = 1000

// parseOrder reads a field sort: an object of keys with their directions, in the
// order in which they apply. Under a named key there is an object of names. special
// reads the keys that order nothing by themselves. Absent raw is no key. Errors are
// *FilterError.
func parseOrder[K ~string, V any](raw []byte, known map[K]V, named []K, special map[string]func(*parser) error) (sorts []OrderBy[K], err error) {
	p := newParser("sort", raw)
	if p.absent() {
		return nil, nil
	}
	add := func(s OrderBy[K]) (err error) {
		if len(sorts) == MaxSortKeys {
			return p.fail("more than %d sort keys", MaxSortKeys)
		}
		s.Desc, err = p.direction()
		sorts = append(sorts, s)
		return err
	}
	err = p.object(func(name string) error {
		if read := special[name]; read != nil {
			return p.member(name, func() error { return read(p) })
		}
		k := K(name)
		if _, ok := known[k]; !ok {
			names := slices.Sorted(maps.Keys(known))
			for name := range special {
				names = append(names, K(name))
			}
			return p.fail("%s", Unknown("key", name, names))
		}
		return p.member(name, func() error {
			if !slices.Contains(named, k) {
				return add(OrderBy[K]{Key: k})
			}
			return p.object(func(name string) error {
				return p.member(name, func() error { return add(OrderBy[K]{Key: k, Name: name}) })
			})
		})
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	return sorts, nil
}

// direction reads asc or desc.
func (p *parser) direction() (desc bool, err error) {
	t, err := p.token()
	if err != nil {
		return false, err
	}
	if t != "asc" && t != "desc" {
		return false, p.fail("expected \"asc\" or \"desc\", got %s", describe(t))
	}
	return t == "desc", nil
}

// ParseUserSort reads the sort of a UserQuery.
func ParseUserSort(raw []byte) ([]UserSort, error) {
	return parseOrder(raw, userValues, nil, nil)
}

// ParseSessionSort reads the sort of a SessionQuery.
func ParseSessionSort(raw []byte) ([]SessionSort, error) {
	return parseOrder(raw, sessionValues, nil, nil)
}

// Cursor is the place of a row in the order of a query, after which a page can go
// on. Pages that follow one another in this way hold each row once if the row's values
// do not change, whatever is written meanwhile.
type Cursor[K ~string] struct {
	// Sorts are the keys of the query, or its standard order, with a value for each.
	// Bodies are too long for the String of a cursor: a cursor of a sort by bodies has no
	// Values.
	Sorts  []OrderBy[K]
	Values []Value
	// Tie breaks ties in the direction of the first key: the 16 bytes of a request's
	// ID, a user's ID, or a session's ID and name.
	Tie [2]string
}

// Compare is negative when c comes before d. Both are cursors of the same query.
func (c *Cursor[K]) Compare(d *Cursor[K]) int {
	for i, s := range c.Sorts {
		if order := c.Values[i].compare(d.Values[i], s.Desc); order != 0 {
			return order
		}
	}
	return directed(slices.Compare(c.Tie[:], d.Tie[:]), c.Sorts[0].Desc)
}

// String is the form in which clients hand the cursor back.
func (c *Cursor[K]) String() string {
	b := binary.BigEndian.AppendUint32(nil, orderID(c.Sorts))
	field := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, v := range c.Values {
		field(v.encode())
	}
	for _, tie := range c.Tie {
		field(tie)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ErrCursor is the error of a cursor that a query cannot go on with.
var ErrCursor = errors.New("this cursor is none of a query with this sort: begin again without it")

// parseCursor reads what String wrote for a query with the same sorts. A bare cursor
// has no Values.
func parseCursor[K ~string](text string, sorts []OrderBy[K], bare bool) (*Cursor[K], error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 4 || binary.BigEndian.Uint32(b) != orderID(sorts) {
		return nil, ErrCursor
	}
	var fields []string
	for b = b[4:]; len(b) > 0; {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, ErrCursor
		}
		b = b[n:]
		fields, b = append(fields, string(b[:size])), b[size:]
	}
	c := &Cursor[K]{Sorts: sorts}
	values := len(fields) - len(c.Tie)
	if values != len(sorts) && (values != 0 || !bare) {
		return nil, ErrCursor
	}
	copy(c.Tie[:], fields[values:])
	for _, field := range fields[:values] {
		v, err := decodeValue(field)
		if err != nil {
			return nil, ErrCursor
		}
		c.Values = append(c.Values, v)
	}
	return c, nil
}

// cursorVersion changes with what cursors have as values, so that older ones are refused.
const cursorVersion = 2

// orderID identifies the order of a query.
func orderID[K ~string](sorts []OrderBy[K]) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte{cursorVersion})
	_ = json.NewEncoder(h).Encode(sorts) // neither texts nor a hash fail
	return h.Sum32()
}

// encode is the value as a text that begins with its kind.
func (v Value) encode() string {
	switch v.kind {
	case wholeNumber:
		return "w" + strconv.FormatInt(v.number, 10)
	case realNumber:
		return "r" + strconv.FormatFloat(v.float(), 'g', -1, 64)
	case someText:
		return "t" + v.text
	}
	return ""
}

func decodeValue(s string) (v Value, err error) {
	if s == "" {
		return v, nil
	}
	switch s[0] {
	case 'w':
		var n int64
		n, err = strconv.ParseInt(s[1:], 10, 64)
		v = integer(n)
	case 'r':
		var n float64
		n, err = strconv.ParseFloat(s[1:], 64)
		v = fractional(n)
	case 't':
		v.kind, v.text = someText, s[1:]
	default:
		err = ErrCursor
	}
	return v, err
}
