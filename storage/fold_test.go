package storage

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// All searches find the same.
func FuzzContainsFold(f *testing.F) {
	f.Add("abababac", "BAC")
	f.Add("ſſsSſ\u212A", "ssk")
	f.Add("\u212AſA\u212Aſ", "skask")
	f.Add("aſ\u212AZsKzz", "SKz")
	f.Add("\xc5Z\xbfz ſz", "sz")
	f.Add("日本日本語", "日本語")
	f.Fuzz(func(t *testing.T, s, sub string) {
		if sub == "" || !utf8.ValidString(sub) {
			return
		}
		found := containsFold(s, sub, nil)
		for name, contains := range map[string]func(s, sub string, p *CancelCheck) bool{"Unicode": containsFoldUnicode, "hashes": containsFoldHashed} {
			if got := contains(s, sub, nil); got != found {
				t.Errorf("%q in %q: %v, by %s %v", sub, s, found, name, got)
			}
		}
		if !found && strings.Contains(s, sub) && utf8.ValidString(s) {
			t.Errorf("%q is not in %q", sub, s)
		}
	})
}
