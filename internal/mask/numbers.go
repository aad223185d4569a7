package mask

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// minNumber is the least number of digits of a number that JSON has outside of texts.
const minNumber = 9

// group is a part of a number as people write it, such as one of the four of a card.
type group struct{ from, to int }

// maxSeparator bounds what stands between two groups.
const maxSeparator = 4

// separator returns the length of what may stand between two groups, 0 for anything else.
func separator(text []byte) (n int) {
	for n < len(text) && n < maxSeparator {
		switch c := text[n]; {
		case classes[c]&separatorClass != 0:
			n++
			continue
		case c < utf8.RuneSelf:
			return n
		}
		i := slices.IndexFunc(separators, func(s string) bool { return bytes.HasPrefix(text[n:], []byte(s)) })
		if i < 0 {
			return n
		}
		n += len(separators[i])
	}
	return n
}

// separators are spaces and dashes that typesetting puts into numbers.
var separators = []string{
	"\u00a0", "\u2007", "\u2009", "\u202f", // spaces: no-break, figure, thin, narrow
	"\u2010", "\u2011", "\u2012", "\u2013", "\u2212", // dashes: hyphens, figure, en, minus
}

// numberAt finds what begins in the number at an offset, which may have several groups, and
// returns where to go on.
func (f *finder) numberAt(text []byte, at int, r *reading) int {
	groups := f.groups[:0]
	end := at
	for i := at; ; {
		from := i
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		if i == from {
			break
		}
		groups, end = append(groups, group{from, i}), i
		n := separator(text[i:])
		if n == 0 || i+n >= len(text) || !isDigit(text[i+n]) {
			break
		}
		i += n
	}
	f.groups = groups
	if len(groups) == 1 && end-at < minDigits && classes[byteBefore(text, at)]&letterClass == 0 {
		return end // the most frequent numbers are short
	}
	for g := 0; g < len(groups); {
		kind, from, to := f.window(text, groups[g:])
		if to == 0 || f.bare && (from != at || to != end || len(groups) > 1) {
			g++
			continue
		}
		if f.bare && byteBefore(text, from) == '-' {
			from--
		}
		f.add(kind, text, from, to, r)
		for end = max(end, to); g < len(groups) && groups[g].from < to; g++ {
		}
	}
	return end
}

// window returns the longest match that begins with the first of the groups. to is 0 if
// nothing matches.
func (f *finder) window(text []byte, groups []group) (kind detector, from, to int) {
	first := groups[0]
	if classes[byteBefore(text, first.from)]&letterClass != 0 && !edge(text, first.from) {
		return f.lettered(text, first.from)
	}
	if byteBefore(text, first.from) == '.' && isDigit(byteBefore(text, first.from-1)) { // a fraction
		return 0, 0, 0
	}
	n := &f.number
	*n = number{lead: f.body[:f.base], text: text, from: first.from, digits: n.digits[:0]}
	for i := range groups {
		g := groups[i]
		if len(n.digits)+g.to-g.from > maxDigits {
			break
		}
		n.groups = groups[:i+1]
		for _, c := range text[g.from:g.to] {
			n.digits = append(n.digits, c-'0')
		}
		n.to = g.to
		if len(n.digits) < minDigits && !isAlnum(byteAt(text, g.to)) {
			continue
		}
		if end, ok := n.dni(); ok && f.masks(nationalKind) {
			kind, from, to = nationalKind, first.from, end
		}
		if isAlnum(byteAt(text, g.to)) {
			break
		}
		for _, d := range numberKinds {
			if f.masks(d.kind) {
				if start, ok := d.is(n); ok {
					kind, from, to = d.kind, start, n.to
					break
				}
			}
		}
	}
	f.ledBy = f.ledBy || n.ledBy
	return kind, from, to
}

// minDigits and maxDigits bound the digits of what numbers are, unless letters stand before them.
const minDigits, maxDigits = 8, 19

// number is a number of one or more groups.
type number struct {
	lead     []byte // what the body has before the text
	ledBy    bool   // it was looked at
	text     []byte
	from, to int
	groups   []group
	digits   []byte // their values
}

// numberKinds are the kinds of numbers, the surest first.
var numberKinds = []struct {
	kind detector
	is   func(*number) (from int, ok bool)
}{
	{cardKind, (*number).card},
	{nationalKind, (*number).national},
	{phoneKind, (*number).phone},
}

// sizes reports whether the groups have these lengths.
func (n *number) sizes(want ...int) bool {
	return slices.EqualFunc(n.groups, want, func(g group, size int) bool { return g.to-g.from == size })
}

// uniform reports whether one separator, always the same, stands between the groups.
func (n *number) uniform() bool {
	sep := ""
	for i := 1; i < len(n.groups); i++ {
		s := string(n.text[n.groups[i-1].to:n.groups[i].from])
		if i > 1 && s != sep || len(s) > 1 && !slices.Contains(separators, s) {
			return false
		}
		sep = s
	}
	return true
}

// card is a payment card. https://en.wikipedia.org/wiki/Payment_card_number
func (n *number) card() (int, bool) {
	size := len(n.digits)
	if size < 13 || !n.uniform() || !luhn(n.digits) || !(len(n.groups) == 1 || n.sizes(4, 4, 4, 4) || n.sizes(4, 4, 4, 4, 3) ||
		n.sizes(4, 6, 5) || n.sizes(4, 6, 4) || n.sizes(4, 3, 3, 3)) {
		return 0, false
	}
	head := 0
	for _, d := range n.digits[:6] {
		head = head*10 + int(d)
	}
	within := func(from, to, width int) bool {
		h := head
		for i := 6; i > width; i-- {
			h /= 10
		}
		return from <= h && h <= to
	}
	switch size {
	case 13:
		return n.from, within(4, 4, 1)
	case 14:
		return n.from, within(300, 305, 3) || within(36, 36, 2) || within(38, 39, 2)
	case 15:
		return n.from, within(34, 34, 2) || within(37, 37, 2) || within(1800, 1800, 4) || within(2131, 2131, 4)
	case 16:
		return n.from, within(4, 4, 1) || within(51, 55, 2) || within(2221, 2720, 4) || within(3528, 3589, 4) || within(50, 50, 2) ||
			within(56, 69, 2) || within(81, 81, 2) || within(2200, 2204, 4) || within(9792, 9792, 4)
	}
	return n.from, within(4, 4, 1) || within(62, 62, 2) || within(81, 81, 2) || within(6011, 6011, 4) || within(644, 659, 3) || within(3528, 3589, 4)
}

func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		v := int(d)
		if (len(digits)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// phone is a telephone number in international notation (E.164), or as people in North
// America write it, or one that begins with 0 and has several groups.
func (n *number) phone() (int, bool) {
	size, from := len(n.digits), n.from
	open := from > 0 && n.text[from-1] == '('
	if open {
		from--
	}
	if plus := plusBefore(n.text, from); plus > 0 {
		return from - plus, n.digits[0] != 0 && size <= 15 && (size >= 9 || size == 8 && len(n.groups) > 1)
	}
	if from > 1 && !open && isDigit(n.text[from-2]) { // it goes on a longer number
		return 0, false
	}
	if n.digits[0] == 0 && size > 1 && n.digits[1] == 0 {
		return from, size >= 11 && size <= 17 && n.digits[2] != 0
	}
	if len(n.groups) < 2 || n.dated() {
		return 0, false
	}
	if area := size - 10; area == 0 && n.sizes(3, 3, 4) || area == 1 && n.digits[0] == 1 && n.sizes(1, 3, 3, 4) {
		return from, n.digits[area] >= 2 && n.digits[area+3] >= 2
	}
	if n.digits[0] != 0 || size < 9 || size > 12 {
		return 0, false
	}
	pairs := true
	for _, g := range n.groups {
		if g.to-g.from < 2 {
			return 0, false
		}
		pairs = pairs && g.to-g.from == 2
	}
	return from, n.groups[0].to-n.groups[0].from <= 6 && (pairs && n.uniform() || bytes.IndexByte(n.text[n.from:n.to], '.') < 0)
}

// plusBefore returns the length of the plus before an offset, 0 if there is none.
func plusBefore(text []byte, at int) int {
	if byteBefore(text, at) == '+' && edge(text, at-1) {
		return 1
	}
	return 0
}

// dated reports whether the number begins as a date does, such as 01-02-2024.
func (n *number) dated() bool {
	return len(n.groups) >= 3 && n.groups[0].to-n.groups[0].from == 2 && n.groups[1].to-n.groups[1].from == 2 &&
		n.groups[2].to-n.groups[2].from == 4 && (n.digits[4] == 1 && n.digits[5] == 9 || n.digits[4] == 2 && n.digits[5] == 0)
}

// lettered returns the IBAN or the national id of which the first digit stands at an offset,
// after its letters.
func (f *finder) lettered(text []byte, at int) (kind detector, from, to int) {
	from = at
	for from > 0 && classes[text[from-1]]&letterClass != 0 && at-from < 7 {
		from--
	}
	if byteBefore(text, from) != 0 && isDigit(text[from-1]) {
		return 0, 0, 0
	}
	switch at - from {
	case 2:
		if to := iban(text, from); to > 0 && f.masks(ibanKind) {
			return ibanKind, from, to
		}
	case 1:
		if to := nie(text, from); to > 0 && f.masks(nationalKind) {
			return nationalKind, from, to
		}
	case 6:
		if to := codiceFiscale(text, from); to > 0 && f.masks(nationalKind) {
			return nationalKind, from, to
		}
	}
	return 0, 0, 0
}

// ibanLengths are the lengths of account numbers by country.
// https://www.swift.com/standards/data-standards/iban-international-bank-account-number
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29, "BY": 28, "CH": 21,
	"CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18,
	"FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23,
	"IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27,
	"MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28,
	"PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
	"SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}

// iban returns the end of the account number that begins at an offset, 0 if none does.
func iban(text []byte, at int) int {
	var b [34]byte
	n, to := 0, at
	size := 0
	for i := at; i < len(text) && n < len(b); {
		c := text[i]
		if !isAlnum(c) {
			skip := 1
			if bytes.HasPrefix(text[i:], []byte("\u00a0")) {
				skip = len("\u00a0")
			} else if c != ' ' && c != '-' {
				break
			}
			if i+skip >= len(text) || !isAlnum(text[i+skip]) {
				break
			}
			i += skip
			continue
		}
		if c >= 'a' {
			c -= 'a' - 'A'
		}
		b[n] = c
		i++
		if n++; n == 2 {
			if size = ibanLengths[string(b[:2])]; size == 0 {
				return 0
			}
		}
		if n == size {
			to = i
			break
		}
	}
	if n < 2 || n != size || isAlnum(byteAt(text, to)) || !isDigit(b[2]) || !isDigit(b[3]) {
		return 0
	}
	rest := 0
	for i := range n {
		c := b[(i+4)%n]
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	if rest != 1 {
		return 0
	}
	return to
}
