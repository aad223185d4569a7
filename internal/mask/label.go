package mask

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

var pseudonymText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// appendLabel appends what replaces a match: its kind in brackets, and its pseudonym if the rule asks
// for one. A bare number of JSON becomes a string.
func (f *finder) appendLabel(b []byte, k *kind, s *span) []byte {
	if s.number {
		b = append(b, '"')
	}
	b = append(append(b, '['), k.label...)
	if f.pseudonym(k) && f.m.key != nil {
		mac := hmac.New(sha256.New, f.m.key)
		mac.Write([]byte(k.name + "\x00" + canonical(s.kind, s.value)))
		var sum [sha256.Size]byte
		text := pseudonymText.EncodeToString(mac.Sum(sum[:0]))
		b = append(append(b, ':'), text[:12]...) // 60 bits
	}
	b = append(b, ']')
	if s.number {
		b = append(b, '"')
	}
	return b
}

// canonical returns a value in one spelling, so that equal values get equal pseudonyms: numbers without
// their separators, words in lower case.
func canonical(kind detector, value string) string {
	switch kind {
	case cardKind, ibanKind, phoneKind, nationalKind:
		return strings.Map(func(r rune) rune {
			switch {
			case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', r == '+':
				return r
			case 'a' <= r && r <= 'z':
				return r - 'a' + 'A'
			}
			return -1
		}, value)
	case keyKind:
		return value
	}
	return strings.ToLower(value)
}
