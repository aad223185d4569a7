package journal

import (
	"hash/crc32"
	"sync"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/storage"
)

// draft is an entry on its way into a segment. Concurrent drafts form a group,
// whose first writes for all of them.
type draft struct {
	kind kind
	// buf holds head, metadata and content but for the bodies that are written
	// from the caller's memory.
	buf      []byte
	metadata int
	bodies   [2]span
	// length and sum are those of the content.
	length int64
	sum    uint32
	media  bool

	id     uuid.UUID
	org    string
	at     moment
	number uint64 // of the exchange, 0 unless it is the first of its entries

	interrupted bool // a record from before the end of its exchange

	// done tells a draft that another has written for it.
	done  chan struct{}
	place storage.Position
	err   error
}

// span is a body that belongs at an offset of a draft's buf.
type span struct {
	at   int
	data []byte
}

const (
	// borrowSize is the size from which a body is written from where it is: to
	// copy less costs less than one more vector.
	borrowSize = 4 << 10
	// keepSize bounds the buffers that idle drafts hold.
	keepSize = 64 << 10
)

var drafts = sync.Pool{New: func() any { return &draft{done: make(chan struct{}, 1)} }}

func (d *draft) free() {
	if cap(d.buf) > keepSize {
		d.buf = nil
	}
	*d = draft{buf: d.buf[:0], done: d.done}
	drafts.Put(d)
}

func encode[M any](d *draft, k kind, wire message[M], m *M) {
	d.kind = k
	d.buf = wire.append(append(d.buf[:0], make([]byte, headSize)...), m)
	d.metadata = len(d.buf) - headSize
}

// content lays down c and its checksum.
func (d *draft) content(c *storage.Content) {
	if c == nil || len(c.Request.Data)+len(c.Response.Data)+len(c.Inputs) == 0 {
		return
	}
	d.media = c.Media
	start := len(d.buf)
	d.buf = contentWire[:requestData].append(d.buf, c)
	for i, data := range [...][]byte{c.Request.Data, c.Response.Data} {
		if len(data) == 0 {
			continue
		}
		d.buf = protowire.AppendTag(d.buf, requestData+protowire.Number(i), protowire.BytesType)
		d.buf = protowire.AppendVarint(d.buf, uint64(len(data)))
		if len(data) < borrowSize {
			d.buf = append(d.buf, data...)
			continue
		}
		d.sum = crc32.Update(d.sum, castagnoli, d.buf[start:])
		d.sum = crc32.Update(d.sum, castagnoli, data)
		d.length += int64(len(d.buf) - start + len(data))
		d.bodies[i] = span{len(d.buf), data}
		start = len(d.buf)
	}
	d.sum = crc32.Update(d.sum, castagnoli, d.buf[start:])
	d.length += int64(len(d.buf) - start)
}

func (d *draft) size() int64 { return headSize + int64(d.metadata) + d.length }

// finish writes the head, once the draft's place is known.
func (d *draft) finish(ordinal, salt uint32) {
	b := d.buf[:headSize+d.metadata]
	sizes := uint32(d.metadata) | uint32(d.kind)<<24
	if d.media {
		sizes |= mediaBit
	}
	order.PutUint32(b[4:], d.sum)
	order.PutUint32(b[8:], ordinal)
	order.PutUint32(b[12:], uint32(d.length))
	order.PutUint32(b[16:], sizes)
	order.PutUint32(b, crc32.Update(salt, castagnoli, b[4:]))
}

func (d *draft) appendPieces(pieces [][]byte) [][]byte {
	from := 0
	for _, s := range d.bodies {
		if s.data != nil {
			pieces = append(pieces, d.buf[from:s.at], s.data)
			from = s.at
		}
	}
	if from < len(d.buf) {
		pieces = append(pieces, d.buf[from:])
	}
	return pieces
}
