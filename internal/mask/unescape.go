package mask

import (
	"bytes"
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
