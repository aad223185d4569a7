package storage

import (
	"unicode"
	"unicode/utf8"
)

// TextMatcher is the test that a text operator and its value make of one text.
// Where an operator ignores case (ilike, contains, not-contains), two letters
// are the same by Unicode's simple folding: ſ, S and s are one, İ has no other
// case.
//
// When p is over, what it answers is worth nothing.
func TextMatcher(op Operator, value string, p *CancelCheck) func(string) bool {
	return func(s string) bool { return op.holds(s, value, p) != op.Negative() }
}

// Negative is true for the operators which hold when nothing matches.
func (o Operator) Negative() bool { return o == NotEquals || o == NotContains }

// holds tells whether s matches value by a text operator; for a negative one,
// by the operator which it negates.
func (o Operator) holds(s, value string, p *CancelCheck) bool {
	switch o {
	case Like:
		return like(s, value, false, p)
	case ILike:
		return like(s, value, true, p)
	case Contains, NotContains:
		return containsFold(s, value, p)
	default:
		return s == value
	}
}

// like is SQL's LIKE: % stands for any text, _ for any letter, and a backslash
// takes the meaning from what follows it. On a mismatch the last % takes one
// letter more; no earlier one ever needs to.
func like(s, pattern string, ignoreCase bool, p *CancelCheck) bool {
	var rest, again string
	percent := false
	for !p.over(1) {
		switch {
		case pattern != "" && pattern[0] == '%':
			pattern = pattern[1:]
			if pattern == "" {
				return true
			}
			percent, rest, again = true, s, pattern
			continue
		case pattern == "" && s == "":
			return true
		case pattern != "" && s != "":
			a, n := letter(s)
			b, m := letter(pattern)
			wildcard := b == '_'
			if b == '\\' && len(pattern) > 1 {
				b, m = letter(pattern[1:])
				m++
			}
			if wildcard || a == b || ignoreCase && fold(a) == fold(b) {
				s, pattern = s[n:], pattern[m:]
				continue
			}
		}
		if !percent || rest == "" {
			return false
		}
		_, n := letter(rest)
		rest = rest[n:]
		s, pattern = rest, again
	}
	return false
}

// letter is the first rune of s and its width. Each byte of invalid UTF-8 is a
// letter of its own, which equals no other.
func letter(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return -rune(s[0]), 1
	}
	return r, n
}

// fold is the smallest of the runes that differ from r in case alone.
func fold(r rune) rune {
	if 'a' <= r && r <= 'z' {
		return r - 'a' + 'A'
	}
	if r < utf8.RuneSelf {
		return r
	}
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
