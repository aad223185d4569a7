package clickhouse

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// columns are the columns of the table records except version, properties and assets.
var columns = slices.Concat(storage.Columns, storage.DetailColumns)

// columnNames lists the columns in the order of values and of a scanner.
var columnNames = func() string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return strings.Join(append(names, "properties", "assets"), ", ")
}()

// values are a record's values of columnNames.
func values(r *storage.Record) []any {
	values := make([]any, 0, len(columns)+3)
	for _, c := range columns {
		v := c.Get(r)
		switch c.Type() {
		case storage.TextColumn:
			v = orZero[string](v)
		case storage.TimeColumn:
			v = orZero[int64](v)
		case storage.FlagColumn:
			v = orZero[bool](v)
		case storage.IDColumn:
			var id uuid.UUID
			copy(id[:], orZero[[]byte](v))
			v = id
		case storage.EndStateColumn:
			v = r.EndState.String()
		case storage.IntegerColumn:
			if c.NotNull() {
				v = orZero[int64](v)
			}
		}
		values = append(values, v)
	}
	return append(values, r.Properties, r.Assets)
}

func orZero[T any](v any) T {
	t, _ := v.(T)
	return t
}

// scanner makes a record of a row of columnNames.
type scanner struct{ to []any }

func newScanner() *scanner {
	s := new(scanner)
	for _, c := range columns {
		s.to = append(s.to, target(c))
	}
	s.to = append(s.to, new(map[string]string), new([]string))
	return s
}

// target returns a pointer for the driver to scan a column into.
func target(c *storage.Column) any {
	switch c.Type() {
	case storage.TextColumn:
		return new(string)
	case storage.TimeColumn:
		return new(time.Time)
	case storage.FlagColumn:
		return new(bool)
	case storage.IDColumn:
		return new(uuid.UUID)
	case storage.EndStateColumn:
		return new(int8)
	}
	if c.NotNull() {
		return new(int64)
	}
	return new(*int64)
}

// record is the record of the row that was scanned last.
func (s *scanner) record() *storage.Record {
	r := new(storage.Record)
	for i, c := range columns {
		switch v := s.to[i].(type) {
		case *string:
			set(c, r, *v, *v == "")
		case *time.Time:
			set(c, r, v.UnixMilli(), false)
		case *bool:
			set(c, r, int64(1), !*v)
		case *uuid.UUID:
			set(c, r, v[:], *v == uuid.Nil)
		case *int8:
			set(c, r, int64(*v), false)
		case *int64:
			set(c, r, *v, false)
		case **int64:
			if *v != nil {
				set(c, r, **v, false)
			}
		}
	}
	n := len(columns)
	if m := *s.to[n].(*map[string]string); len(m) > 0 {
		r.Properties = m
	}
	if list := *s.to[n+1].(*[]string); len(list) > 0 {
		r.Assets = list
	}
	s.to[n], s.to[n+1] = new(map[string]string), new([]string) // the record has them now
	return r
}

func set(c *storage.Column, r *storage.Record, v any, none bool) {
	if !none {
		c.Set(r, v)
	}
}

// version orders the versions of a record: by their revisions, and those of one journal by where
// they stand in it.
func version(r *storage.Record) *big.Int {
	v := big.NewInt(int64(r.Revision))
	return v.Or(v.Lsh(v, 96), place(r.Version))
}

// place is a place in a journal, as one number.
func place(p storage.Position) *big.Int {
	v := new(big.Int).SetUint64(p.Segment)
	return v.Or(v.Lsh(v, 32), big.NewInt(int64(p.Ordinal)))
}

// learnedVersion orders annotations by when they were learned, and annotations of the same
// moment by their batches.
func learnedVersion(at storage.Timestamp, batch storage.Position) *big.Int {
	v := big.NewInt(int64(max(at, 0)))
	low := place(storage.Position{Segment: batch.Segment & 0xffff_ffff, Ordinal: batch.Ordinal})
	return v.Or(v.Lsh(v, 64), low)
}
