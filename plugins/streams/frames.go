package streams

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"
)

// FramesType is the media type of AWS's frames.
const FramesType = "application/vnd.amazon.eventstream"

// Frame is a frame of AWS's event stream
// (https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html):
// headers, a payload and checksums. AWS's own decoder allocates forty objects for a
// frame; this one allocates none.
type Frame struct {
	headers []byte
	Payload []byte
}

// The parts of a frame: the lengths of the whole and of the headers with their
// checksum, headers, payload, and the checksum of all.
const (
	preludeLen = 12
	crcLen     = 4
	maxFrame   = 16 << 20
)

var errDamaged = errors.New("a frame of the provider's event stream is damaged")

// CutFrame cuts the first frame off p. The frame shares the memory of p. The error is
// io.ErrUnexpectedEOF if p does not have the whole frame yet.
func CutFrame(p []byte) (f Frame, rest []byte, err error) {
	if len(p) < preludeLen {
		return f, p, io.ErrUnexpectedEOF
	}
	length, headers := int(binary.BigEndian.Uint32(p)), int(binary.BigEndian.Uint32(p[4:]))
	if !intact(p[:preludeLen]) || length > maxFrame || length < preludeLen+headers+crcLen {
		return f, p, errDamaged
	}
	if len(p) < length {
		return f, p, io.ErrUnexpectedEOF
	}
	if !intact(p[:length]) {
		return f, p, errDamaged
	}
	return Frame{p[preludeLen : preludeLen+headers], p[preludeLen+headers : length-crcLen]}, p[length:], nil
}

// Frames finds the frames in a body. A damaged one ends the reading.
type Frames struct {
	// To takes a frame, whose bytes hold until it returns.
	To      func(Frame)
	partial []byte // of a frame that has not all come
	err     error  // of the last Write
}

// Write reads the next piece of the stream.
func (s *Frames) Write(p []byte) {
	if errors.Is(s.err, errDamaged) {
		return
	}
	rest := p
	if len(s.partial) > 0 {
		s.partial = append(s.partial, p...)
		rest = s.partial
	}
	for {
		var f Frame
		if f, rest, s.err = CutFrame(rest); s.err != nil {
			break
		}
		s.To(f)
	}
	s.partial = append(s.partial[:0], rest...)
}

// Close ends the reading.
func (s *Frames) Close() {}

// ReadFrames returns the frames of a stream. Each holds until the next one. An error, of
// reading or of the framing, comes last.
func ReadFrames(r io.Reader) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		stopped := false
		s := Frames{To: func(f Frame) { stopped = stopped || !yield(f, nil) }}
		err := read(r, func(p []byte) error {
			s.Write(p)
			switch {
			case stopped:
				return errStopped
			case errors.Is(s.err, errDamaged):
				return errDamaged
			}
			return nil
		})
		if err == nil && len(s.partial) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && !stopped {
			yield(Frame{}, err)
		}
	}
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

// Header returns the string that is the value of a header, nil if there is none.
func (f Frame) Header(name string) []byte {
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
