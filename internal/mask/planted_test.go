package mask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
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

func letters(r *rand.Rand, alphabet string, n int) string {
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

const (
	lower = "abcdefghijklmnopqrstuvwxyz"
	alnum = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// generators make values of each kind, by the rules of those who issue them.
var generators = map[string]func(r *rand.Rand) string{
	"email": func(r *rand.Rand) string {
		return letters(r, lower, 1+r.IntN(12)) + []string{"", ".", "_", "-", "+"}[r.IntN(5)] + letters(r, lower, 3) + "@" + letters(r, lower, 2+r.IntN(12)) + []string{".com", ".co.uk", ".de", ".io"}[r.IntN(4)]
	},
	"card": func(r *rand.Rand) string {
		card := withLuhn("4" + digits(r, 14))
		if separator := []string{"", " ", "-"}[r.IntN(3)]; separator != "" {
			card = card[:4] + separator + card[4:8] + separator + card[8:12] + separator + card[12:]
		}
		return card
	},
	"iban": func(r *rand.Rand) string {
		account := digits(r, 18) // of Germany, 131400 with the two check digits
		n, _ := new(big.Int).SetString(account+"131400", 10)
		return fmt.Sprintf("DE%02d%s", 98-n.Mod(n, big.NewInt(97)).Int64(), account)
	},
	"phone": func(r *rand.Rand) string { return "+49 " + digits(r, 3) + " " + digits(r, 7) },
	"national_id": func(r *rand.Rand) string {
		if r.IntN(2) == 0 { // DNI of Spain
			n := r.IntN(90_000_000) + 10_000_000
			return fmt.Sprint(n) + string("TRWAGMYFPDXBNJZSQVHLCKE"[n%23])
		}
		cpf := digits(r, 9) // of Brazil
		for first := 10; first <= 11; first++ {
			check := fallingSum(cpf, first) * 10 % 11 % 10
			cpf += fmt.Sprint(check)
		}
		return cpf[:3] + "." + cpf[3:6] + "." + cpf[6:9] + "-" + cpf[9:]
	},
	"key": func(r *rand.Rand) string {
		return []string{
			"sk-proj-" + letters(r, alnum, 40), "AKIA" + letters(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
			"ghp_" + letters(r, alnum, 36), "hf_" + letters(r, lower+"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 34),
		}[r.IntN(4)]
	},
}

// None of 10,000 values of each kind is left in a body, whatever stands around it and whichever
// of its letters are escaped; and a body without values stays as it is, byte by byte.
func TestPlantedValuesAreMasked(t *testing.T) {
	m := all(t)
	r := rand.New(rand.NewPCG(1, 2))
	around := [][2]string{{"Please take ", ", thanks."}, {"(", ")"}, {"", ""}, {"to:", "\n"}, {"\"", "\""}, {"你好 ", "。"}}
	for kind, generate := range generators {
		left := 0
		for range 10_000 {
			value := generate(r)
			side := around[r.IntN(len(around))]
			text := mustJSON(side[0] + value + side[1])
			if escape := r.IntN(3); escape == 0 {
				at := r.IntN(len(value))
				text = strings.Replace(text, value, value[:at]+fmt.Sprintf(`\u%04x`, value[at])+value[at+1:], 1)
			} else if escape == 1 {
				text = mustJSON(`{"a":` + text + `}`) // an argument of a tool
			}
			body := `{"choices":[{"index":0},{"index":1,"message":{"content":` + text + `}}]}`
			counts := make(Counts)
			got := m.Body([]byte(body), counts)
			if counts[kind] == 0 || bytes.Contains(got, []byte(value)) || !json.Valid(got) {
				if left++; left <= 5 {
					t.Errorf("%s: %s became %s, %v", kind, body, got, counts)
				}
			}
		}
		if left > 0 {
			t.Errorf("%d values of the kind %s are left", left, kind)
		}
	}
	for range 10_000 {
		body := mustJSON(map[string]any{"content": letters(r, lower+"    ,.", 80), "n": r.IntN(1000)})
		if got := m.Body([]byte(body), nil); string(got) != body {
			t.Fatalf("%s became %s", body, got)
		}
	}
}
