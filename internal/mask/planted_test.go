package mask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/masktest"
)

// None of 10,000 values of each kind is left in a body, whatever stands around it and whichever
// of its letters are escaped; and a body without values stays as it is, byte by byte.
func TestPlantedValuesAreMasked(t *testing.T) {
	m := all(t)
	r := rand.New(rand.NewPCG(1, 2))
	around := [][2]string{{"Please take ", ", thanks."}, {"(", ")"}, {"", ""}, {"to:", "\n"}, {"\"", "\""}, {"你好 ", "。"}}
	for kind, generate := range masktest.Generators {
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
		body := mustJSON(map[string]any{"content": masktest.Letters(r, "abcdefghijklmnopqrstuvwxyz    ,.", 80), "n": r.IntN(1000)})
		if got := m.Body([]byte(body), nil); string(got) != body {
			t.Fatalf("%s became %s", body, got)
		}
	}
}
