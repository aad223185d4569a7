package llmgateway

import "sync"

// buffer holds what is on its way to a client.
type buffer struct{ data []byte }

// keepSize bounds what an idle buffer holds, in bytes.
const keepSize = 256 << 10

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// free lets others use the buffer.
func (b *buffer) free() {
	if cap(b.data) > keepSize {
		return
	}
	b.data = b.data[:0]
	buffers.Put(b)
}
