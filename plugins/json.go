package plugins

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// AppendString appends s as a JSON string (RFC 8259, section 7). What is not
// UTF-8 becomes U+FFFD.
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

// AppendKey appends the key of a member that is not an object's first.
func AppendKey(b []byte, key string) []byte {
	b = append(b, `,"`...)
	b = append(b, key...)
	return append(b, `":`...)
}

// AppendEscaped appends the inside of a JSON string, without its quotes, so that
// the escaped pieces of a text join to the escaped text.
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

// Unescape reads the escape of a JSON string that s begins with, both escapes of a
// surrogate pair as one. It returns the character and the length of the escape,
// which is 0 if s ends within it. What is not valid stands for itself, or for U+FFFD
// if it has hexadecimal digits.
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
	return utf8.RuneError, min(n, 1) * 6, false // which waits for the second half
}

// codeUnit reads the \uXXXX that s begins with. Its length is 0 if s ends within it,
// and 2 if it has no digits.
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

// Text returns the string that v is. Half of a surrogate pair, of which another delta may have the
// other half, stays as the three bytes that UTF-8 would have for it (WTF-8,
// https://simonsapin.github.io/wtf-8/), where gjson has U+FFFD. JoinHalves makes a character of the
// two.
func Text(v gjson.Result) string {
	if !strings.ContainsRune(v.Str, utf8.RuneError) {
		return v.Str
	}
	var b []byte
	for raw := v.Raw[1 : len(v.Raw)-1]; raw != ""; {
		if raw[0] != '\\' {
			b, raw = append(b, raw[0]), raw[1:]
			continue
		}
		r, n, valid := Unescape(raw)
		if valid {
			b = utf8.AppendRune(b, r)
		} else if r, n = codeUnit(raw); utf16.IsSurrogate(r) {
			b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
		}
		raw = raw[max(n, 1):]
	}
	return string(b)
}

// halfLength is the length of half a surrogate pair in WTF-8, in bytes.
const halfLength = 3

// half returns half of a surrogate pair that s begins with, 0 if there is none.
func half(s string) rune {
	if len(s) < halfLength || s[0] != 0xED || s[1] < 0xA0 {
		return 0
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
}

// JoinHalves makes characters of the pairs of halves in s that Text has left, and U+FFFD of a half
// without the other. The first half at the end of s is not part of the text: it waits for what
// follows.
func JoinHalves(s string) (text, waiting string) {
	var b []byte // nil as long as there is no half
	from := 0
	for i := 0; ; {
		next := strings.IndexByte(s[i:], 0xED)
		if next < 0 {
			break
		}
		i += next
		first := half(s[i:])
		if first == 0 {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		i += halfLength
		r := utf16.DecodeRune(first, half(s[i:]))
		switch {
		case r != utf8.RuneError:
			i += halfLength
		case i == len(s) && first < 0xDC00:
			return string(b), s[i-halfLength:]
		}
		b, from = utf8.AppendRune(b, r), i
	}
	if b == nil {
		return s, ""
	}
	return string(append(b, s[from:]...)), ""
}

// Whole is JoinHalves of a text that nothing follows.
func Whole(s string) string {
	text, waiting := JoinHalves(s)
	if waiting != "" {
		text += string(utf8.RuneError)
	}
	return text
}
