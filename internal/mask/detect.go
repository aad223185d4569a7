package mask

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// class is a set of the kinds that a byte is of.
type class uint8

const (
	digitClass class = 1 << iota
	letterClass
	separatorClass // between the groups of a number
	jsonClass      // outside of the texts and literals of JSON
)

var classes = func() (table [256]class) {
	for c := '0'; c <= '9'; c++ {
		table[c] = digitClass
	}
	for c := 'a'; c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = letterClass, letterClass
	}
	for _, c := range " -./()" {
		table[c] = separatorClass
	}
	for _, c := range "0123456789- \t\r\n,:{}[]" {
		table[c] |= jsonClass
	}
	return table
}()

// mayStart has a bit for each pair of bytes whose first may start a match: a digit, the @ of an
// address, or the first byte of a key. Most bytes cost this one look-up alone.
var mayStart = func() (table [1 << 16 / 64]uint64) {
	set := func(first, second byte) {
		pair := uint16(first)<<8 | uint16(second)
		table[pair/64] |= 1 << (pair % 64)
	}
	for second := range 256 {
		for _, first := range "0123456789@" {
			set(byte(first), byte(second))
		}
	}
	for _, k := range keys {
		set(k.prefix[0], k.prefix[1])
	}
	return table
}()

func isDigit(c byte) bool { return classes[c]&digitClass != 0 }
func isAlnum(c byte) bool { return classes[c]&(digitClass|letterClass) != 0 }

// byteBefore returns the byte before an offset, 0 at the beginning of the text.
func byteBefore(text []byte, i int) byte {
	if i <= 0 {
		return 0
	}
	return text[i-1]
}

// byteAt returns the byte at an offset, 0 at the end of the text.
func byteAt(text []byte, i int) byte {
	if i >= len(text) {
		return 0
	}
	return text[i]
}

// add notes a match of a kind, if that kind is masked. from and to are offsets in text, which r has
// read; a nil r says that they are offsets of what was read, too.
func (f *finder) add(kind detector, text []byte, from, to int, r *reading) {
	if !f.masks(kind) {
		return
	}
	s := span{from: f.base + r.source(from), to: f.base + r.source(to), kind: kind, number: f.bare}
	if k := &f.m.kinds[kind]; f.name || k.pseudonym {
		s.pseudonym = f.m.pseudonym(k, kind, text[from:to])
	}
	f.spans = append(f.spans, s)
}

// detect finds the matches of a text that r has read.
func (f *finder) detect(text []byte, r *reading) {
	f.tokens = 0
	for i := 0; i < len(text); i++ {
		pair := uint16(text[i])<<8 | uint16(byteAt(text, i+1))
		if mayStart[pair/64]>>(pair%64)&1 == 0 {
			continue
		}
		switch c := text[i]; {
		case c == '@':
			if from, to := email(text, i); to > 0 {
				f.add(emailKind, text, from, to, r)
				i = to - 1
			}
		case isDigit(c):
			i = f.numberAt(text, i, r) - 1
		case !isAlnum(byteBefore(text, i)) || edge(text, i):
			if to := f.keyAt(text, i); to > 0 {
				f.add(keyKind, text, i, to, r)
				i = to - 1
			}
		}
	}
	for k := len(Kinds); k < len(f.m.kinds); k++ {
		custom := &f.m.kinds[k]
		for _, pattern := range custom.patterns {
			for _, at := range pattern.FindAllIndex(text, -1) {
				if at[1] > at[0] {
					f.add(detector(k), text, at[0], at[1], r)
				}
			}
		}
		custom.words.find(text, func(from, to int) { f.add(detector(k), text, from, to, r) })
	}
}

// ownNumber looks for the configured patterns and words in raw[from:to], a number of JSON. It notes a
// match as the whole number, because a number with a masked part is not JSON.
func (f *finder) ownNumber(raw []byte, from, to int) {
	for k := len(Kinds); k < len(f.m.kinds); k++ {
		custom := &f.m.kinds[k]
		if !custom.numeric || !f.masks(detector(k)) {
			continue
		}
		number, value := raw[from:to], []int(nil)
		for i := 0; value == nil && i < len(custom.patterns); i++ {
			value = custom.patterns[i].FindIndex(number)
		}
		custom.words.find(number, func(from, to int) { value = []int{from, to} })
		if value != nil {
			f.add(detector(k), raw, from+value[0], from+value[1], nil)
			s := &f.spans[len(f.spans)-1]
			s.from, s.to = f.base+from, f.base+to
		}
	}
}

// edge reports whether a word may begin at an offset: after anything but a letter or a digit. The m
// that ends the escape sequence of a terminal's colour counts as no letter.
func edge(text []byte, i int) bool {
	if c := byteBefore(text, i); c != 'm' {
		return !isAlnum(c)
	}
	escape := i - 1
	for escape > 0 && (isDigit(text[escape-1]) || text[escape-1] == ';') {
		escape--
	}
	return escape > 1 && text[escape-1] == '[' && text[escape-2] == 0x1b
}

// maxLocal and maxDomain bound the parts of an address, in bytes. A text full of @ would be read in
// quadratic time without them.
const maxLocal, maxDomain = 256, 256

// email returns the address around an @. to is 0 if there is none.
// https://www.rfc-editor.org/rfc/rfc5322#section-3.4.1
func email(text []byte, at int) (from, to int) {
	domain := at + 1
	for from = localStart(text, at); from < at && (text[from] == '.' || text[from] == '\''); from++ {
	}
	to = domainEnd(text, domain)
	if from == at || text[at-1] == '.' || to == 0 || isRetina(text[domain:to]) {
		return 0, 0
	}
	return from, to
}

// localStart returns where the local part of an address begins, which ends before the @ at at.
func localStart(text []byte, at int) int {
	from := at
	var next rune // the letter after the one that is read
	for from > 0 && at-from < maxLocal {
		if c := text[from-1]; isAlnum(c) && !unspaced(next) {
			from, next = from-1, rune(c)
			continue
		}
		r, n := utf8.DecodeLastRune(text[:from])
		switch {
		case !isLocal(r), unspaced(r) != unspaced(next) && next != 0:
			return from
		}
		from, next = from-n, 0
		if unicode.IsLetter(r) {
			next = r
		}
	}
	return from
}

func isLocal(r rune) bool {
	if r < utf8.RuneSelf {
		return isAlnum(byte(r)) || strings.IndexByte("!#$%'*+-_~.", byte(r)) >= 0
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M) && r != utf8.RuneError
}

// domainEnd returns the end of the domain that begins at an offset, 0 if there is none. Text may
// follow a domain without a space: another script, a sentence's dots, the date of a file.
func domainEnd(text []byte, from int) int {
	return topLevelEnd(text, from, labelsEnd(text, from))
}

// labelsEnd returns the end of the letters, digits, hyphens and dots that begin at an offset. It
// stops at a second dot in a row and, once it has a dot, where a script without spaces follows another.
func labelsEnd(text []byte, from int) (to int) {
	var last rune // the letter before the one that is read
	for to = from; to < len(text) && to-from < maxDomain; {
		if c := text[to]; isAlnum(c) {
			if last = rune(c); isDigit(c) {
				last = 0
			}
			to++
			continue
		}
		r, n := utf8.DecodeRune(text[to:])
		switch {
		case r == '.' && byteBefore(text, to) == '.', unspaced(r) && last != 0 && !unspaced(last) && bytes.IndexByte(text[from:to], '.') > 0:
			return to
		case r == '-' || r == '.':
			last = 0
		case unicode.In(r, unicode.L, unicode.M, unicode.N):
			last = r
		default:
			return to
		}
		to += n
	}
	return to
}

// topLevelEnd shortens the labels in text[from:to] until they end with the name of a top-level
// domain, which has no digits, and returns their end. It returns 0 if nothing is left.
func topLevelEnd(text []byte, from, to int) int {
	for {
		for to > from && (text[to-1] == '.' || text[to-1] == '-') {
			to--
		}
		dot := bytes.LastIndexByte(text[from:to], '.')
		if dot < 1 {
			return 0
		}
		label := text[from+dot+1 : to]
		if len(label) > 4 && bytes.EqualFold(label[:4], []byte("xn--")) {
			return to
		}
		if dash := bytes.IndexByte(label, '-'); dash >= 0 {
			label = label[:dash]
		}
		if bytes.IndexFunc(label, unicode.IsDigit) < 0 {
			if len(label) < 2 {
				return 0
			}
			return from + dot + 1 + len(label)
		}
		to = from + dot
	}
}

// isRetina reports whether what follows an @ is the size of an image, as in logo@2x.png.
func isRetina(domain []byte) bool {
	return len(domain) > 3 && isDigit(domain[0]) && domain[1] == 'x' && domain[2] == '.' &&
		slices.Contains(images, strings.ToLower(string(domain[3:])))
}

var images = []string{"avif", "gif", "heic", "ico", "jpeg", "jpg", "png", "svg", "webp"}

// phrases are words and phrases as fold writes them, by their first words.
type phrases map[string][]string

func (p *phrases) add(phrase string) error {
	phrase = strings.Join(strings.Fields(fold([]byte(phrase))), " ")
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

// fold returns a text in lower case, with letters apart from their accents, so that texts that differ
// in nothing else become equal. https://www.unicode.org/reports/tr15/
func fold(text []byte) string { return string(norm.NFD.Bytes(bytes.ToLower(text))) }

// merge returns the phrases of p and others. It changes neither.
func (p phrases) merge(others phrases) phrases {
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

// unspaced reports whether a letter is of a script without spaces between words. Any letter of such
// a script may begin or end a word.
func unspaced(r rune) bool {
	return r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// wordEnd returns the end of the word that begins at an offset, the offset itself if none does. A
// combining mark belongs to the letter before it.
func wordEnd(text []byte, at int) int {
	oneLetter := false // the word was one letter
	for begin := at; at < len(text); {
		if c := text[at]; c < utf8.RuneSelf && !oneLetter {
			if !isAlnum(c) {
				return at
			}
			at++
			continue
		}
		r, n := utf8.DecodeRune(text[at:])
		switch {
		case unicode.Is(unicode.M, r):
		case oneLetter, !unicode.In(r, unicode.L, unicode.Nd), at > begin && unspaced(r):
			return at
		default:
			oneLetter = unspaced(r)
		}
		at += n
	}
	return at
}

// endsWord reports whether a word may end at an offset.
func endsWord(text []byte, at int) bool {
	r, _ := utf8.DecodeRune(text[at:])
	last, _ := utf8.DecodeLastRune(text[:at])
	return !unicode.Is(unicode.M, r) && (unspaced(r) || unspaced(last) || !unicode.In(r, unicode.L, unicode.Nd))
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
		for _, phrase := range p.beginning(text[i:end]) {
			if to := matchPhrase(text, i, phrase); to > longest && endsWord(text, to) {
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

// beginning returns the phrases that begin with a word.
func (p phrases) beginning(word []byte) []string {
	var lower [32]byte // the words of most texts are short, and in ASCII
	n := 0
	for ; n < len(word) && n < len(lower) && word[n] < utf8.RuneSelf; n++ {
		if lower[n] = word[n]; 'A' <= word[n] && word[n] <= 'Z' {
			lower[n] |= 0x20
		}
	}
	if n == len(word) {
		return p[string(lower[:n])]
	}
	return p[fold(word)]
}

// matchPhrase returns the end of the phrase if it begins at an offset of the text, else 0. Any white
// space separates its words.
func matchPhrase(text []byte, at int, phrase string) int {
	for phrase != "" {
		r, n := utf8.DecodeRune(text[at:])
		if phrase[0] == ' ' {
			if !unicode.IsSpace(r) {
				return 0
			}
			for unicode.IsSpace(r) {
				at += n
				r, n = utf8.DecodeRune(text[at:])
			}
			phrase = phrase[1:]
			continue
		}
		rest, ok := strings.CutPrefix(phrase, fold(text[at:at+n]))
		if n == 0 || !ok {
			return 0
		}
		phrase, at = rest, at+n
	}
	return at
}
