package mask

import (
	"bytes"
	"slices"
	"unicode"
)

// national finds a national id that consists of digits. One number in ten passes some check digits:
// such an id must be written in its groups, or stand after its name.
func (n *number) national() (from int, ok bool) {
	d := n.digits
	switch len(d) {
	case 9:
		ok = bsn(d) && n.named("bsn", "burgerservicenummer", "sofi")
	case 10:
		ok = n.sizes(6, 4) && personnummer(d) || n.isNHS()
	case 11:
		ok = n.inGroups(3, 3, 3, 2) && cpf(d) || n.inGroups() && pesel(d) || n.isSteuerID() || n.inGroups(2, 2, 2, 3, 2) && rijksregister(d)
	case 12:
		ok = n.isAadhaar() || n.isLongPersonnummer()
	case 14:
		ok = n.inGroups(2, 3, 3, 4, 2) && cnpj(d)
	case 15:
		ok = nir(d)
	case 18:
		ok = n.inGroups() && residentID(d)
	}
	return n.from, ok
}

// inGroups reports whether the number is written without groups, or in groups of these sizes.
func (n *number) inGroups(sizes ...int) bool { return len(n.groups) == 1 || n.sizes(sizes...) }

// isNHS reports whether the number identifies a patient in England.
func (n *number) isNHS() bool {
	return nhs(n.digits) && (n.sizes(3, 3, 4) && n.uniform() || n.named("nhs"))
}

// isSteuerID reports whether the number is a tax number of Germany.
func (n *number) isSteuerID() bool {
	return steuerID(n.digits) && (n.sizes(2, 3, 3, 3) || len(n.groups) == 1 && n.named("steuer", "idnr", "taxid", "tin\"", "tin:"))
}

// isAadhaar reports whether the number is an Aadhaar number of India.
func (n *number) isAadhaar() bool {
	return n.digits[0] >= 2 && verhoeff(n.digits) && (n.sizes(4, 4, 4) && n.uniform() || n.named("aadhaar", "uidai"))
}

// isLongPersonnummer reports whether the number is a personal number of Sweden with the century.
func (n *number) isLongPersonnummer() bool {
	d := n.digits
	return (n.sizes(12) || n.sizes(8, 4)) && (d[0] == 1 && d[1] == 9 || d[0] == 2 && d[1] == 0) && personnummer(d[2:])
}

// named reports whether one of the names stands shortly before the number, as a word or as the
// name of a field such as tax_id.
func (n *number) named(names ...string) bool {
	const near = 40
	context := bytes.Clone(n.text[max(0, n.from-near):n.from])
	if len(context) < near { // the name of the field stands before the text
		n.ledBy = true
		context = slices.Concat(n.lead[max(0, len(n.lead)-near+len(context)):], context)
	}
	context = context[bytes.LastIndexByte(context, '{')+1:]
	if comma := bytes.LastIndexByte(context, ','); comma >= 0 && bytes.IndexByte(context[comma:], ':') > 0 {
		context = context[comma:] // what is before is another field's
	}
	words := bytes.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, append(context, '"')) // as after the name of a field
	return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(words, []byte(name)) })
}

const dniLetters = "TRWAGMYFPDXBNJZSQVHLCKE"

// dni finds an identity number of Spain: eight digits and a letter. https://es.wikipedia.org/wiki/Documento_nacional_de_identidad_(España)
func (n *number) dni() (end int, ok bool) {
	if len(n.digits) != 8 || len(n.groups) != 1 && !n.sizes(2, 3, 3) {
		return 0, false
	}
	return spanishLetter(n.text, n.to, mod(n.digits, 23))
}

// spanishLetter checks the letter at an offset. A small one after a space is a word.
func spanishLetter(text []byte, at, rest int) (end int, ok bool) {
	want := dniLetters[rest]
	if c := byteAt(text, at); c == '-' || c == ' ' && byteAt(text, at+1) == want {
		at++
	}
	c := byteAt(text, at)
	return at + 1, (c == want || c == want|0x20) && !isAlnum(byteAt(text, at+1))
}

// nie finds the number of a foreigner in Spain, and returns its end, or 0: it has X, Y or Z in place of
// the first digit of a dni.
func nie(text []byte, at int) int {
	first := bytes.IndexByte([]byte("XYZ"), text[at]&^0x20)
	if first < 0 || at+8 > len(text) {
		return 0
	}
	rest := first
	for _, c := range text[at+1 : at+8] {
		if !isDigit(c) {
			return 0
		}
		rest = (rest*10 + int(c-'0')) % 23
	}
	if end, ok := spanishLetter(text, at+8, rest); ok {
		return end
	}
	return 0
}

// codiceFiscale finds a tax code of Italy, and returns its end, or 0. https://it.wikipedia.org/wiki/Codice_fiscale
func codiceFiscale(text []byte, at int) int {
	const size = 16
	if at+size > len(text) || isAlnum(byteAt(text, at+size)) {
		return 0
	}
	odd := [26]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	code, sum := bytes.ToUpper(text[at:at+size]), 0
	for i, c := range code {
		letter := !isDigit(c)
		if !isAlnum(c) || letter && (i == 6 || i == 7) || !letter && (i < 6 || i == 8 || i == 11 || i == 15) {
			return 0
		}
		v := int(c - '0')
		if letter {
			v = int(c - 'A')
		}
		switch {
		case i == size-1:
			if v != sum%26 {
				return 0
			}
		case i%2 == 0:
			sum += odd[v]
		default:
			sum += v
		}
	}
	return at + size
}
