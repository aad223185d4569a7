package mask

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reading is a text as it reads, and where its bytes stand in what was read.
type reading struct {
	text  []byte
	of    *reading // the reading that it was unescaped from, nil for the body itself
	parts []part
	plus  []int // the offsets of each + that may stand for a space
}

// part is a part of a reading: where it begins there, and where in what was read. A part that is an escape
// stands there with all its bytes.
type part struct {
	at, source int
	escape     bool
}

// source returns where in the body's text a byte stands. A nil reading is that text.
func (r *reading) source(i int) int {
	for ; r != nil; r = r.of {
		next := sort.Search(len(r.parts), func(k int) bool { return r.parts[k].at > i })
		p := r.parts[next-1]
		if p.escape {
			i = p.source
		} else {
			i += p.source - p.at
		}
	}
	return i
}

func (r *reading) begin(of *reading) {
	r.text, r.of, r.parts, r.plus = r.text[:0], of, append(r.parts[:0], part{}), r.plus[:0]
}

// add adds a text that stands in what was read from an offset on.
func (r *reading) add(text []byte, source int) {
	if last := &r.parts[len(r.parts)-1]; last.escape || source-last.source != len(r.text)-last.at {
		r.parts = append(r.parts, part{len(r.text), source, false})
	}
	r.text = append(r.text, text...)
}

// addEscape adds what an escape stands for that begins at an offset.
func (r *reading) addEscape(c rune, source int) {
	r.parts = append(r.parts, part{len(r.text), source, true})
	r.text = utf8.AppendRune(r.text, c)
}

// unescape reads escapes of JSON. If nested, a run of backslashes is one, as texts within
// texts have them.
func (r *reading) unescape(raw []byte, of *reading, nested bool) {
	r.begin(of)
	for i := 0; i < len(raw); {
		plain := bytes.IndexByte(raw[i:], '\\')
		if plain < 0 {
			plain = len(raw) - i
		}
		if plain > 0 {
			r.add(raw[i:i+plain], i)
		}
		if i += plain; i == len(raw) {
			break
		}
		from := i
		for i++; nested && i < len(raw) && raw[i] == '\\'; {
			i++
		}
		if i == len(raw) {
			r.addEscape('\\', from)
			break
		}
		c := raw[i]
		i++
		switch c {
		case 'n', 'r', 'f', 'b', 't':
			r.addEscape('\n', from)
		case 'u':
			unit, ok := hexUnit(raw[i:])
			if !ok {
				r.addEscape('\\', from)
				r.addEscape('u', from)
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
			r.addEscape(unit, from)
		case '"', '/', '\\':
			r.addEscape(rune(c), from)
		default: // no escape of JSON
			r.addEscape('\\', from)
			i--
		}
	}
	r.add(nil, len(raw))
}

// plain reads a text that of has read, as if it were written in plain characters: what readers and models
// take for ASCII is ASCII, such as the wide forms that input methods of East Asia write, the digits
// of other scripts, and the escapes of URLs. Characters that nobody sees are left out. It reports
// whether that changes anything, and notes each + that is a space if the text is a form.
func (r *reading) plain(text []byte, of *reading) (changed bool) {
	r.begin(of)
	var run formRun
	for i := 0; i < len(text); {
		if n := plainASCII(text[i:]); n > 0 {
			r.add(text[i:i+n], i)
			i += n
			continue
		}
		c, n := utf8.DecodeRune(text[i:])
		if c == '+' && run.isSpace(r.text) {
			r.plus = append(r.plus, len(r.text))
		}
		escaped, size := percentRune(text[i:])
		if size > 0 {
			c, n = escaped, size
		}
		switch as := plainRune(c); {
		case as < 0:
			changed = true
			r.add(nil, i+n)
		case as != c || size > 0:
			changed = true
			r.addEscape(as, i)
		default:
			r.add(text[i:i+n], i)
		}
		i += n
	}
	r.add(nil, len(text))
	return changed
}

// spaces reads each + as a space that may be one. It reports whether there are some.
func (r *reading) spaces() bool {
	for _, i := range r.plus {
		r.text[i] = ' '
	}
	return len(r.plus) > 0
}

// formRun tells the values of forms, as bodies and the addresses of pages have them, from other texts.
// https://url.spec.whatwg.org/#urlencoded-parsing
type formRun struct {
	read  int  // up to where
	value bool // a name and a = stand before, and no space
}

// isSpace reports whether a + that follows a text is a space. Each call has a longer text.
func (r *formRun) isSpace(text []byte) bool {
	if equals := bytes.LastIndexByte(text[r.read:], '='); equals >= 0 {
		r.read, r.value = r.read+equals, true
	}
	r.value = r.value && !bytes.ContainsAny(text[r.read:], " \t\r\n\"<>")
	r.read = len(text)
	return r.value
}

// plainASCII returns how many bytes of ASCII a text begins with that read as they are.
func plainASCII(text []byte) (n int) {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for len(text)-n >= 8 { // none has its highest bit, and none is a % or a +
		eight := binary.LittleEndian.Uint64(text[n:])
		percent, plus := eight^low*'%', eight^low*'+'
		if (eight|(percent-low)&^percent|(plus-low)&^plus)&high != 0 {
			break
		}
		n += 8
	}
	for n < len(text) && text[n] < utf8.RuneSelf && text[n] != '%' && text[n] != '+' {
		n++
	}
	return n
}

// widePunctuation is the punctuation of values that East Asian input methods write in wide forms.
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
	var run formRun
	for i := 0; i < len(text); {
		if i += plainASCII(text[i:]); i == len(text) {
			break
		}
		c, n := utf8.DecodeRune(text[i:])
		switch c {
		case '%':
			if _, n := percentByte(text[i:]); n > 0 {
				return false
			}
		case '+':
			if run.isSpace(text[:i]) {
				return false
			}
		default:
			if plainRune(c) != c {
				return false
			}
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
