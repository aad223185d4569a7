package storage

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
)

// Cursor is the place of a row in the order of a query, behind which a page can go
// on: pages that follow one another in this way hold each row once whose values stay
// the same, whatever is written meanwhile.
type Cursor[K ~string] struct {
	// Sorts are the keys of the query, or its standard order, with a value for each.
	// Bodies are too long for the String of a cursor, which then has no Values.
	Sorts  []OrderBy[K]
	Values []Value
	// Tie breaks ties in the direction of the first key: the 16 bytes of a request's
	// ID, a user's ID, or a session's ID and name.
	Tie [2]string
}

// Compare is negative when c comes before d, of the same query.
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

// parseCursor reads what String wrote of a query of the same sorts. A bare cursor
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

// orderID identifies the order of a query.
func orderID[K ~string](sorts []OrderBy[K]) uint32 {
	h := fnv.New32a()
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
		v = whole(n)
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
