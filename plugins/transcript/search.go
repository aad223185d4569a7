package transcript

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
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
		var n int
		decoded, n = appendUnescaped(decoded, body)
		body = body[n:]
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

// appendUnescaped appends the character of the escape at the start of s, and
// returns the length of the escape.
func appendUnescaped(b, s []byte) ([]byte, int) {
	if len(s) < 2 {
		return append(b, s...), len(s)
	}
	switch c := s[1]; c {
	case '"', '\\', '/':
		return append(b, c), 2
	case 'b':
		return append(b, '\b'), 2
	case 'f':
		return append(b, '\f'), 2
	case 'n':
		return append(b, '\n'), 2
	case 'r':
		return append(b, '\r'), 2
	case 't':
		return append(b, '\t'), 2
	case 'u':
		if r, ok := unicodeEscape(s); ok && !utf16.IsSurrogate(r) {
			return utf8.AppendRune(b, r), 6
		} else if ok {
			low, _ := unicodeEscape(s[6:])
			if r := utf16.DecodeRune(r, low); r != utf8.RuneError {
				return utf8.AppendRune(b, r), 12
			}
			return append(b, s[:6]...), 6
		}
	}
	return append(b, '\\'), 1
}

// unicodeEscape reads the \uXXXX at the start of s.
func unicodeEscape[T string | []byte](s T) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	r, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(r), err == nil
}
