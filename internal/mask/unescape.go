package mask

import (
	"bytes"
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
// take for ASCII is ASCII, such as the wide forms that input methods of East Asia write, and the digits
// of other scripts. Characters that nobody sees are left out.
func (r *reading) plain(text []byte, of *reading) {
	r.text, r.at = r.text[:0], r.at[:0]
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRune(text[i:])
		switch as := plainRune(c); {
		case as < 0:
		case as != c:
			r.text, r.at = append(r.text, byte(as)), append(r.at, of.source(i))
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
