package columnar

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Chunk is a part of the requests by columns of four bytes, in which texts are ids of
// names. Rows are only ever appended. A deleted row is marked in a new copy of the column
// org: whoever holds a copy of the chunk reads what the chunk was, without a lock.
type Chunk struct {
	// n are the keys of the requests, between low and high;
	// sorted is true while they ascend.
	n         []int64
	low, high int64
	sorted    bool
	// org is the organisation of the row, 0 as the tombstone of a deleted row. shared is true
	// while somebody has a copy of the chunk; live counts the rows without a tombstone.
	org    []uint32
	shared bool
	live   int
	// columns are nil where they have 0 in each row.
	columns [columnCount][]uint32
	// wide are the values too large for a column, in the order of place.
	wide []wideValue
	// properties are columns of ids of names, nil where the Source has to be asked.
	// others is true if there are more.
	properties map[string][]uint32
	others     bool
	// tail has the columns of properties of a chunk of a Tail, nil for other chunks.
	tail *tailProperties
	// scores are nil where the Source has to be asked.
	scores scoresByName
}

type wideValue struct {
	place int // row * columnCount + column
	value int64
}

// Begin appends a row without values.
func (c *Chunk) Begin(n int64, org uint32) {
	c.sorted = len(c.n) == 0 || c.sorted && n >= c.high
	if len(c.n) == 0 {
		c.low, c.high = n, n
	}
	c.low, c.high = min(c.low, n), max(c.high, n)
	c.n = append(c.n, n)
	c.org = append(c.org, org)
	c.live++
}

// next is an empty chunk with room for rows.
func (c *Chunk) next(rows int) (next Chunk) {
	next.n, next.org = make([]int64, 0, rows), make([]uint32, 0, rows)
	for i, column := range c.columns {
		if column != nil {
			next.columns[i] = make([]uint32, 0, rows)
		}
	}
	return next
}

// append appends a value to the row that began last.
func (c *Chunk) append(column int, v uint32) {
	x := c.columns[column]
	if x == nil {
		if v == 0 {
			return
		}
		x = make([]uint32, len(c.n)-1, cap(c.n))
	}
	c.columns[column] = append(x, v)
}

// at is what stands in a column.
func (c *Chunk) at(column, row int) uint32 {
	if x := c.columns[column]; x != nil {
		return x[row]
	}
	return 0
}

// isWide stands in a column in place of a value that is in wide.
const isWide = math.MaxUint32

// count appends a value to the row that began last. The column has the value plus 1, so
// that 0 means unknown.
func (c *Chunk) count(column int, v int64) {
	stored := uint32(isWide)
	if 0 <= v && v < isWide-1 {
		stored = uint32(v) + 1
	} else {
		c.wide = append(c.wide, wideValue{(len(c.n)-1)*columnCount + column, v})
	}
	c.append(column, stored)
}

// value is what count appended.
func (c *Chunk) value(column, row int) plugins.Count {
	x := c.columns[column]
	if x == nil || x[row] == 0 {
		return plugins.Count{}
	}
	if x[row] == isWide {
		return c.wideValue(column, row)
	}
	return plugins.Known(int64(x[row]) - 1)
}

func (c *Chunk) wideValue(column, row int) plugins.Count {
	i, _ := slices.BinarySearchFunc(c.wide, row*columnCount+column, func(w wideValue, place int) int {
		return cmp.Compare(w.place, place)
	})
	return plugins.Known(c.wide[i].value)
}

// quantityOf gives a value its unit, which columns do not have.
func quantityOf[T plugins.Unit](c plugins.Count) plugins.Quantity[T] {
	return plugins.Quantity[T]{N: T(c.N), Valid: c.Valid}
}

// delete puts tombstones on the rows of a request and returns how many there were.
func (c *Chunk) delete(n int64) (deleted int) {
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
		deleted++
	}
	c.live -= deleted
	return deleted
}

// respondedAt is when the answer ended, 0 without an answer.
func (c *Chunk) respondedAt(row int) storage.Timestamp {
	after := c.value(respondedColumn, row)
	if !after.Valid {
		return 0
	}
	return CreatedAt(c.n[row]) + storage.Timestamp(after.N)
}

// gather appends the values of rows to a slice that it empties first.
func gather[T plugins.Unit](c *Chunk, column int, rows []int32, to []plugins.Quantity[T]) []plugins.Quantity[T] {
	to = slices.Grow(to[:0], len(rows))[:len(rows)]
	x := c.columns[column]
	if x == nil {
		clear(to)
		return to
	}
	for i, row := range rows {
		switch v := x[row]; v {
		case 0:
			to[i] = plugins.Quantity[T]{}
		case isWide:
			to[i] = quantityOf[T](c.wideValue(column, int(row)))
		default:
			to[i] = plugins.Quantity[T]{N: T(v - 1), Valid: true}
		}
	}
	return to
}

// gatherKnown is gather, but returns no values for a column that no row has.
func gatherKnown[T plugins.Unit](c *Chunk, column int, rows []int32, to []plugins.Quantity[T]) []plugins.Quantity[T] {
	if c.columns[column] == nil {
		return to[:0]
	}
	return gather(c, column, rows, to)
}

// gatherFlags appends whether rows have anything but 0 to a slice that it empties first.
func gatherFlags(c *Chunk, column int, rows []int32, to []bool) []bool {
	to = slices.Grow(to[:0], len(rows))[:len(rows)]
	x := c.columns[column]
	if x == nil {
		clear(to)
		return to
	}
	for i, row := range rows {
		to[i] = x[row] != 0
	}
	return to
}

// read reads parts of rows of requests, besides their groups.
func (c *Chunk) read(b *storage.RowBatch, rows []int32, parts storage.RowParts) {
	b.Len = len(rows)
	b.CreatedAt = slices.Grow(b.CreatedAt[:0], len(rows))[:len(rows)]
	for i, row := range rows {
		b.CreatedAt[i] = CreatedAt(c.n[row])
	}
	b.Attempt = gatherFlags(c, attemptColumn, rows, b.Attempt)
	if parts == storage.CountParts {
		return
	}
	b.Cost = gather(c, costColumn, rows, b.Cost)
	if parts == storage.CostParts {
		return
	}
	b.Status = gather(c, statusColumn, rows, b.Status)
	b.Latency = gather(c, latencyColumn, rows, b.Latency)
	b.Input = gather(c, inputColumn, rows, b.Input)
	b.Output = gather(c, outputColumn, rows, b.Output)
	b.RespondedAt = slices.Grow(b.RespondedAt[:0], len(rows))[:len(rows)]
	if after := c.columns[respondedColumn]; after == nil {
		clear(b.RespondedAt)
	} else {
		for i, row := range rows {
			switch v := after[row]; v {
			case 0:
				b.RespondedAt[i] = 0
			case isWide:
				b.RespondedAt[i] = c.respondedAt(int(row))
			default:
				b.RespondedAt[i] = b.CreatedAt[i] + storage.Timestamp(v-1)
			}
		}
	}
	if parts == storage.TotalParts {
		return
	}
	b.EndState = b.EndState[:0]
	for _, row := range rows {
		b.EndState = append(b.EndState, storage.EndState(c.at(endStateColumn, int(row))))
	}
	b.Cached = gatherFlags(c, cachedColumn, rows, b.Cached)
	b.TimeToFirstToken = gatherKnown(c, ttftColumn, rows, b.TimeToFirstToken)
	b.CacheRead = gatherKnown(c, cacheReadColumn, rows, b.CacheRead)
	b.CacheWrite = gatherKnown(c, cacheWriteColumn, rows, b.CacheWrite)
	b.Reasoning = gatherKnown(c, reasoningColumn, rows, b.Reasoning)
	b.CacheSavings = gatherKnown(c, cacheSavingsColumn, rows, b.CacheSavings)
	b.CacheLoss = gatherKnown(c, cacheLossColumn, rows, b.CacheLoss)
	b.SavedCost = gatherKnown(c, savedCostColumn, rows, b.SavedCost)
	b.RoutingSavings = gatherKnown(c, routingSavingsColumn, rows, b.RoutingSavings)
}

// partColumns are the columns that read reads.
func partColumns(parts storage.RowParts) []int {
	columns := []int{attemptColumn, costColumn, statusColumn, latencyColumn, inputColumn, outputColumn, respondedColumn,
		endStateColumn, ttftColumn, cacheReadColumn, cacheWriteColumn, reasoningColumn, cacheSavingsColumn, cacheLossColumn,
		cachedColumn, savedCostColumn, routingSavingsColumn}
	switch parts {
	case storage.CountParts:
		return columns[:1]
	case storage.CostParts:
		return columns[:2]
	case storage.TotalParts:
		return columns[:7]
	}
	return columns
}

// finder returns a function that finds the row of a request, -1 if the chunk has no such
// row. The function is fast for keys that ascend.
func (c *Chunk) finder() func(n int64) int {
	if !c.sorted {
		rows := make(map[int64]int, len(c.n))
		for i, n := range c.n {
			if c.org[i] != 0 { // at most one row of a request is
				rows[n] = i
			}
		}
		return func(n int64) int {
			if i, ok := rows[n]; ok {
				return i
			}
			return -1
		}
	}
	next := 0
	return func(n int64) int {
		for steps := 0; next < len(c.n) && c.n[next] < n; next++ {
			if steps++; steps == 8 {
				next, _ = slices.BinarySearch(c.n, n)
				break
			}
		}
		if next == len(c.n) || c.n[next] > n {
			next, _ = slices.BinarySearch(c.n, n)
		}
		for i := next; i < len(c.n) && c.n[i] == n; i++ {
			if c.org[i] != 0 {
				return i
			}
		}
		return -1
	}
}

// The columns of a chunk.
const (
	userColumn = iota
	sessionColumn
	sessionNameColumn
	modelColumn
	providerColumn
	statusColumn
	latencyColumn
	costColumn
	inputColumn
	outputColumn
	respondedColumn // milliseconds after the request
	attemptColumn
	ttftColumn
	cacheReadColumn
	cacheWriteColumn
	reasoningColumn
	cacheSavingsColumn
	cacheLossColumn
	savedCostColumn
	routingSavingsColumn
	cacheMissColumn
	endStateColumn
	streamColumn
	pathColumn
	finishColumn
	errorTypeColumn
	errorMessageColumn
	errorGroupColumn
	requestModelColumn
	countryColumn
	promptColumn
	promptVersionColumn
	nodeColumn
	jobColumn
	keyIDColumn
	projectColumn
	referrerColumn
	cachedColumn
	passthroughColumn
	threatColumn
	rootColumn
	propertyNamesColumn
	columnCount
)

// Columns are the names of the columns that chunks have, in the order of their numbers.
var Columns = [columnCount]string{
	"user", "session", "session_name", "model", "provider", "status", "latency", "cost", "input", "output", "responded_at", "attempt_of",
	"ttft", "cache_read", "cache_write", "reasoning", "cache_savings", "cache_loss", "saved_cost", "routing_savings", "cache_miss", "end_state", "stream", "path", "finish", "error_type", "error_message", "error_group",
	"request_model", "country", "prompt", "prompt_version", "node", "job", "key_id", "project", "referrer", "cache_reference", "passthrough", "threat", "root", "property_names",
}

// kinds are the kinds of the names that columns refer to by id, "" for other columns.
// required is true for columns with values that are always known.
var kinds, required = func() (kinds [columnCount]string, required [columnCount]bool) {
	for i, name := range Columns {
		kinds[i] = name // property_names is no column of a record
		for _, c := range storage.Columns {
			if c.Name == name {
				kinds[i], required[i] = c.Names, c.NotNull()
			}
		}
	}
	return kinds, required
}()

// columnOf is the column that has what a field compares, -1 if no column has.
func columnOf(f *storage.Field) int {
	if f.Name == "cached" {
		return cachedColumn
	}
	if f.Column == nil || f.Column.Type() == storage.IDColumn && f.Column.Names == "" { // chunks know but whether there is one
		return -1
	}
	return slices.Index(Columns[:], f.Column.Name)
}

// Len counts the rows, also deleted rows.
func (c *Chunk) Len() int { return len(c.n) }

// Bounds are the least and the largest key.
func (c *Chunk) Bounds() (low, high int64) { return c.low, c.high }

// Keep appends a value to a column of the row that began last: an int64, or nil where
// there is no value. Any other value is an id of a request: Keep keeps only that there is an id.
func (c *Chunk) Keep(column int, v any) error {
	switch v := v.(type) {
	case int64:
		switch {
		case kinds[column] != "" && v > math.MaxUint32:
			return fmt.Errorf("the name %d is one too many for analytics: export the records to a new store", v)
		case required[column] || kinds[column] != "":
			c.append(column, uint32(v))
		case column == respondedColumn:
			c.count(column, v-int64(CreatedAt(c.n[len(c.n)-1])))
		default:
			c.count(column, v)
		}
	case nil:
		c.append(column, 0)
	default:
		c.append(column, 1)
	}
	return nil
}
