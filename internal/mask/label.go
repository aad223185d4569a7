package mask

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

var pseudonymText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// appendLabel appends the replacement of a match, such as [EMAIL] or [EMAIL:k3vq...], where a pseudonym
// follows the kind. A JSON number becomes a string.
func (s *span) appendLabel(b []byte, label string) []byte {
	if s.number {
		b = append(b, '"')
	}
	b = append(append(b, '['), label...)
	if s.pseudonym != "" {
		b = append(append(b, ':'), s.pseudonym...)
	}
	b = append(b, ']')
	if s.number {
		b = append(b, '"')
	}
	return b
}

// pseudonym returns the pseudonym of a value, or "" if no key is configured. Equal values have equal ones.
func (m *Masker) pseudonym(k *kind, of detector, value []byte) string {
	if m.key == nil {
		return ""
	}
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(k.name + "\x00" + canonical(of, string(value))))
	return pseudonymText.EncodeToString(mac.Sum(nil))[:12] // 60 bits
}

// canonical returns one spelling of a value, so that all its spellings get the same pseudonym. Numbers lose
// their separators, and words their upper case.
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
