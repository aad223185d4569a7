// Package body turns the bodies of calls into what is kept and searched: the
// response object of a stream, the text that went in and came out, and the
// media that a request carried.
package body

import "github.com/weirhq/weir/plugins"

// Stored returns what is kept of a response body without Content-Encoding: of
// a stream, the object that the same call would have returned without
// streaming, as far as the stream came; everything else unchanged.
func Stored(d plugins.Dialect, contentType string, raw []byte) (stored []byte, storedType string) {
	return raw, contentType
}

// InputText is the input text of a request: instructions and the texts of all
// messages in their order, one a line.
func InputText(d plugins.Dialect, request []byte) string { return "" }

// OutputText is the output text of a stored response: the text parts of all
// choices in their order, one a line, without reasoning.
func OutputText(d plugins.Dialect, response []byte) string { return "" }

// Assets names the images, audio and files in a request by the lower-case hex
// SHA-256 of their bytes, or of their URL where the request holds none: each
// once, in document order, the first 100.
func Assets(request []byte) []string { return nil }

// SearchText is body with its JSON string escapes decoded, for substring
// search. Escapes that are not valid stay. It is body itself where that has no
// escapes or is no JSON.
func SearchText(body []byte) []byte { return body }
