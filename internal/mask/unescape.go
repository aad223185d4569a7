package mask

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reading is a text as it reads, and where each of its bytes stands.
type reading struct {
	text []byte
	at   []int // one more than text; nil if nothing was escaped
}

func (r *reading) source(i int) int {
	if r == nil || r.at == nil {
		return i
	}
	return r.at[i]
}

// unescape reads escapes of JSON. If nested, a run of backslashes is one, as texts within
// texts have them.
func (r *reading) unescape(raw []byte, nested bool) {
	r.text, r.at = r.text[:0], r.at[:0]
	add := func(from int, text ...byte) {
		for _, c := range text {
			r.text, r.at = append(r.text, c), append(r.at, from)
		}
	}
	for i := 0; i < len(raw); {
		plain := bytes.IndexByte(raw[i:], '\\')
		if plain < 0 {
			plain = len(raw) - i
		}
		r.text = append(r.text, raw[i:i+plain]...)
		for range plain {
			r.at = append(r.at, i)
			i++
		}
		if i == len(raw) {
			break
		}
		from := i
		for i++; nested && i < len(raw) && raw[i] == '\\'; {
			i++
		}
		if i == len(raw) {
			add(from, '\\')
			break
		}
		c := raw[i]
		i++
		switch c {
		case 'n', 'r', 'f', 'b', 't':
			add(from, '\n')
		case 'u':
			unit, ok := hexUnit(raw[i:])
			if !ok {
				add(from, '\\', 'u')
				continue
			}
			i += 4
			if 0xd800 <= unit && unit < 0xdc00 { // the other half follows
				next := i
				for next < len(raw) && raw[next] == '\\' {
					next++
				}
				if next > i && next < len(raw) && raw[next] == 'u' {
					if low, ok := hexUnit(raw[next+1:]); ok && 0xdc00 <= low && low < 0xe000 {
						unit, i = 0x10000+(unit-0xd800)<<10+(low-0xdc00), next+5
					}
				}
			}
			var b [utf8.UTFMax]byte
			add(from, b[:utf8.EncodeRune(b[:], unit)]...)
		case '"', '/', '\\':
			add(from, c)
		default: // no escape of JSON
			add(from, '\\')
			i--
		}
	}
	r.at = append(r.at, len(raw))
}

// plain reads a text that of has read, as if it were written in plain characters: what readers and models
// take for ASCII is ASCII, such as the wide forms that input methods of East Asia write, the digits
// of other scripts, and the escapes of URLs. Characters that nobody sees are left out.
func (r *reading) plain(text []byte, of *reading) {
	r.text, r.at = r.text[:0], r.at[:0]
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRune(text[i:])
		escaped, size := percentRune(text[i:])
		if size > 0 {
			c, n = escaped, size
		}
		switch as := plainRune(c); {
		case as < 0:
		case as != c || size > 0:
			r.text = utf8.AppendRune(r.text, as)
			for len(r.at) < len(r.text) {
				r.at = append(r.at, of.source(i))
			}
		default:
			for k := i; k < i+n; k++ {
				r.text, r.at = append(r.text, text[k]), append(r.at, of.source(k))
			}
		}
		i += n
	}
	r.at = append(r.at, of.source(len(text)))
}

// widePunctuation is the punctuation of values, of which input methods of East Asia write wide forms.
const widePunctuation = "@.-+_/()"

// plainRune returns what a character stands for, -1 for nothing.
func plainRune(c rune) rune {
	switch {
	case 0xff01 <= c && c <= 0xff5e: // https://www.unicode.org/charts/PDF/UFF00.pdf
		if ascii := c - 0xff01 + '!'; isAlnum(byte(ascii)) || strings.ContainsRune(widePunctuation, ascii) {
			return ascii
		}
	case c == '\u3000':
		return ' '
	case 0x660 <= c && c < 0x1c60, c == 0xad, c == 0x61c: // most scripts that have digits of their own
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		for _, digits := range unicode.Nd.R16 {
			if rune(digits.Lo) <= c && c <= rune(digits.Hi) {
				return '0' + (c-rune(digits.Lo))%10
			}
		}
	case 0x200b <= c && c <= 0x206f, c >= 0xfe00:
		switch {
		case c <= 0xfe0f && c >= 0xfe00, unicode.Is(unicode.Cf, c): // how a character looks, and what nobody sees
			return -1
		case 0x1d7ce <= c && c <= 0x1d7ff: // bold ones and such
			return '0' + (c-0x1d7ce)%10
		}
	}
	return c
}

// isPlain reports whether a text has nothing that plain changes.
func isPlain(text []byte) bool {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			if text[i] == '%' {
				if _, n := percentByte(text[i:]); n > 0 {
					return false
				}
			}
			i++
			continue
		}
		c, n := utf8.DecodeRune(text[i:])
		if plainRune(c) != c {
			return false
		}
		i += n
	}
	return true
}

// percentRune returns the character that escapes of a URL stand for at the beginning of a text, and
// their length, 0 if there are none.
func percentRune(text []byte) (c rune, n int) {
	var b [utf8.UTFMax]byte
	first := 0 // the length of the first escape, which is Latin-1 if the bytes are no UTF-8
	for size := 0; n < len(text) && text[n] == '%' && size < len(b); {
		value, length := percentByte(text[n:])
		if length == 0 {
			break
		}
		first = cmp.Or(first, length)
		b[size], n = value, n+length
		if size++; utf8.FullRune(b[:size]) {
			if c, width := utf8.DecodeRune(b[:size]); width == size && c != utf8.RuneError {
				return c, n
			}
			break
		}
	}
	return rune(b[0]), first
}

// percentByte returns what the escape of a URL stands for whose percent sign begins a text, and its
// length, 0 if it is none. The sign may be escaped itself, as in a URL within a URL.
// https://www.rfc-editor.org/rfc/rfc3986#section-2.1
func percentByte(text []byte) (c byte, n int) {
	for n = 1; bytes.HasPrefix(text[n:], []byte("25")); {
		n += 2
	}
	if len(text) < n+2 {
		return 0, 0
	}
	value, err := strconv.ParseUint(string(text[n:n+2]), 16, 8)
	if err != nil {
		return 0, 0
	}
	return byte(value), n + 2
}

func hexUnit(raw []byte) (unit rune, ok bool) {
	if len(raw) < 4 {
		return 0, false
	}
	for _, c := range raw[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}
