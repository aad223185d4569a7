package capture

import (
	"errors"
	"io"
	"runtime"
	"slices"

	"github.com/weirhq/weir/plugins/coding"
)

// freeDecoding is up to how many bytes of a body are decoded at once with others.
const freeDecoding = 256 << 10

// decodedAtOnce is how many bytes of the wire are decoded in one turn.
const decodedAtOnce = 4 << 10

// decodeSlots lets half of the processors decode long bodies, so that they do not take the time of
// all other calls.
var decodeSlots = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Reader reads the plain bytes of a body as they pass. It does not keep p.
type Reader interface{ Write(p []byte) }

// Tap takes the Content-Encoding off a body that passes, hands the plain bytes
// to a reader and keeps a copy of them. The zero Tap does neither.
type Tap struct {
	Copy
	reader  Reader
	decoder *coding.Decoder
	missed  bool // the reader did not get all bytes
}

// Open begins a body with the value of its Content-Encoding header. If the encoding is
// not known, the reader gets no bytes, and the copy gets those of the wire. reader may be
// nil.
func (t *Tap) Open(encoding string, reader Reader) {
	t.reader = reader
	if encoding == "" || t.reader == nil && t.max == 0 {
		return
	}
	decoder, known := coding.NewDecoder(encoding, t.plain)
	if !known {
		t.reader, t.missed = nil, true
		return
	}
	t.decoder = decoder
}

// Write takes the next bytes of the wire. It does not keep p.
func (t *Tap) Write(p []byte) {
	if t.decoder == nil {
		t.plain(p)
		return
	}
	for piece := range slices.Chunk(p, decodedAtOnce) {
		t.decode(piece)
	}
}

// decode decodes the next bytes, in turns with others if the body is long.
func (t *Tap) decode(p []byte) {
	if t.decoder.Decoded() > freeDecoding {
		decodeSlots <- struct{}{}
		defer func() { <-decodeSlots }()
	}
	t.decoder.Write(p)
}

// Close says that the body ended, and lets go of the decoder. Calling it again
// does nothing.
func (t *Tap) Close() {
	if t.decoder == nil {
		return
	}
	t.decoder.Close()
	if err := t.decoder.Err(); err != nil {
		t.truncated = t.max > 0
		t.missed = !errors.Is(err, io.ErrUnexpectedEOF)
	}
	t.decoder, t.reader = nil, nil
	t.max = t.len() // nothing follows
}

// Missed reports whether the reader did not get all that came, because it could not be decoded.
func (t *Tap) Missed() bool { return t.missed }

// Free gives the copy back, and lets go of the reader.
func (t *Tap) Free() {
	t.Copy.Free()
	t.reader, t.decoder = nil, nil
}

func (t *Tap) plain(p []byte) {
	if t.reader != nil {
		t.reader.Write(p)
	}
	t.Copy.Write(p)
}

// Copy is the copy of a body, cut at a number of bytes. The zero Copy keeps
// nothing.
type Copy struct {
	buf       *buffer
	max       int64
	expected  int64 // at most max, 0 if unknown
	truncated bool
	lent      bool
}

// Keep lets the copy grow to max bytes. expected is the length of the body
// where that is known, so that the copy need not grow on its way.
func (c *Copy) Keep(max, expected int64) {
	c.max = max
	if expected > 0 {
		c.reserve(min(max, expected, maxTrust))
		c.expected = min(max, expected)
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

// Truncated reports whether the body was longer than what was kept of it.
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
	class, ok := take(max(n, min(c.expected, growth*n)), c.cap())
	if !ok {
		class, ok = take(n, c.cap())
	}
	if !ok {
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
