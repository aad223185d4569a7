package mask

import "bytes"

// Each of these functions checks a national id of a fixed number of digits.

// mod returns the remainder of a number by a divisor.
func mod(digits []byte, by int) (rest int) {
	for _, d := range digits {
		rest = (rest*10 + int(d)) % by
	}
	return rest
}

// weighted returns the sum of the first digits, each times its weight.
func weighted(digits []byte, weights ...int) (sum int) {
	for i, w := range weights {
		sum += int(digits[i]) * w
	}
	return sum
}

// month and day report whether the first two digits are those of a date.
func month(d []byte) bool { m := d[0]*10 + d[1]; return 1 <= m && m <= 12 }
func day(d []byte) bool   { v := d[0]*10 + d[1]; return 1 <= v && v <= 31 }

// same reports whether all digits are the same.
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

// cnpj checks the number of a company in Brazil, which may be one person.
// https://pt.wikipedia.org/wiki/Cadastro_Nacional_da_Pessoa_Jurídica
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
	later := (2_000_000_000%97 + born) % 97 // of people born since 2000, with a 2 before the number
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

// nir checks the social security number of a person in France.
// https://fr.wikipedia.org/wiki/Numéro_de_sécurité_sociale_en_France
func nir(d []byte) bool {
	return (d[0] == 1 || d[0] == 2) && month(d[3:]) && mod(d[:13], 97) == 97-int(d[13])*10-int(d[14])
}
