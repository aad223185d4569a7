package observe

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins"
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
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		r, n, _ := plugins.Unescape(raw[i:])
		if n == 0 {
			n = 2 // whatever follows is no digits
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	s.decoded = out
	return truncate(out)
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
