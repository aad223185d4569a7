package columnar

import (
	"math"
	"slices"
)

// Tail has the newest requests in memory: all requests after a key. No file of columns has
// them yet. A copy of the Tail does not change when the Tail does.
type Tail struct {
	// chunkRows bounds the rows of a chunk, and maxProperties the properties that it keeps.
	chunkRows, maxProperties int
	after                    int64
	// last is the largest key that has been read.
	last   int64
	chunks []Chunk
}

// NewTail returns a tail of the requests after a key, which Update reads.
func (e *Engine) NewTail(after int64) *Tail {
	return &Tail{chunkRows: e.ChunkRows, maxProperties: e.MaxProperties, after: after, last: after}
}

// Update brings the tail to what the requests are now. changed are the keys of requests that
// have changed; new requests need not be among them.
func (t *Tail) Update(of Requests, changed []int64) error {
	changed = slices.DeleteFunc(slices.Clone(changed), func(n int64) bool { return n <= t.after || n > t.last })
	slices.Sort(changed)
	changed = slices.Compact(changed)
	for _, n := range changed {
		t.remove(n)
	}
	if len(changed) > 0 {
		if err := of.Keys(changed, t.chunk); err != nil {
			return err
		}
	}
	for {
		rows, err := of.Between(t.last, math.MaxInt64, t.chunkRows, t.chunk)
		for i := range t.chunks {
			t.last = max(t.last, t.chunks[i].high)
		}
		if err != nil || rows < t.chunkRows {
			return err
		}
	}
}

// chunk is the chunk that takes the next row.
func (t *Tail) chunk() *Chunk {
	switch n := len(t.chunks); {
	case n == 0:
		t.append(Chunk{})
	case len(t.chunks[n-1].n) >= t.chunkRows:
		t.append(t.chunks[n-1].next(t.chunkRows))
	}
	return &t.chunks[len(t.chunks)-1]
}

func (t *Tail) append(c Chunk) {
	c.tail = &tailProperties{limit: t.maxProperties, columns: make(map[string]tailProperty)}
	t.chunks = append(t.chunks, c)
}

// Len counts the rows, also deleted rows.
func (t *Tail) Len() (rows int) {
	for i := range t.chunks {
		rows += len(t.chunks[i].n)
	}
	return rows
}

// remove takes a request away.
func (t *Tail) remove(n int64) {
	for i := len(t.chunks) - 1; i >= 0; i-- {
		if t.chunks[i].delete(n) > 0 {
			return
		}
	}
}

// Forget drops the chunks that have nothing after a key.
func (t *Tail) Forget(after int64) {
	t.after, t.last = max(t.after, after), max(t.last, after)
	t.chunks = slices.DeleteFunc(t.chunks, func(c Chunk) bool { return c.high <= after || c.live == 0 })
}

// Copy is the tail as it is now, for reading.
func (t *Tail) Copy() *Tail {
	c := *t
	for i := range t.chunks {
		t.chunks[i].shared = true
	}
	c.chunks = slices.Clone(t.chunks)
	return &c
}
