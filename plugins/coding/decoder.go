// Package coding decodes the Content-Encoding of bodies as they pass.
package coding

import (
	"errors"
	"io"
	"slices"
)

const (
	// maxDecoded is how much one coding of a body may decode to: 256 MiB.
	maxDecoded = 256 << 20
	// maxRatio is how many bytes a body that passes may decode to for each that has come, beyond
	// freeDecoded: JSON has 3 to 20, and what was made to cost the reader a thousand and more. What
	// is read within a bound of its own, by a Reader, has no ratio: repeated text has a high one.
	maxRatio    = 100
	freeDecoded = 1 << 20
	// slice is how many bytes are decoded at once, so that what they decode to is bounded.
	slice = 4 << 10
)

// maxCodings is how many codings of one body are undone.
const maxCodings = 3

var errTooLong = errors.New("content is over 256 MiB, or over 1 MiB and 100 times its length, when decoded: nothing is read of what follows")

// Decoder undoes a Content-Encoding as the bytes pass: what can be decoded of
// them reaches the sink before Write returns. It starts no goroutines. After
// an error it swallows its input.
type Decoder struct {
	codings []*Pump // in the order in which they are undone
	sink    func(p []byte)
	wire    int // bytes that have come
	decoded int // bytes that the sink got
}

// NewDecoder decodes encoding, a Content-Encoding header of up to three codings
// out of gzip, deflate (with and without zlib's header), br, zstd and identity,
// and hands what was decoded to sink, which must not keep it. Any other
// encoding gives false.
func NewDecoder(encoding string, sink func(p []byte)) (*Decoder, bool) {
	list, ok := openers(encoding)
	if !ok {
		return nil, false
	}
	d := new(Decoder)
	d.sink = func(p []byte) {
		d.decoded += len(p)
		sink(p)
	}
	for _, open := range list {
		w := &limitedWriter{to: d.sink, wire: &d.wire}
		c := NewPump(func(r io.Reader) error {
			decoded, giveBack, err := open(r)
			defer giveBack()
			if err == nil {
				_, err = io.Copy(w, decoded)
			}
			return err
		})
		d.codings = append([]*Pump{c}, d.codings...)
		d.sink = c.Write
	}
	return d, true
}

// Write decodes the next bytes of the body. It does not keep p.
func (d *Decoder) Write(p []byte) {
	for piece := range slices.Chunk(p, slice) {
		d.wire += len(piece)
		d.sink(piece)
	}
}

// Decoded returns how many bytes the sink has got.
func (d *Decoder) Decoded() int { return d.decoded }

// Close says that the body ended, hands the sink what that releases, and frees
// everything. A Decoder that was written to must be closed.
func (d *Decoder) Close() {
	for _, c := range d.codings {
		c.Close()
	}
}

// Err says why decoding ended early: broken or truncated input, or more
// output than a body may have. It is nil as long as nothing is wrong.
func (d *Decoder) Err() error {
	for _, c := range d.codings {
		if err := c.Err(); err != nil {
			return err
		}
	}
	return nil
}

// maxSize bounds what one coding of a body may decode to after wire bytes of it.
func maxSize(wire int) int { return min(maxDecoded, freeDecoded+maxRatio*wire) }

// limitedWriter writes to a func until a limit is reached.
type limitedWriter struct {
	to      func(p []byte)
	wire    *int // bytes of the body that have come
	written int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), maxSize(*l.wire)-l.written)
	l.written += n
	l.to(p[:n])
	if n < len(p) {
		return n, errTooLong
	}
	return n, nil
}
