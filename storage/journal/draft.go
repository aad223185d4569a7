package journal

import (
	"hash/crc32"
	"sync"

	"github.com/google/uuid"

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
	bodies   []span
	// length and sum are those of the content.
	length int64
	sum    uint32
	media  bool

	id     uuid.UUID
	org    string
	at     moment
	number uint64 // of the exchange, 0 unless it is the first of its entries

	interrupted bool // a record from before the end of its exchange

	// whole is what the entry has the content of, and table what that was laid down
	// with. own is where the request's own bytes begin in the entry, offset where the
	// entry stands in its segment.
	whole  *storage.Content
	table  *chunkTable
	split  splitter
	own    int64
	offset int64

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
	// keepChunks bounds the memory of their splitters.
	keepChunks = 1 << 10
)

var drafts = sync.Pool{New: func() any { return &draft{done: make(chan struct{}, 1)} }}

func (d *draft) free() {
	if cap(d.buf) > keepSize {
		d.buf = nil
	}
	if cap(d.split.cuts) > keepChunks {
		d.split = splitter{}
	}
	clear(d.bodies)
	*d = draft{buf: d.buf[:0], bodies: d.bodies[:0], split: d.split, done: d.done}
	drafts.Put(d)
}

func encode[M any](d *draft, k kind, wire message[M], m *M) {
	d.kind = k
	d.buf = wire.append(append(d.buf[:0], make([]byte, headSize)...), m)
	d.metadata = len(d.buf) - headSize
}

// content lays down c and its checksum. What t knows of the request is not written
// again; nil lays it down whole.
func (d *draft) content(c *storage.Content, t *chunkTable) {
	d.buf, d.bodies, d.length, d.sum = d.buf[:headSize+d.metadata], d.bodies[:0], 0, 0
	d.whole, d.table, d.split.cuts = c, t, d.split.cuts[:0]
	if c == nil || len(c.Request.Data)+len(c.Response.Data)+len(c.Inputs) == 0 {
		return
	}
	d.media = c.Media
	d.buf = contentWire[:requestData].append(d.buf, c)
	if request := c.Request.Data; t.takes(request) {
		d.share(request)
	} else if len(request) > 0 {
		d.buf = appendField(d.buf, requestData, len(request))
		d.body(request)
	}
	if len(c.Response.Data) > 0 {
		d.buf = appendField(d.buf, requestData+1, len(c.Response.Data))
		d.body(c.Response.Data)
	}
	from := headSize + d.metadata
	for _, s := range append(d.bodies, span{at: len(d.buf)}) {
		d.sum = crc32.Update(crc32.Update(d.sum, castagnoli, d.buf[from:s.at]), castagnoli, s.data)
		d.length += int64(s.at - from + len(s.data))
		from = s.at
	}
}

// share lays down what the table does not know of a request.
func (d *draft) share(request []byte) {
	d.split.split(d.table, d.org, request)
	d.buf = appendShared(d.buf, d.split.extents, crc32.Checksum(request, castagnoli), uint64(len(request)), uint64(d.split.literal))
	d.own = int64(len(d.buf))
	for _, e := range d.split.extents {
		d.body(request[:e.literal])
		request = request[e.literal+e.shared:]
	}
}

func (d *draft) body(b []byte) {
	if len(b) < borrowSize {
		d.buf = append(d.buf, b...)
		return
	}
	d.bodies = append(d.bodies, span{len(d.buf), b})
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
		pieces = append(pieces, d.buf[from:s.at], s.data)
		from = s.at
	}
	if from < len(d.buf) {
		pieces = append(pieces, d.buf[from:])
	}
	return pieces
}
