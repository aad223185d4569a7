// Package masktest makes values that masking finds.
package masktest

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
)

// digits returns n digits of which the first is not 0.
func digits(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0' + byte(r.IntN(10))
	}
	b[0] = '1' + byte(r.IntN(9))
	return string(b)
}

// Letters returns n letters of an alphabet.
func Letters(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// withLuhn appends the check digit of ISO/IEC 7812.
func withLuhn(number string) string {
	sum := 0
	for i := range number {
		d := int(number[len(number)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return number + fmt.Sprint((10-sum%10)%10)
}

// fallingSum is the sum of digits by falling weights.
func fallingSum(number string, first int) (sum int) {
	for i := range number {
		sum += int(number[i]-'0') * (first - i)
	}
	return sum
}

// german is the IBAN of an account of 18 digits.
func german(account string) string {
	n, _ := new(big.Int).SetString(account+"131400", 10) // the country, and no check digits
	return fmt.Sprintf("DE%02d%s", 98-n.Mod(n, big.NewInt(97)).Int64(), account)
}

// brazilian is the CPF of 9 digits.
func brazilian(cpf string) string {
	for first := 10; first <= 11; first++ {
		check := fallingSum(cpf, first) * 10 % 11 % 10
		cpf += fmt.Sprint(check)
	}
	return cpf[:3] + "." + cpf[3:6] + "." + cpf[6:9] + "-" + cpf[9:]
}

const (
	lower = "abcdefghijklmnopqrstuvwxyz"
	alnum = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// Generators make values of each kind, by the rules of those who issue them.
var Generators = map[string]func(r *rand.Rand) string{
	"email": func(r *rand.Rand) string {
		return Letters(r, lower, 1+r.IntN(12)) + []string{"", ".", "_", "-", "+"}[r.IntN(5)] + Letters(r, lower, 3) + "@" + Letters(r, lower, 2+r.IntN(12)) + []string{".com", ".co.uk", ".de", ".io"}[r.IntN(4)]
	},
	"card": func(r *rand.Rand) string {
		card := withLuhn("4" + digits(r, 14))
		if separator := []string{"", " ", "-"}[r.IntN(3)]; separator != "" {
			card = card[:4] + separator + card[4:8] + separator + card[8:12] + separator + card[12:]
		}
		return card
	},
	"iban":  func(r *rand.Rand) string { return german(digits(r, 18)) },
	"phone": func(r *rand.Rand) string { return "+49 " + digits(r, 3) + " " + digits(r, 7) },
	"national_id": func(r *rand.Rand) string {
		if r.IntN(2) == 0 { // DNI of Spain
			n := r.IntN(90_000_000) + 10_000_000
			return fmt.Sprint(n) + string("TRWAGMYFPDXBNJZSQVHLCKE"[n%23])
		}
		return brazilian(digits(r, 9))
	},
	"key": func(r *rand.Rand) string {
		return []string{
			"sk-proj-" + Letters(r, alnum, 40), "AKIA" + Letters(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
			"ghp_" + Letters(r, alnum, 36), "hf_" + Letters(r, lower+"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 34),
		}[r.IntN(4)]
	},
}

// Own is a pattern for a kind of one's own.
const Own = `planted_id_\d+`

// Numbered returns a value of each kind and of Own. Find finds it wherever it stands, also as a URL has
// it. n is below 1,000,000.
func Numbered(n int) []string {
	return []string{
		fmt.Sprintf("planted-%d@leak.example", n),
		fmt.Sprintf("sk-planted-%d-0123456789abcdef", n),
		withLuhn(fmt.Sprintf("4999999%08d", n)),
		german(fmt.Sprintf("13371337%010d", n)),
		fmt.Sprintf("+49 1337 %07d", n),
		brazilian(fmt.Sprintf("133%06d", n)),
		fmt.Sprintf("planted_id_%d", n),
	}
}

var (
	numbered = regexp.MustCompile(`(?i)planted[-_][-_a-z0-9]*(@|%40|%2540)leak\.example|sk-planted-[0-9]+-0123456789abcdef|4999999[0-9]{9}|` +
		`DE[0-9]{2}13371337[0-9]{10}|49(\+| |%20|%2520)1337(\+| |%20|%2520)[0-9]{7}|133\.[0-9]{3}\.[0-9]{3}-[0-9]{2}|` + Own)
	// signs are in all that numbered matches: to look for them takes a tenth of the time.
	signs = []string{"lanted", "LANTED", "4999999", "1337", "133."}
)

// Find returns where values of Numbered stand.
func Find(content []byte) (found [][]int) {
	const before, after = 16, 64 // more than a value has around a sign
	for _, sign := range signs {
		for at := 0; ; at += len(sign) {
			i := bytes.Index(content[at:], []byte(sign))
			if i < 0 {
				break
			}
			at += i
			from := max(0, at-before)
			if m := numbered.FindIndex(content[from:min(len(content), at+after)]); m != nil {
				found = append(found, []int{from + m[0], from + m[1]})
			}
		}
	}
	return found
}
