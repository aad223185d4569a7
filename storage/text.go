package storage

import (
	"unicode"
	"unicode/utf8"
)

// TextMatcher is the test that a text operator and its value make of one text.
// Where an operator ignores case (ilike, contains, not-contains), two letters
// are the same by Unicode's simple folding: ſ, S and s are one, İ has no other
// case.
func TextMatcher(op Operator, value string) func(string) bool {
	return func(s string) bool { return op.holds(s, value) != op.Negative() }
}

// Negative is true for the operators which hold when nothing matches.
func (o Operator) Negative() bool { return o == NotEquals || o == NotContains }

// holds tells whether s matches value by a text operator; for a negative one,
// by the operator which it negates.
func (o Operator) holds(s, value string) bool {
	switch o {
	case Like:
		return like(s, value, false)
	case ILike:
		return like(s, value, true)
	case Contains, NotContains:
		return containsFold(s, value)
	default:
		return s == value
	}
}

// containsFold is strings.Contains without case. It looks closer only where a
// byte can begin the first letter of sub in one of its cases. Where that comes
// to more than reading s a few times, it goes on with a search whose time is
// linear whatever the texts are: a query can be stopped only between records.
func containsFold(s, sub string) bool {
	if sub == "" {
		return true
	}
	var begins [256]bool
	begins[sub[0]] = true
	first, _ := letter(sub)
	for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
		var b [utf8.UTFMax]byte
		utf8.EncodeRune(b[:], r)
		begins[b[0]] = true
	}
	budget := 4*len(s) + len(sub)
	for i := range len(s) {
		if !begins[s[i]] {
			continue
		}
		n := commonFold(s[i:], sub)
		if n == len(sub) {
			return true
		}
		if budget -= n; budget < 0 {
			return containsFoldHashed(s[i:], sub)
		}
	}
	return false
}

// containsFoldHashed is containsFold by the method of Rabin and Karp: it looks
// closer only where the letters sum up to the same hash.
func containsFoldHashed(s, sub string) bool {
	const prime = 16777619
	var want, power uint32 = 0, 1
	missing := 0 // letters until the window is as long as sub
	for rest := sub; rest != ""; missing++ {
		r, n := letter(rest)
		want, power = want*prime+uint32(fold(r)), power*prime
		rest = rest[n:]
	}
	var hash uint32
	window := s
	for s != "" {
		r, n := letter(s)
		hash = hash*prime + uint32(fold(r))
		s = s[n:]
		if missing > 0 {
			missing--
		} else {
			r, n := letter(window)
			hash -= power * uint32(fold(r))
			window = window[n:]
		}
		if missing == 0 && hash == want && commonFold(window, sub) == len(sub) {
			return true
		}
	}
	return false
}

// commonFold is the length of the longest prefix of b with which a begins, but
// for case.
func commonFold(a, b string) int {
	i := 0
	for a != "" && i < len(b) {
		r, n := letter(a)
		q, m := letter(b[i:])
		if r != q && fold(r) != fold(q) {
			break
		}
		a, i = a[n:], i+m
	}
	return i
}

// like is SQL's LIKE: % stands for any text, _ for any letter, and a backslash
// takes the meaning from what follows it. On a mismatch the last % takes one
// letter more; no earlier one ever needs to.
func like(s, pattern string, ignoreCase bool) bool {
	var rest, again string
	percent := false
	for {
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
