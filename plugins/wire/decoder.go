package wire

// Decoder undoes a Content-Encoding as bytes pass.
type Decoder struct{}

// NewDecoder decodes to sink; false if an encoding is not known.
func NewDecoder(encoding string, sink func(p []byte)) (*Decoder, bool) { return nil, false }

// Write decodes the next bytes of the body. It does not keep p.
func (d *Decoder) Write(p []byte) {}

// Close frees the decoder.
func (d *Decoder) Close() {}

// Err says why decoding stopped, nil if it did not.
func (d *Decoder) Err() error { return nil }
