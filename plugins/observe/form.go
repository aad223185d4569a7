package observe

import "bytes"

// form reads the fields of multipart/form-data (RFC 7578) that say something of a call:
// uploads of audio and images name their model there. The first line is the boundary. Only
// short lines and values are kept.
type form struct {
	to *RequestReader

	state     formState
	delimiter []byte // ends a value: a line break, "--" and the boundary
	matched   int    // how much of the delimiter ends what was read
	line      []byte // the header line under way
	name      string // the field under way, "" before its header
	isFile    bool
	data      []byte // the beginning of the field's value
}

type formState uint8

const (
	inBoundary formState = iota
	inHeader
	inValue
	afterForm
)

// maxFormLine bounds the boundary and the lines of headers, in bytes.
const maxFormLine = 1 << 10

func (f *form) write(p []byte) {
	for len(p) > 0 {
		switch f.state {
		case afterForm:
			return
		case inValue:
			p = f.value(p)
		default:
			end := bytes.IndexByte(p, '\n')
			part := p
			if end >= 0 {
				part = p[:end]
			}
			f.line = append(f.line, part[:min(len(part), maxFormLine-len(f.line))]...)
			if end < 0 {
				return
			}
			p = p[end+1:]
			f.endLine(bytes.TrimSuffix(f.line, []byte("\r")))
			f.line = f.line[:0]
		}
	}
}

func (f *form) endLine(line []byte) {
	switch {
	case f.state == inBoundary && f.delimiter == nil:
		f.delimiter = append([]byte("\r\n"), line...)
		f.state = inHeader
	case f.state == inBoundary: // the line of a boundary between two fields
		f.state = inHeader
		if bytes.HasPrefix(line, []byte("--")) {
			f.state = afterForm
		}
	case len(line) == 0:
		f.state, f.matched = inValue, 0
	default:
		f.header(line)
	}
}

// header reads Content-Disposition: form-data; name="model". Names and files that
// matter here have no escapes.
func (f *form) header(line []byte) {
	key, value, _ := bytes.Cut(line, []byte(":"))
	if !bytes.EqualFold(key, []byte("Content-Disposition")) {
		return
	}
	for parameter := range bytes.SplitSeq(value, []byte(";")) {
		parameter = bytes.TrimSpace(parameter)
		if name, ok := bytes.CutPrefix(parameter, []byte("name=")); ok {
			f.name = string(bytes.Trim(name, `"`))
		}
		f.isFile = f.isFile || bytes.HasPrefix(parameter, []byte("filename"))
	}
}

// value reads a value up to its delimiter, and returns what follows that.
func (f *form) value(p []byte) []byte {
	for len(p) > 0 {
		switch {
		case f.matched == 0: // look for the one carriage return that the delimiter has
			end := bytes.IndexByte(p, '\r')
			if end < 0 {
				f.keep(p)
				return nil
			}
			f.keep(p[:end])
			f.matched, p = 1, p[end+1:]
		case p[0] == f.delimiter[f.matched]:
			f.matched, p = f.matched+1, p[1:]
		default:
			f.keep(f.delimiter[:f.matched])
			f.matched = 0
		}
		if f.matched == len(f.delimiter) {
			f.endField()
			return p
		}
	}
	return nil
}

func (f *form) keep(b []byte) {
	if !f.isFile {
		f.data = append(f.data, b[:min(len(b), maxText-len(f.data))]...)
	}
}

func (f *form) endField() {
	v := value{kind: text, bytes: f.data}
	switch {
	case f.isFile:
		f.to.value(Media, value{kind: object})
	case f.name == "model":
		f.to.value(Model, v)
	case f.name == "user":
		f.to.value(User, v)
	case f.name == "stream":
		v.kind = boolean
		f.to.value(Stream, v)
	}
	f.state, f.name, f.isFile, f.data = inBoundary, "", false, f.data[:0]
}
