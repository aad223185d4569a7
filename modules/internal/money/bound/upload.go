package bound

import (
	"bytes"

	"github.com/weirhq/weir/modules/internal/capture"
)

// maxLine bounds a line of a file, in bytes.
const maxLine = 16 << 20

// Upload reads the calls of a batch in a file while a form with the file passes, at any
// chunking. Each line of the form is a call, or one of those that a form has around its parts:
// so no reader of forms can see a call that Upload has not seen.
type Upload struct {
	Adder

	line     []byte // what has come of a line that is not whole
	reserved int64  // bytes of the memory of copies that line takes
	header   bool   // of a part of the form
	ended    bool   // the form
	failed   bool   // it has something else than calls
}

// Write implements capture.Reader.
func (u *Upload) Write(p []byte) {
	for len(p) > 0 && !u.failed {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			u.keep(p)
			return
		}
		line := p[:end]
		if len(u.line) > 0 {
			u.keep(line)
			line = u.line
		}
		u.take(bytes.TrimSpace(line))
		u.line, p = u.line[:0], p[end+1:]
	}
}

func (u *Upload) keep(piece []byte) {
	n := len(u.line) + len(piece)
	if n > cap(u.line) {
		size := max(2*n, 4<<10)
		if n > maxLine || !capture.Reserve(int64(size)-u.reserved) {
			u.fail()
			return
		}
		u.reserved = int64(size)
		u.line = append(make([]byte, 0, size), u.line...)
	}
	u.line = append(u.line, piece...)
}

// take reads a line without the spaces around it.
func (u *Upload) take(line []byte) {
	ok := true
	switch {
	case len(line) == 0:
		u.header = false
	case u.ended:
		ok = false
	case bytes.HasPrefix(line, []byte("--")):
		u.ended = bytes.HasSuffix(line[2:], []byte("--"))
		u.header = !u.ended
	case u.header:
		ok = bytes.HasPrefix(bytes.ToLower(line[:min(len(line), 8)]), []byte("content-"))
	case line[0] == '{':
		ok = u.addLine(line)
	default: // the value of a field
		ok = !bytes.ContainsAny(line, "{[")
	}
	if !ok {
		u.fail()
	}
}

func (u *Upload) fail() {
	u.failed, u.sum = true, nil
	u.Free()
}

// Batch returns what the calls use when all of the form has passed.
func (u *Upload) Batch() (b Batch) {
	u.take(bytes.TrimSpace(u.line))
	if u.Free(); u.ended {
		b.Parts = u.sum
	}
	return b
}

// Free gives memory back.
func (u *Upload) Free() {
	capture.Return(u.reserved)
	u.line, u.reserved = nil, 0
}
