package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
)

// SQLite has no sums of its pages: a flipped bit in a value is read as another value. Rows
// therefore have sums of their values. A row that an earlier version of Weir wrote has none.

// errDamaged means that the database has what was never written to it.
var errDamaged = errors.New("the database is damaged: `weir check` says more, and `sqlite3 <file> .recover` saves what is readable")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumColumn is the column of the sum.
const sumColumn = "sum"

// summed returns columns with the column of their sum, which is the last one.
func summed(columns []column) []column {
	for i := range columns {
		columns[i].seed = crc32.Checksum([]byte(columns[i].name), castagnoli)
	}
	return append(columns, column{name: sumColumn, definition: "INTEGER"})
}

// rowSum is the sum of the values of a row. The order of the columns does not matter, and neither
// does a column without a value, so that versions of Weir with more columns find the same sum.
type rowSum struct {
	sum     uint64
	scratch []byte
}

// add adds the value of a column. A value of a type that no column has makes the sum differ.
func (s *rowSum) add(c *column, v driver.Value) {
	b := s.scratch[:0]
	if flag, ok := v.(bool); ok { // which the database has as a number
		v = int64(0)
		if flag {
			v = int64(1)
		}
	}
	switch v := v.(type) {
	case nil:
		return
	case int64:
		if v == 0 && c.required {
			return
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	case string:
		b = append(b, v...)
	case []byte:
		b = append(b, v...)
	}
	s.scratch = b
	s.sum += uint64(crc32.Update(c.seed, castagnoli, b)) * 0x9e3779b97f4a7c15 // spreads 32 bits over 64
}

// of returns the sum of a row.
func (s *rowSum) of(columns []column, row []driver.Value) driver.Value {
	for i, v := range row {
		s.add(&columns[i], v)
	}
	return s.take()
}

// take returns the sum, and begins the next one.
func (s *rowSum) take() driver.Value {
	sum := int64(s.sum)
	s.sum = 0
	return sum
}

// compare compares the sum with that of the row, and begins the next one.
func (s *rowSum) compare(v driver.Value) error { return compareSums(v, s.take()) }

// compareRow compares the sum of a row, which is its last value, with that of the other values. A
// row of an old database has no sum.
func compareRow(columns []column, row []driver.Value) error {
	if len(row) < len(columns) {
		return nil
	}
	last := len(columns) - 1
	return compareSums(row[last], new(rowSum).of(columns, row[:last]))
}

func compareSums(written, is driver.Value) error {
	if written != nil && written != is {
		return errDamaged
	}
	return nil
}

// recoverType returns a value of a type that its column never has as an error. It is deferred.
func recoverType(err *error) {
	switch p := recover().(type) {
	case nil:
	case *runtime.TypeAssertionError:
		*err = fmt.Errorf("a value of the wrong type: %w", errDamaged)
	default:
		panic(p)
	}
}

// isSummed reports whether there is a column of a sum.
func isSummed(columns []column) bool {
	return slices.ContainsFunc(columns, func(c column) bool { return c.name == sumColumn })
}
