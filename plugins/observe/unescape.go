package observe

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape is the text of a JSON string (RFC 8259, section 7), cut to maxText at a
// character. What is no escape is copied.
func (s *scanner) unescape(raw []byte) []byte {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return truncate(raw)
	}
	out := append(slices.Grow(s.decoded[:0], maxText+utf8.UTFMax), raw[:i]...)
	for i < len(raw) && len(out) <= maxText {
		c := raw[i]
		i++
		if c != '\\' || i == len(raw) {
			out = append(out, c)
			continue
		}
		c = raw[i]
		i++
		switch c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := codePoint(raw[i:])
			out = utf8.AppendRune(out, r)
			i += n
		default:
			out = append(out, c)
		}
	}
	s.decoded = out
	return truncate(out)
}

// codePoint reads the digits of a \u escape, and of the next one where the two
// are a surrogate pair; n is their length.
func codePoint(b []byte) (r rune, n int) {
	r, ok := hex4(b)
	if !ok {
		return utf8.RuneError, 0
	}
	if utf16.IsSurrogate(r) && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low, ok := hex4(b[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return r, 4
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// truncate cuts b to maxText, between two characters if it is UTF-8.
func truncate(b []byte) []byte {
	if len(b) <= maxText {
		return b
	}
	for cut := maxText; cut > maxText-utf8.UTFMax; cut-- {
		if utf8.RuneStart(b[cut]) {
			return b[:cut]
		}
	}
	return b[:maxText]
}
