package transcript

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins"
)

// Unescaper decodes one body after the other, in memory that it keeps.
type Unescaper struct{ decoded []byte }

// SearchText is body with its JSON string escapes decoded, for the search for
// substrings as a person writes them. Escapes that are not valid stay as they
// are, lone surrogates too. It is body itself, not a copy, where that has no
// escapes or is no JSON; otherwise it holds until the next call.
func (u *Unescaper) SearchText(body []byte) []byte {
	next := bytes.IndexByte(body, '\\')
	if next < 0 || !startsJSON(body) {
		return body
	}
	decoded := slices.Grow(u.decoded[:0], len(body))
	for next >= 0 {
		decoded = append(decoded, body[:next]...)
		body = body[next:]
		if r, n, valid := plugins.Unescape(body); valid {
			decoded = utf8.AppendRune(decoded, r)
			body = body[n:]
		} else {
			decoded = append(decoded, '\\')
			body = body[1:]
		}
		next = bytes.IndexByte(body, '\\')
	}
	u.decoded = append(decoded, body...)
	return u.decoded
}

// startsJSON is true of what may be JSON with a string in it; it may be cut.
func startsJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[' || body[0] == '"')
}
