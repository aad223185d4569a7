package bound

import (
	"bytes"

	"github.com/weirhq/weir/modules/internal/capture"
)

// maxLine bounds a line of a file, in bytes.
const maxLine = 16 << 20

// Upload reads the calls in a file while the form that uploads it passes, at any chunking. Each
// line of the form must be a call or belong to the form itself, so that no reader of forms sees a
// call that Upload does not see.
type Upload struct {
	Adder

	line     []byte // the beginning of a line
	reserved int64  // bytes of the memory of copies, for line
	header   bool   // the next line is in the header of a part
	ended    bool   // the form has ended
	failed   bool   // a line is no call
}

// Write implements capture.Reader.
func (u *Upload) Write(p []byte) {
	for len(p) > 0 && !u.failed {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			u.append(p)
			return
		}
		line := p[:end]
		if len(u.line) > 0 {
			u.append(line)
			line = u.line
		}
		u.readLine(bytes.TrimSpace(line))
		u.line, p = u.line[:0], p[end+1:]
	}
}

// append adds a piece to the beginning of a line.
func (u *Upload) append(piece []byte) {
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

// readLine reads a line without the spaces around it.
func (u *Upload) readLine(line []byte) {
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

// Batch returns the batch of the calls once the form has passed. It is unknown if the form has not
// ended, or a line is no call.
func (u *Upload) Batch() (b Batch) {
	u.readLine(bytes.TrimSpace(u.line))
	if u.Free(); u.ended {
		b.Parts = u.sum
	}
	return b
}

// Free gives back the memory of copies.
func (u *Upload) Free() {
	capture.Return(u.reserved)
	u.line, u.reserved = nil, 0
}
