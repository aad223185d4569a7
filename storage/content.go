package storage

import "github.com/weirhq/weir/plugins"

// Content is what a record may carry besides its metrics. Content that must not be
// kept is left out: the omitted Request or Response is empty.
type Content struct {
	Request, Response Body
	// Inputs are the inputs of a prompt template; they go with the request.
	Inputs map[string]string
	// Media is true when the request has media parts. The hashes of the parts become the
	// record's Assets.
	Media bool
	// Unassembled is the dialect of a Response that is a stream as it came, for who stores
	// content; "" for any other Response. No reader returns it.
	Unassembled plugins.Dialect
}

// ContentPart is a part of a Content, or several.
type ContentPart uint8

const (
	// RequestPart is Request, Inputs and Media.
	RequestPart ContentPart = 1 << iota
	// ResponsePart is Response.
	ResponsePart
	// WholeContent is both parts.
	WholeContent = RequestPart | ResponsePart
)

// Body is a body without Content-Encoding.
type Body struct {
	// Type is the media type, with its parameters, as it was sent.
	Type string
	// Data is nil when there is no body, or the body is not kept.
	Data []byte
}

// ContentRef says where in the journal a record's content stands. The zero
// ContentRef is a record without content.
type ContentRef struct {
	// Segment numbers the journal's segments from 1.
	Segment uint64
	// Ordinal counts the entries of a segment from 0.
	Ordinal uint32
}
