package plugins

import (
	"fmt"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

func TestUnescape(t *testing.T) {
	for _, test := range []struct {
		text  string
		r     rune
		n     int
		valid bool
	}{
		{`\`, utf8.RuneError, 0, false},
		{`\"x`, '"', 2, true},
		{`\nx`, '\n', 2, true},
		{`\u00e9x`, 'é', 6, true},
		{`\u00e`, utf8.RuneError, 0, false},
		{`\u00exyz`, utf8.RuneError, 2, false},
		{`\qx`, 'q', 2, false},
		{`\éx`, 'é', 3, false},
		{`\ud83d\ude00x`, '😀', 12, true},
		{`\ud83d\ude0`, utf8.RuneError, 0, false},
		{`\ud83d`, utf8.RuneError, 0, false},
		{`\ud83dx`, utf8.RuneError, 6, false},
		{`\ud83d\n`, utf8.RuneError, 6, false},
		{`\ud83d\u0041`, utf8.RuneError, 6, false},
		{`\ude00\ude00`, utf8.RuneError, 6, false},
	} {
		if r, n, valid := Unescape(test.text); r != test.r || n != test.n || valid != test.valid {
			t.Errorf("%s: got %q, %d, %t", test.text, r, n, valid)
		}
		if r, n, valid := Unescape([]byte(test.text)); r != test.r || n != test.n || valid != test.valid {
			t.Errorf("%s as bytes: got %q, %d, %t", test.text, r, n, valid)
		}
	}
}

// Providers split texts between the halves of a surrogate pair.
func TestHalvesOfPairs(t *testing.T) {
	for _, test := range []struct{ pieces, text string }{
		{`["a"," b"]`, "a b"},
		{`["a \ud83d","\ude00 b"]`, "a 😀 b"},
		{`["\ud83d","\ude00\ud83d","\ude01"]`, "😀😁"},
		{`["\ud83d\ude00","\ud83d"]`, "😀\uFFFD"},
		{`["\ud83d","b"]`, "\uFFFDb"},
		{`["\ude00b","\ud83d\ud83d","\ude00"]`, "\uFFFDb\uFFFD😀"},
		{`["한국\uFFFD","\ud7ff\"\n\\"]`, "한국\uFFFD\ud7ff\"\n\\"},
		{`["\ud83d\n","\ude00"]`, "\uFFFD\n\uFFFD"},
	} {
		got, waiting := "", ""
		gjson.Parse(test.pieces).ForEach(func(_, v gjson.Result) bool {
			var text string
			text, waiting = JoinSurrogates(waiting + Text(v))
			got += text
			return true
		})
		if got += JoinLastSurrogates(waiting); got != test.text {
			t.Errorf("%s is %q, want %q", test.pieces, got, test.text)
		}
	}
}

// However a text is cut into JSON strings, the pieces join to it.
func FuzzHalvesOfPairs(f *testing.F) {
	f.Add("a😀b한", uint8(2))
	f.Fuzz(func(t *testing.T, s string, at uint8) {
		units := utf16.Encode([]rune(s))
		got, waiting := "", ""
		cut := int(at) % (len(units) + 1)
		for _, piece := range [][]uint16{units[:cut], units[cut:]} {
			quoted := `"`
			for _, u := range piece {
				quoted += fmt.Sprintf("\\u%04x", u)
			}
			var text string
			text, waiting = JoinSurrogates(waiting + Text(gjson.Parse(quoted+`"`)))
			got += text
		}
		if want := string([]rune(s)); got+JoinLastSurrogates(waiting) != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
