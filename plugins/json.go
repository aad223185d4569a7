package plugins

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendString appends s as a JSON string (RFC 8259, section 7). Invalid UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	b = AppendEscaped(b, s)
	return append(b, '"')
}

// AppendStringOrNull appends s, or null for "".
func AppendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return AppendString(b, s)
}

// AppendKey appends a comma and the key of an object's next member.
func AppendKey(b []byte, key string) []byte {
	b = append(b, `,"`...)
	b = append(b, key...)
	return append(b, `":`...)
}

// AppendEscaped appends a JSON string without its quotes. A stream can so escape a text piece by piece.
func AppendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, string(utf8.RuneError)...)
		}
		i += size
		from = i
	}
	return append(b, s[from:]...)
}

// Unescape reads the JSON escape that s begins with. It reads the two escapes of a surrogate pair as
// one. n is the length of the escape, or 0 if s ends within it. If the escape is invalid, r is
// the character after the backslash, or U+FFFD after \u.
func Unescape[S string | []byte](s S) (r rune, n int, valid bool) {
	if len(s) < 2 {
		return utf8.RuneError, 0, false
	}
	switch c := s[1]; c {
	case '"', '\\', '/':
		return rune(c), 2, true
	case 'b':
		return '\b', 2, true
	case 'f':
		return '\f', 2, true
	case 'n':
		return '\n', 2, true
	case 'r':
		return '\r', 2, true
	case 't':
		return '\t', 2, true
	case 'u':
	default:
		r, n = utf8.DecodeRuneInString(string(s[1:min(len(s), 1+utf8.UTFMax)]))
		return r, 1 + n, false
	}
	switch r, n = codeUnit(s); {
	case n < len(`\u0000`):
		return r, n, false
	case !utf16.IsSurrogate(r):
		return r, n, true
	}
	low, n := codeUnit(s[6:])
	if pair := utf16.DecodeRune(r, low); n == len(`\u0000`) && pair != utf8.RuneError {
		return pair, 12, true
	}
	return utf8.RuneError, min(n, 1) * 6, false // 0 if s ends within the low surrogate
}

// codeUnit reads the UTF-16 code unit \uXXXX that s begins with. n is 0 if s ends within it, and 2 if
// it has no digits.
func codeUnit[S string | []byte](s S) (r rune, n int) {
	head := string(s[:min(len(s), 2)])
	if len(s) < 6 && strings.HasPrefix(`\u`, head) {
		return utf8.RuneError, 0
	}
	if head == `\u` {
		if u, err := strconv.ParseUint(string(s[2:6]), 16, 16); err == nil {
			return rune(u), 6
		}
	}
	return utf8.RuneError, 2
}
