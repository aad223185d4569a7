package storage

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The two searches find the same.
func FuzzContainsFold(f *testing.F) {
	f.Add("abababac", "BAC")
	f.Add("ſſsSſ\u212A", "ssk")
	f.Add("日本日本語", "日本語")
	f.Fuzz(func(t *testing.T, s, sub string) {
		if sub == "" || !utf8.ValidString(sub) {
			return
		}
		a, b := containsFold(s, sub), containsFoldHashed(s, sub)
		if a != b || !a && strings.Contains(s, sub) && utf8.ValidString(s) {
			t.Errorf("%q in %q: %v, by hashes %v", sub, s, a, b)
		}
	})
}
