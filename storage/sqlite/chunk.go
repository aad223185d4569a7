package sqlite

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// chunkRows bounds the rows of a chunk. Tests make it smaller.
var chunkRows = 64 << 10

// chunk is a part of a table in memory, by columns of four bytes. Rows are only
// ever appended, and one that goes is crossed out in a copy of the column org:
// who holds a copy of the chunk reads what it was, without a lock.
type chunk struct {
	// n are the keys of the requests, as in the database, between low and high;
	// sorted is true while they ascend.
	n         []int64
	low, high int64
	sorted    bool
	// org is whose the row is, 0 when it is crossed out. shared is true while
	// somebody has a copy of the chunk; live counts what is not crossed out.
	org    []uint32
	shared bool
	live   int
	// columns are those of requests, or scoreColumn alone.
	columns [columnCount][]uint32
	// wide are the values too large for a column, in the order of place.
	wide []wideValue
	// scores are the values of scores.
	scores []float64
}

// The columns of a chunk: first those which are numbers of texts, 0 for none.
const (
	userColumn = iota
	sessionColumn
	modelColumn
	providerColumn
	scoreColumn
	statusColumn
	latencyColumn
	costColumn
	inputColumn
	outputColumn
	respondedColumn // milliseconds after the request
	attemptColumn   // known of an attempt that did not answer
	columnCount
)

// What stands in a column in place of a value.
const (
	unknownValue = math.MaxUint32
	elsewhere    = math.MaxUint32 - 1 // it is in wide
)

type wideValue struct {
	place int // row * columnCount + column
	value int64
}

// begin appends a row without values.
func (c *chunk) begin(n int64, org uint32) {
	c.sorted = len(c.n) == 0 || c.sorted && n >= c.high
	if len(c.n) == 0 {
		c.low, c.high = n, n
	}
	c.low, c.high = min(c.low, n), max(c.high, n)
	c.n = append(c.n, n)
	c.org = append(c.org, org)
	c.live++
}

// next is an empty chunk with room for as many rows.
func (c *chunk) next() (next chunk) {
	next.n, next.org = make([]int64, 0, chunkRows), make([]uint32, 0, chunkRows)
	for i, column := range c.columns {
		if column != nil {
			next.columns[i] = make([]uint32, 0, chunkRows)
		}
	}
	if c.scores != nil {
		next.scores = make([]float64, 0, chunkRows)
	}
	return next
}

// number appends the number of a text to the row that began last.
func (c *chunk) number(column int, text uint32) {
	c.columns[column] = append(c.columns[column], text)
}

// count appends a value to the row that began last.
func (c *chunk) count(column int, v plugins.Count) {
	stored := uint32(unknownValue)
	switch {
	case v.Valid && 0 <= v.N && v.N < elsewhere:
		stored = uint32(v.N)
	case v.Valid:
		stored = elsewhere
		c.wide = append(c.wide, wideValue{(len(c.n)-1)*columnCount + column, v.N})
	}
	c.columns[column] = append(c.columns[column], stored)
}

// value is what count appended.
func (c *chunk) value(column, row int) plugins.Count {
	if v := c.columns[column][row]; v < elsewhere {
		return plugins.Known(int64(v))
	} else if v == unknownValue {
		return plugins.Count{}
	}
	i, _ := slices.BinarySearchFunc(c.wide, row*columnCount+column, func(w wideValue, place int) int {
		return cmp.Compare(w.place, place)
	})
	return plugins.Known(c.wide[i].value)
}

// quantityOf and countOf take a value in and out of its unit, which columns do
// not have.
func quantityOf[T plugins.Unit](c plugins.Count) plugins.Quantity[T] {
	return plugins.Quantity[T]{N: T(c.N), Valid: c.Valid}
}

func countOf[T plugins.Unit](q plugins.Quantity[T]) plugins.Count {
	return plugins.Count{N: int64(q.N), Valid: q.Valid}
}

// cross crosses out the rows of a request and answers how many there were.
func (c *chunk) cross(n int64) (crossed int) {
	if n < c.low || n > c.high {
		return 0
	}
	from := 0
	if c.sorted {
		from, _ = slices.BinarySearch(c.n, n)
	}
	for i := from; i < len(c.n) && !(c.sorted && c.n[i] > n); i++ {
		if c.n[i] != n || c.org[i] == 0 {
			continue
		}
		if c.shared {
			c.org = append(make([]uint32, 0, cap(c.org)), c.org...)
			c.shared = false
		}
		c.org[i] = 0
		crossed++
	}
	c.live -= crossed
	return crossed
}

// respondedAt is when the answer ended, 0 if there was none.
func (c *chunk) respondedAt(row int) storage.Timestamp {
	after := c.value(respondedColumn, row)
	if !after.Valid {
		return 0
	}
	return createdAt(c.n[row]) + storage.Timestamp(after.N)
}

// read reads what a row is of a request, besides its group and its time.
func (c *chunk) read(r *storage.Row, row int) {
	r.Attempt = c.value(attemptColumn, row).Valid
	r.Status = c.value(statusColumn, row)
	r.Latency = quantityOf[plugins.Milliseconds](c.value(latencyColumn, row))
	r.Cost = quantityOf[plugins.Nanodollars](c.value(costColumn, row))
	r.Input = c.value(inputColumn, row)
	r.Output = c.value(outputColumn, row)
	r.RespondedAt = c.respondedAt(row)
}
