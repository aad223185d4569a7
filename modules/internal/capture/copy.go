package capture

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Memory bounds, in bytes, what the copies of all exchanges in flight take
// together. Copies beyond it are truncated; the traffic itself is not touched.
const Memory = 256 << 20

var inUse atomic.Int64

// Copy is the copy of a body, cut at a number of bytes. The zero Copy keeps
// nothing.
type Copy struct {
	buf       *buffer
	max       int64
	truncated bool
	lent      bool
}

// Keep lets the copy grow to max bytes. expected is the length of the body
// where that is known, so that the copy need not grow on its way.
func (c *Copy) Keep(max, expected int64) {
	c.max = max
	if expected > 0 {
		c.reserve(min(max, expected, maxTrust))
	}
}

// Write appends p as far as there is room.
func (c *Copy) Write(p []byte) {
	if c.max == 0 || len(p) == 0 {
		return
	}
	n := min(c.len()+int64(len(p)), c.max)
	if !c.reserve(n) {
		n = min(n, c.cap())
		c.max = n
	}
	fits := n - c.len()
	if fits < int64(len(p)) {
		c.truncated = true
	}
	if fits > 0 {
		c.buf.data = append(c.buf.data, p[:fits]...)
	}
}

// Bytes are the bytes kept so far, nil if there are none. They stay as they are
// until Free, also when more is written.
func (c *Copy) Bytes() []byte {
	if c.len() == 0 {
		return nil
	}
	c.lent = true
	return c.buf.data[:len(c.buf.data):len(c.buf.data)]
}

// Truncated tells whether the body was longer than what was kept of it.
func (c *Copy) Truncated() bool { return c.truncated }

// Free gives the memory back. The copy keeps nothing from now on.
func (c *Copy) Free() {
	inUse.Add(-c.cap())
	if c.buf != nil {
		c.buf.recycle()
	}
	*c = Copy{truncated: c.truncated}
}

func (c *Copy) len() int64 {
	if c.buf == nil {
		return 0
	}
	return int64(len(c.buf.data))
}

func (c *Copy) cap() int64 {
	if c.buf == nil {
		return 0
	}
	return int64(cap(c.buf.data))
}

// reserve makes room for n bytes in all, and is false when there is no memory.
func (c *Copy) reserve(n int64) bool {
	if n <= c.cap() {
		return true
	}
	class := sizeClass(n)
	more := classSize(class) - c.cap()
	if inUse.Add(more) > Memory {
		inUse.Add(-more)
		return false
	}
	grown := newBuffer(class)
	if c.buf != nil {
		grown.data = append(grown.data, c.buf.data...)
		if !c.lent { // else somebody may still read it
			c.buf.recycle()
		}
	}
	c.buf, c.lent = grown, false
	return true
}

const (
	minBuffer = 2 << 10
	classes   = 25 // 2, 3, 4, 6, 8 KiB to 8 MiB
	// maxTrust is how much memory a mere announcement of a length gets.
	maxTrust = 64 << 10
)

// buffer is a block of memory of the size of a class.
type buffer struct {
	data  []byte
	class int
}

var pools [classes]sync.Pool

// sizeClass is the class of the least buffers that hold n bytes. Their sizes are
// the powers of two and what lies halfway between them.
func sizeClass(n int64) int {
	class := 2 * bits.Len64(uint64(max(n, minBuffer)-1)/minBuffer)
	if class > 0 && n <= classSize(class-1) {
		class--
	}
	return class
}

func classSize(class int) int64 {
	if class%2 == 1 {
		return minBuffer * 3 / 2 << (class / 2)
	}
	return minBuffer << (class / 2)
}

func newBuffer(class int) *buffer {
	if class < classes {
		if b, ok := pools[class].Get().(*buffer); ok {
			return b
		}
	}
	return &buffer{data: make([]byte, 0, classSize(class)), class: class}
}

func (b *buffer) recycle() {
	if b.class < classes {
		b.data = b.data[:0]
		pools[b.class].Put(b)
	}
}
