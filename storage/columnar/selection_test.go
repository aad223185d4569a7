package columnar

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// TestSelections holds that a tree of comparisons keeps the rows that storage.Match is true of, in
// order: also of numbers that are unknown, negative, or too large for a column.
func TestSelections(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 2))
	numbers := []int64{-1, 0, 1, 2, 200, 429, isWide - 3, isWide - 2, isWide - 1, isWide, math.MaxInt64}
	number := func() (c plugins.Count) {
		if r.IntN(5) > 0 {
			c = plugins.Known(numbers[r.IntN(len(numbers))])
		}
		return c
	}
	var c Chunk
	var records []*storage.Record
	for i := range 500 {
		x := &storage.Record{CreatedAt: storage.Timestamp(i), Status: number(), Latency: quantityOf[plugins.Milliseconds](number()), Stream: r.IntN(2) == 0}
		x.Usage.Input = number()
		records = append(records, x)
		c.Begin(FirstKey(x.CreatedAt), 1)
		for column, v := range map[int]plugins.Count{statusColumn: x.Status, inputColumn: x.Usage.Input, latencyColumn: {N: int64(x.Latency.N), Valid: x.Latency.Valid}} {
			value := any(nil)
			if v.Valid {
				value = v.N
			}
			if err := c.Keep(column, value); err != nil {
				t.Fatal(err)
			}
		}
		stream := int64(0)
		if x.Stream {
			stream = 1
		}
		if err := c.Keep(streamColumn, stream); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(c.wide, func(a, b wideValue) int { return a.place - b.place }) // as the columns of a row are in order
	leaf := func() *storage.Leaf {
		l := &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, []string{"status", "latency", "prompt_tokens", "stream", "request_created_at"}[r.IntN(5)])}
		operators := l.Field.Kind.Operators()
		l.Op, l.Bool, l.Time = operators[r.IntN(len(operators))], r.IntN(2) == 0, storage.Timestamp(r.IntN(500))
		l.Number = storage.DecimalOf(float64(numbers[r.IntN(len(numbers))]))
		if r.IntN(8) == 0 {
			l.Number = storage.DecimalOf(200.5)
		}
		return l
	}
	var tree func(depth int) storage.Filter
	tree = func(depth int) storage.Filter {
		if depth == 0 || r.IntN(4) == 0 {
			return leaf()
		}
		return &storage.Branch{Or: r.IntN(2) == 0, Left: tree(depth - 1), Right: tree(depth - 1)}
	}
	for range 1000 {
		f := tree(r.IntN(4))
		var want, all []int32
		for i, x := range records {
			if all = append(all, int32(i)); storage.Match(f, x, nil) {
				want = append(want, int32(i))
			}
		}
		s := scan{ranges: make(map[*storage.Leaf][]columnRange)}
		leaves := make(map[*storage.Leaf]selection)
		for l := range storage.Leaves(f) {
			leaves[l] = s.leaf(l, nil)
		}
		kept := join(f, leaves)
		for part := range slices.Chunk(all, 170) {
			first, last := part[0], part[len(part)-1]
			of := slices.DeleteFunc(slices.Clone(want), func(row int32) bool { return row < first || row > last })
			if got := kept(&c, slices.Clone(part)); !slices.Equal(got, of) {
				t.Fatalf("%d rows, want %d: %s", len(got), len(of), storage.AppendJSON(nil, f))
			}
		}
	}
}

// TestBatchesOfRows holds that what is read of rows is what was kept, in the order of the rows.
func TestBatchesOfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 3))
	var c Chunk
	for i := range 100 {
		c.Begin(FirstKey(storage.Timestamp(1000+i)), 1)
		for column := range columnCount {
			if column%5 != 0 && r.IntN(3) > 0 {
				c.count(column, []int64{0, 7, math.MaxUint32, math.MaxInt64, -5}[r.IntN(5)])
			} else {
				c.append(column, 0)
			}
		}
	}
	rows := []int32{0, 3, 3, 50, 99}
	var b storage.RowBatch
	for range 2 { // the second time into the same memory
		c.read(&b, rows, storage.DetailParts)
		for i, row := range rows {
			row := int(row)
			if b.CreatedAt[i] != CreatedAt(c.n[row]) || b.RespondedAt[i] != c.respondedAt(row) || b.Attempt[i] != (c.at(attemptColumn, row) != 0) ||
				b.Status[i] != c.value(statusColumn, row) || b.Cost[i] != quantityOf[plugins.Nanodollars](c.value(costColumn, row)) ||
				b.Latency[i] != quantityOf[plugins.Milliseconds](c.value(latencyColumn, row)) || b.CacheRead[i] != c.value(cacheReadColumn, row) || len(b.Reasoning) > 0 ||
				b.Input[i] != c.value(inputColumn, row) || b.Output[i] != c.value(outputColumn, row) || b.Cached[i] != (c.at(cachedColumn, row) != 0) {
				t.Errorf("row %d is read as others are", row)
			}
		}
		if b.Len != len(rows) {
			t.Errorf("%d rows, want %d", b.Len, len(rows))
		}
	}
}
