package wire

import "github.com/weirhq/weir/plugins"

// RequestReader reads a request body as it passes.
type RequestReader struct{ request plugins.Request }

// NewRequestReader reads a request of dialect d.
func NewRequestReader(d plugins.Dialect) *RequestReader { return &RequestReader{} }

// Write reads the next bytes of the body. It does not keep p.
func (r *RequestReader) Write(p []byte) {}

// Request is what has been learned so far.
func (r *RequestReader) Request() *plugins.Request { return &r.request }
