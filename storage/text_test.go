package storage_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirhq/weir/storage"
)

func TestTextMatcher(t *testing.T) {
	const kelvin, longS = "\u212A", "ſ"
	for _, test := range []struct {
		op          storage.Operator
		value, text string
		want        bool
	}{
		{storage.Equals, "a", "a", true},
		{storage.Equals, "a", "A", false},
		{storage.Equals, "%", "a", false},
		{storage.NotEquals, "a", "a", false},
		{storage.NotEquals, "a", "", true},

		{storage.Like, "gpt-4%", "gpt-4o", true},
		{storage.Like, "gpt-4%", "GPT-4o", false},
		{storage.Like, "gpt", "gpt-4o", false},
		{storage.Like, "%4_", "gpt-4o", true},
		{storage.Like, "_", "é", true},
		{storage.Like, "_", "😀", true},
		{storage.Like, "_", "", false},
		{storage.Like, "__", "a", false},
		{storage.Like, "", "", true},
		{storage.Like, "", "a", false},
		{storage.Like, "%", "", true},
		{storage.Like, "%%", "abc", true},
		{storage.Like, `100\%`, "100%", true},
		{storage.Like, `100\%`, "1000", false},
		{storage.Like, `a\_b`, "axb", false},
		{storage.Like, `a\\%`, `a\b`, true},
		{storage.Like, `\a`, "a", true},
		{storage.Like, `a\`, `a\`, true},
		{storage.Like, "%ab%ab", "abxabab", true},
		{storage.Like, "%a_a%b", "aXaaYab", true},
		{storage.Like, "a%\x00b", "axx\x00b", true},
		{storage.ILike, "gpt-4%", "GPT-4o", true},
		{storage.ILike, "%STRASSE", "straße", false},
		{storage.ILike, "k" + longS, kelvin + "S", true},
		{storage.ILike, `\%É`, "%é", true},
		{storage.ILike, "%" + strings.Repeat("a%", 30) + "b", strings.Repeat("a", 2000), false},

		{storage.Contains, "", "", true},
		{storage.Contains, "", "a", true},
		{storage.Contains, "a", "", false},
		{storage.Contains, "PT-4", "gpt-4o", true},
		{storage.Contains, "%", "abc", false},
		{storage.Contains, "_", "a_b", true},
		{storage.Contains, "kelvin", kelvin + "elvin", true},
		{storage.Contains, kelvin + "ELVIN", "mr kelvin", true},
		{storage.Contains, "straSSe", "ſtra" + longS + "ſe", true},
		{storage.Contains, "ss", "ß", false},
		{storage.Contains, "i", "İ", false},
		{storage.Contains, "İ", "istanbul", false},
		{storage.Contains, "ı", "I", false},
		{storage.Contains, "ΣΊΣΥΦΟΣ", "ο Σίσυφος", true},
		{storage.Contains, "ǆ", "ǅ", true},
		{storage.Contains, "日本", "東京、日本語", true},
		{storage.Contains, "\x00B", "a\x00b", true},
		{storage.Contains, "\uFFFD", "\xff", false},
		{storage.Contains, "é", "\xc3É", true},
		{storage.Contains, "aab", "aaaaab", true},
		{storage.Contains, strings.Repeat("ſ", 500) + "b", strings.Repeat("s", 5000) + "B", true},
		{storage.Contains, strings.Repeat("S", 500) + "b", strings.Repeat("ſ", 5000) + "c", false},
		{storage.Contains, strings.Repeat("a", 1<<17) + "b", strings.Repeat("A", 1<<20), false},
		{storage.NotContains, "PT-4", "gpt-4o", false},
		{storage.NotContains, "x", "", true},
		{storage.NotContains, "", "", false},
	} {
		if got := storage.TextMatcher(test.op, test.value, nil)(test.text); got != test.want {
			t.Errorf("%.40q %s %.40q is %v", test.text, test.op, test.value, got)
		}
	}
}

// containsFold by the standard library: any part that EqualFold calls the same.
func containsFold(s, sub string) bool {
	for i := range len(s) + 1 {
		for j := i; j <= len(s); j++ {
			if (i == len(s) || utf8.RuneStart(s[i])) && strings.EqualFold(s[i:j], sub) {
				return true
			}
		}
	}
	return false
}

// like by the standard library: the pattern as a regular expression.
func like(s, pattern string, flags string) bool {
	var re strings.Builder
	re.WriteString(`^(?s` + flags + `)`)
	escaped := false
	for i, r := range pattern {
		switch {
		case escaped, r != '%' && r != '_' && r != '\\':
			re.WriteString(regexp.QuoteMeta(string(r)))
			escaped = false
		case r == '%':
			re.WriteString(".*")
		case r == '_':
			re.WriteString(".")
		case i == len(pattern)-1:
			re.WriteString(`\\`)
		default:
			escaped = true
		}
	}
	return regexp.MustCompile(re.String() + "$").MatchString(s)
}

func FuzzTextMatcher(f *testing.F) {
	for _, seed := range [][2]string{
		{"gpt-4o", "PT"}, {"ſtraße", "STRA"}, {"\u212Aelvin", "k%"}, {"a_b", `a\_%`}, {"İ", "i"}, {"😀😀", "%😀_"},
		{`\`, `\\`}, {"abab", "%a%b"}, {"", ""}, {"日本語", "本"}, {"a\nb", "A_B"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, s, value string) {
		if !utf8.ValidString(s) || !utf8.ValidString(value) || len(s) > 200 || len(value) > 200 {
			return
		}
		for _, test := range []struct {
			op   storage.Operator
			want bool
		}{
			{storage.Equals, s == value},
			{storage.NotEquals, s != value},
			{storage.Like, like(s, value, "")},
			{storage.ILike, like(s, value, "i")},
			{storage.Contains, containsFold(s, value)},
			{storage.NotContains, !containsFold(s, value)},
		} {
			if got := storage.TextMatcher(test.op, value, nil)(s); got != test.want {
				t.Errorf("%q %s %q is %v", s, test.op, value, got)
			}
		}
	})
}

func BenchmarkContains(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 2300) // 100 KB
	for name, value := range map[string]string{"letter": "Zebra", "unicode": "日本", "common": "the lazy cat", "hostile": strings.Repeat("the quick brown fox jumps over the lazy dog. ", 1000) + "x"} {
		b.Run(name, func(b *testing.B) {
			match := storage.TextMatcher(storage.Contains, value, nil)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if match(text) {
					b.Fatal("found")
				}
			}
		})
	}
}
