package capture

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/modules/internal/admission"
)

// Memory returns, in bytes, what the copies of all exchanges in flight may take
// together. Copies beyond it are truncated; the traffic itself is not touched.
var Memory = sync.OnceValue(func() int64 { return admission.Share(256 << 20) })

var inUse atomic.Int64 // bytes that are reserved

const (
	minBuffer = 2 << 10
	classes   = 25 // 2, 3, 4, 6, 8 KiB to 8 MiB
	// maxTrust bounds the first buffer for a body, in bytes, whatever length its header announces.
	maxTrust = 64 << 10
	// growth is how many times the bytes so far a later buffer has, up to the announced length, so that
	// a large body is copied only a few times.
	growth = 4
)

// buffer is a block of memory with the size of a class.
type buffer struct {
	data  []byte
	class int
}

var pools [classes]sync.Pool // of *buffer, by class

// sizeClass returns the smallest class whose buffers hold n bytes. The sizes are powers of two and
// the numbers halfway between them.
func sizeClass(n int64) int {
	class := 2 * bits.Len64(uint64(max(n, minBuffer)-1)/minBuffer)
	if class > 0 && n <= classSize(class-1) {
		class--
	}
	return class
}

// classSize returns the size of the buffers of a class, in bytes.
func classSize(class int) int64 {
	if class%2 == 1 {
		return minBuffer * 3 / 2 << (class / 2)
	}
	return minBuffer << (class / 2)
}

// take reserves the memory of a buffer of n bytes, in addition to reserved, and returns the class of the
// buffer. ok is false if there is no room.
func take(n, reserved int64) (class int, ok bool) {
	class = sizeClass(n)
	return class, Reserve(classSize(class) - reserved)
}

// Reserve reserves n bytes of the memory of copies until Return. ok is false if there is no room.
func Reserve(n int64) (ok bool) {
	if ok = inUse.Add(n) <= Memory(); !ok {
		Return(n)
	}
	return ok
}

// Return gives back what Reserve took.
func Return(n int64) { inUse.Add(-n) }

// newBuffer returns an empty buffer, from the pool if the class has one.
func newBuffer(class int) *buffer {
	if class < classes {
		if b, ok := pools[class].Get().(*buffer); ok {
			return b
		}
	}
	return &buffer{data: make([]byte, 0, classSize(class)), class: class}
}

// recycle gives the buffer back to its pool.
func (b *buffer) recycle() {
	if b.class < classes {
		b.data = b.data[:0]
		pools[b.class].Put(b)
	}
}
