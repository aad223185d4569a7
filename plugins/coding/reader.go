package coding

import (
	"errors"
	"io"
	"strings"
)

// ErrTooLong is returned by a Reader if the content is longer than its bound.
var ErrTooLong = errors.New("the content is too long when decoded")

// Reader undoes a Content-Encoding of what is read. It decodes no more than it is
// asked for.
type Reader struct {
	in       io.Reader
	list     []opener // not opened yet
	limit    int64
	giveBack []func()
}

// NewReader decodes in, of an encoding as NewDecoder takes it. Each coding may decode to limit bytes; a
// read after them returns ErrTooLong. It reports false for any other encoding. The caller closes the
// Reader.
func NewReader(encoding string, in io.Reader, limit int64) (*Reader, bool) {
	list, ok := openers(encoding)
	return &Reader{in: in, list: list, limit: limit}, ok
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.list) > 0 { // not before the first read: to open is to read a header
		last := len(r.list) - 1
		decoded, giveBack, err := r.list[last](r.in)
		r.giveBack = append(r.giveBack, giveBack)
		if err != nil {
			return 0, err
		}
		r.in, r.list = &limitedReader{decoded, r.limit}, r.list[:last]
	}
	return r.in.Read(p)
}

// Close frees everything, but does not close what was read from.
func (r *Reader) Close() error {
	for _, giveBack := range r.giveBack {
		giveBack()
	}
	*r = Reader{in: strings.NewReader("")}
	return nil
}

// limitedReader reads up to remaining bytes.
type limitedReader struct {
	in        io.Reader
	remaining int64
}

func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, ErrTooLong
	}
	return n, err
}
