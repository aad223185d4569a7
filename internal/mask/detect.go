package mask

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is what a byte may begin.
type class uint8

const (
	digitClass class = 1 << iota
	letterClass
	atClass  // of an address
	keyClass // the first letter of some key
)

var classes = func() (table [256]class) {
	for c := '0'; c <= '9'; c++ {
		table[c] = digitClass
	}
	for c := 'a'; c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = letterClass, letterClass
	}
	table['@'], table['%'] = atClass, atClass
	for _, k := range keys {
		table[k.prefix[0]] |= keyClass
	}
	return table
}()

func isDigit(c byte) bool { return classes[c]&digitClass != 0 }
func isAlnum(c byte) bool { return classes[c]&(digitClass|letterClass) != 0 }

// before returns the byte before an offset, 0 at the beginning. after does likewise.
func before(text []byte, i int) byte {
	if i <= 0 {
		return 0
	}
	return text[i-1]
}

func after(text []byte, i int) byte {
	if i >= len(text) {
		return 0
	}
	return text[i]
}

// add notes a match of the text that outer, and inner within it, have read.
func (f *finder) add(kind detector, text []byte, from, to int, outer, inner *reading) {
	if !f.m.kinds[kind].on {
		return
	}
	value := ""
	if f.pseudonym(&f.m.kinds[kind]) {
		value = string(text[from:to])
	}
	from, to = outer.source(inner.source(from)), outer.source(inner.source(to))
	f.spans = append(f.spans, span{f.base + from, f.base + to, kind, f.bare, value})
}

// detect finds the matches of a text.
func (f *finder) detect(text []byte, outer, inner *reading) {
	for i := 0; i < len(text); i++ {
		c := classes[text[i]]
		if c == 0 || c == letterClass {
			continue
		}
		switch {
		case c&atClass != 0 && !f.bare:
			if from, to := email(text, i); to > 0 {
				f.add(emailKind, text, from, to, outer, inner)
				i = to - 1
			}
		case c&digitClass != 0:
			i = f.numberAt(text, i, outer, inner) - 1
		case c&keyClass != 0 && !f.bare && !isAlnum(before(text, i)):
			if to := key(text, i); to > 0 {
				f.add(keyKind, text, i, to, outer, inner)
				i = to - 1
			}
		}
	}
	if f.bare {
		return
	}
	for k := len(builtin); k < len(f.m.kinds); k++ {
		own := &f.m.kinds[k]
		for _, pattern := range own.patterns {
			for _, at := range pattern.FindAllIndex(text, -1) {
				if at[1] > at[0] {
					f.add(detector(k), text, at[0], at[1], outer, inner)
				}
			}
		}
		own.words.find(text, func(from, to int) { f.add(detector(k), text, from, to, outer, inner) })
	}
}

// maxLocal and maxDomain bound the parts of an address, in bytes, so that no text is read many
// times.
const maxLocal, maxDomain = 256, 256

// email returns the address around an @, which may be written %40. to is 0 if there is none.
// https://www.rfc-editor.org/rfc/rfc5322#section-3.4.1
func email(text []byte, at int) (from, to int) {
	domain := at + 1
	if text[at] == '%' {
		if !bytes.HasPrefix(text[at:], []byte("%40")) {
			return 0, 0
		}
		domain = at + 3
	}
	from = at
	for from > 0 && at-from < maxLocal && isLocal(text[from-1]) {
		from--
	}
	for from < at && (text[from] == '.' || text[from] == '\'') {
		from++
	}
	to = domain
	for to < len(text) && to-domain < maxDomain && (isAlnum(text[to]) || text[to] == '-' || text[to] == '.' || text[to] >= utf8.RuneSelf) {
		to++
	}
	for to > domain && (text[to-1] == '.' || text[to-1] == '-') {
		to--
	}
	dot := bytes.LastIndexByte(text[domain:to], '.')
	if from == at || text[at-1] == '.' || dot < 1 || bytes.Contains(text[domain:to], []byte("..")) {
		return 0, 0
	}
	for r := domain + dot + 1; r < to; r++ { // the last label has no digits, unless it is of Punycode
		if isDigit(text[r]) && !bytes.HasPrefix(bytes.ToLower(text[domain+dot+1:to]), []byte("xn--")) {
			return 0, 0
		}
	}
	if to-(domain+dot+1) < 2 || isRetina(text[domain:to]) {
		return 0, 0
	}
	return from, to
}

func isLocal(c byte) bool {
	return isAlnum(c) || c >= utf8.RuneSelf || strings.IndexByte("!#$%'*+-_~.", c) >= 0
}

// isRetina reports whether what follows an @ is the size of an image, as in logo@2x.png.
func isRetina(domain []byte) bool {
	return len(domain) > 3 && isDigit(domain[0]) && domain[1] == 'x' && domain[2] == '.'
}

// phrases are words and phrases in lower case, by their first words.
type phrases map[string][]string

func (p *phrases) add(phrase string) error {
	phrase = strings.Join(strings.Fields(strings.ToLower(phrase)), " ")
	first := phrase[:wordEnd([]byte(phrase), 0)]
	if first == "" {
		return errWord
	}
	if *p == nil {
		*p = make(phrases)
	}
	(*p)[first] = append((*p)[first], phrase)
	return nil
}

// with returns the phrases of both.
func (p phrases) with(others phrases) phrases {
	both := maps.Clone(p)
	if both == nil {
		return others
	}
	for first, phrases := range others {
		both[first] = slices.Concat(both[first], phrases)
	}
	return both
}

var errWord = errors.New("words: each begins with a letter or a digit")

// wordEnd returns where the word ends that begins at an offset.
func wordEnd(text []byte, at int) int {
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
			break
		}
		at += n
	}
	return at
}

// find calls found for each phrase in a text.
func (p phrases) find(text []byte, found func(from, to int)) {
	if p == nil {
		return
	}
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		if end == i {
			_, n := utf8.DecodeRune(text[i:])
			i += n
			continue
		}
		longest := 0
		for _, phrase := range p[string(bytes.ToLower(text[i:end]))] {
			if to := matchPhrase(text, i, phrase); to > longest && wordEnd(text, to) == to {
				longest = to
			}
		}
		if longest > 0 {
			found(i, longest)
			end = longest
		}
		i = max(end, i+1)
	}
}

// matchPhrase returns where a phrase ends that begins at an offset, 0 if none does. Any white
// space separates its words.
func matchPhrase(text []byte, at int, phrase string) int {
	for _, want := range phrase {
		r, n := utf8.DecodeRune(text[at:])
		if want == ' ' {
			if !unicode.IsSpace(r) {
				return 0
			}
			for unicode.IsSpace(r) {
				at += n
				r, n = utf8.DecodeRune(text[at:])
			}
			continue
		}
		if n == 0 || unicode.ToLower(r) != want {
			return 0
		}
		at += n
	}
	return at
}
