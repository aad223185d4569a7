package bedrock

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// frames reads an application/vnd.amazon.eventstream
// (https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html):
// frames with headers, a payload and checksums. AWS's own decoder allocates forty
// objects for a frame; this one has one buffer for all.
type frames struct {
	r   *bufio.Reader
	buf []byte
}

// frame is a frame of the stream, whose bytes hold until the next one.
type frame struct {
	headers []byte
	payload []byte
}

// The parts of a frame: the lengths of the whole and of the headers with their
// checksum, headers, payload, and the checksum of all.
const (
	preludeLen = 12
	crcLen     = 4
	maxFrame   = 16 << 20
)

var errDamaged = errors.New("a frame of the provider's event stream is damaged")

func newFrames(r io.Reader) *frames { return &frames{r: bufio.NewReaderSize(r, 16<<10)} }

// next is the next frame. The error is io.EOF at the end of the stream.
func (f *frames) next() (frame, error) {
	f.buf = slices.Grow(f.buf[:0], preludeLen)[:preludeLen]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		return frame{}, err
	}
	length, headers := int(binary.BigEndian.Uint32(f.buf)), int(binary.BigEndian.Uint32(f.buf[4:]))
	if !intact(f.buf) || length > maxFrame || length < preludeLen+headers+crcLen {
		return frame{}, errDamaged
	}
	f.buf = slices.Grow(f.buf, length-preludeLen)[:length]
	if _, err := io.ReadFull(f.r, f.buf[preludeLen:]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	if !intact(f.buf) {
		return frame{}, errDamaged
	}
	return frame{f.buf[preludeLen : preludeLen+headers], f.buf[preludeLen+headers : length-crcLen]}, nil
}

// intact reports whether b ends in its checksum.
func intact(b []byte) bool {
	n := len(b) - crcLen
	return crc32.ChecksumIEEE(b[:n]) == binary.BigEndian.Uint32(b[n:])
}

// fixedLens are the lengths of header values by their type; those of strings and
// byte arrays say theirs.
var fixedLens = [...]int{0, 0, 1, 2, 4, 8, stringValue: -1, byteArrayValue: -1, 8: 8, 9: 16}

const (
	byteArrayValue = 6
	stringValue    = 7
)

// header is the string that is the value of a header, nil if there is none.
func (f *frame) header(name string) []byte {
	for b := f.headers; len(b) > 1; {
		nameLen := int(b[0])
		if len(b) < 2+nameLen || int(b[1+nameLen]) >= len(fixedLens) {
			return nil
		}
		key, kind, rest := b[1:1+nameLen], b[1+nameLen], b[2+nameLen:]
		valueLen := fixedLens[kind]
		if valueLen < 0 {
			if len(rest) < 2 {
				return nil
			}
			valueLen, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
		}
		if len(rest) < valueLen {
			return nil
		}
		if kind == stringValue && string(key) == name {
			return rest[:valueLen]
		}
		b = rest[valueLen:]
	}
	return nil
}
