package capture

import (
	"github.com/weirhq/weir/plugins/coding"
)

// Reader reads the plain bytes of a body as they pass. It does not keep p.
type Reader interface{ Write(p []byte) }

// Tap takes the Content-Encoding off a body that passes, hands the plain bytes
// to a reader and keeps a copy of them. The zero Tap does neither.
type Tap struct {
	Copy
	reader  Reader
	decoder *coding.Decoder
}

// Open begins a body with the value of its Content-Encoding header. An encoding
// that nobody knows leaves the reader without bytes, and the copy with those of
// the wire. reader may be nil.
func (t *Tap) Open(encoding string, reader Reader) {
	t.reader = reader
	if encoding == "" || t.reader == nil && t.max == 0 {
		return
	}
	decoder, known := coding.NewDecoder(encoding, t.plain)
	if !known {
		t.reader = nil
		return
	}
	t.decoder = decoder
}

// Write takes the next bytes of the wire. It does not keep p.
func (t *Tap) Write(p []byte) {
	if t.decoder != nil {
		t.decoder.Write(p)
		return
	}
	t.plain(p)
}

// Close says that the body ended, and lets go of the decoder. Calling it again
// does nothing.
func (t *Tap) Close() {
	if t.decoder == nil {
		return
	}
	t.decoder.Close()
	if t.decoder.Err() != nil {
		t.truncated = t.max > 0
	}
	t.decoder, t.reader = nil, nil
	t.max = t.len() // nothing follows
}

func (t *Tap) plain(p []byte) {
	if t.reader != nil {
		t.reader.Write(p)
	}
	t.Copy.Write(p)
}
