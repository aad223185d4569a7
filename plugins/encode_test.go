package plugins

import (
	"testing"
	"unicode/utf8"
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
