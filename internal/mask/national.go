package mask

import (
	"bytes"
	"slices"
	"unicode"
)

// national finds a national id that consists of digits. One number in ten passes some check digits:
// such an id must be written in its groups, or stand after its name.
func (n *number) national() (int, bool) {
	d := n.digits
	grouped := len(n.groups) > 1
	switch len(d) {
	case 9:
		return n.from, bsn(d) && n.named("bsn", "burgerservicenummer", "sofi")
	case 10:
		return n.from, n.sizes(6, 4) && personnummer(d) || nhs(d) && (n.sizes(3, 3, 4) && n.uniform() || n.named("nhs"))
	case 11:
		brazil := !grouped || n.sizes(3, 3, 3, 2)
		return n.from, brazil && cpf(d) || !grouped && (pesel(d) || steuerID(d) && n.named("steuer", "idnr", "taxid", "tin\"", "tin:")) ||
			n.sizes(2, 3, 3, 3) && steuerID(d) || (!grouped || n.sizes(2, 2, 2, 3, 2)) && rijksregister(d)
	case 12:
		return n.from, d[0] >= 2 && verhoeff(d) && (n.sizes(4, 4, 4) && n.uniform() || n.named("aadhaar", "uidai")) ||
			(n.sizes(12) || n.sizes(8, 4)) && (d[0] == 1 && d[1] == 9 || d[0] == 2 && d[1] == 0) && personnummer(d[2:])
	case 14:
		return n.from, (!grouped || n.sizes(2, 3, 3, 4, 2)) && cnpj(d)
	case 15:
		return n.from, (d[0] == 1 || d[0] == 2) && month(d[3:]) && mod(d[:13], 97) == 97-int(d[13])*10-int(d[14])
	case 18:
		return n.from, !grouped && residentID(d)
	}
	return 0, false
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

func mod(digits []byte, by int) (rest int) {
	for _, d := range digits {
		rest = (rest*10 + int(d)) % by
	}
	return rest
}

func weighted(digits []byte, weights ...int) (sum int) {
	for i, w := range weights {
		sum += int(digits[i]) * w
	}
	return sum
}

func month(d []byte) bool { m := d[0]*10 + d[1]; return 1 <= m && m <= 12 }
func day(d []byte) bool   { v := d[0]*10 + d[1]; return 1 <= v && v <= 31 }

func same(digits []byte) bool { return bytes.Count(digits, digits[:1]) == len(digits) }

// bsn checks a citizen's number of the Netherlands. https://nl.wikipedia.org/wiki/Burgerservicenummer
func bsn(d []byte) bool { return !same(d) && weighted(d, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0 }

// personnummer checks a personal number of Sweden. https://sv.wikipedia.org/wiki/Personnummer_i_Sverige
func personnummer(d []byte) bool {
	coordination := d[4] >= 6 // 60 is added to the day of people who are not resident
	date := []byte{d[4], d[5]}
	if coordination {
		date[0] -= 6
	}
	return month(d[2:]) && day(date) && luhn(d)
}

// nhs checks the number of a patient in England. https://www.datadictionary.nhs.uk/attributes/nhs_number.html
func nhs(d []byte) bool {
	return !same(d) && (weighted(d, 10, 9, 8, 7, 6, 5, 4, 3, 2)+int(d[9]))%11 == 0
}

// cpf checks the tax number of a person in Brazil. https://pt.wikipedia.org/wiki/Cadastro_de_Pessoas_Físicas
func cpf(d []byte) bool {
	return !same(d) && weighted(d, 10, 9, 8, 7, 6, 5, 4, 3, 2)*10%11%10 == int(d[9]) &&
		weighted(d, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)*10%11%10 == int(d[10])
}

// cnpj is of companies of Brazil, some of which are persons.
func cnpj(d []byte) bool {
	check := func(rest int) int {
		if rest < 2 {
			return 0
		}
		return 11 - rest
	}
	return !same(d) && check(weighted(d, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)%11) == int(d[12]) &&
		check(weighted(d, 6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)%11) == int(d[13])
}

// pesel checks a personal number of Poland. The century is added to the month. https://en.wikipedia.org/wiki/PESEL
func pesel(d []byte) bool {
	m := (d[2]*10 + d[3]) % 20
	return 1 <= m && m <= 12 && day(d[4:]) && weighted(d, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)%10 == 0
}

// steuerID checks a tax number of Germany: one digit occurs two or three times among the first ten, and the check
// digit is of ISO 7064, MOD 11,10. https://de.wikipedia.org/wiki/Steuerliche_Identifikationsnummer
func steuerID(d []byte) bool {
	var seen [10]int
	for _, v := range d[:10] {
		seen[v]++
	}
	repeated := 0
	for _, n := range seen {
		if n > 3 {
			return false
		}
		if n > 1 {
			repeated++
		}
	}
	product := 10
	for _, v := range d[:10] {
		sum := (int(v) + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return d[0] != 0 && repeated == 1 && (11-product)%10 == int(d[10])
}

// rijksregister checks a number of Belgium's national register. https://nl.wikipedia.org/wiki/Rijksregisternummer
func rijksregister(d []byte) bool {
	check := int(d[9])*10 + int(d[10])
	born := mod(d[:9], 97)
	later := (2_000_000_000%97 + born) % 97 // since 2000, a 2 stands before the number
	return month(d[2:]) && day(d[4:]) && (97-born == check || 97-later == check)
}

// verhoeff checks an Aadhaar number of India. https://en.wikipedia.org/wiki/Verhoeff_algorithm
func verhoeff(digits []byte) bool {
	permuted := [10]int{1, 5, 7, 6, 2, 8, 3, 0, 9, 4}
	c := 0
	for i := range digits {
		v := int(digits[len(digits)-1-i])
		for range i % 8 {
			v = permuted[v]
		}
		c = dihedral(c, v)
	}
	return c == 0
}

// dihedral multiplies two symmetries of a pentagon: 0 to 4 rotate it, 5 to 9 reflect it.
func dihedral(a, b int) int {
	switch {
	case a < 5 && b < 5:
		return (a + b) % 5
	case a < 5:
		return (a+b)%5 + 5
	case b < 5:
		return (a-b)%5 + 5
	}
	return (a - b + 5) % 5
}

// residentID checks the number of a resident's card in China. The few that end in X match no number.
// https://en.wikipedia.org/wiki/Resident_Identity_Card
func residentID(d []byte) bool {
	rest := weighted(d, 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2) % 11
	return (d[6] == 1 && d[7] == 9 || d[6] == 2 && d[7] == 0) && month(d[10:]) && day(d[12:]) && (12-rest)%11 == int(d[17])
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
