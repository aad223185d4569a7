package storage

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// TextMatcher is the test that a text operator and its value make of one text.
// Where an operator ignores case (ilike, contains, not-contains), two letters
// are the same by Unicode's simple folding: ſ, S and s are the same letter, İ has no
// other case.
//
// When p is over, the answer is worthless.
func TextMatcher(op Operator, value string, p *CancelCheck) func(string) bool {
	return func(s string) bool { return op.holds(s, value, p) != op.Negative() }
}

// Negative is true for the operators which hold when nothing matches.
func (o Operator) Negative() bool { return o == NotEquals || o == NotContains }

// holds reports whether s matches value by a text operator; for a negative one,
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
// letter of its own, which equals no other byte's letter.
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

// containsFold is strings.Contains without case. It looks closer only where the
// rarest letter of sub stands. If this takes more time than reading s a few times, it
// goes on with a search that takes linear time, whatever the texts are.
func containsFold(s, sub string, p *CancelCheck) bool {
	if sub == "" {
		return true
	}
	if rarest, ok := rarestASCII(sub); ok {
		return containsFoldASCII(s, sub, rarest, p)
	}
	return containsFoldUnicode(s, sub, p)
}

// commonASCII is what English in JSON has most of, the most common first. All else
// is rarer.
const commonASCII = ` etaoinsrhldcu"mfpgwyb.,vk:-0{}1/\_2`

// rarestASCII finds the letter of a text in ASCII that is likely to be the rarest. It
// leaves out K and S, because other alphabets have a case of them. ok is false where
// there is no letter, or where the text is not in ASCII.
func rarestASCII(text string) (place int, ok bool) {
	rarest := -1
	for i := range len(text) {
		c := lower(text[i])
		if c >= utf8.RuneSelf {
			return 0, false
		}
		if c == 'k' || c == 's' {
			continue
		}
		if rank := asciiRank[c]; rank > rarest {
			rarest, place = rank, i
		}
	}
	return place, rarest >= 0
}

var asciiRank = func() (ranks [utf8.RuneSelf]int) {
	for c := range ranks {
		ranks[c] = indexFrom(commonASCII, byte(c), 0)
	}
	return ranks
}()

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// containsFoldASCII looks for a text in ASCII by the letter at a place of the text. The
// letter must have no more than two cases.
func containsFoldASCII(s, sub string, place int, p *CancelCheck) bool {
	small := lower(sub[place])
	capital := small
	budget := 4*len(s) + len(sub)
	nextSmall, nextCapital := indexFrom(s, small, 0), len(s)
	if 'a' <= small && small <= 'z' {
		capital -= 'a' - 'A'
		nextCapital = indexFrom(s, capital, 0)
	}
	for {
		at := min(nextSmall, nextCapital)
		if at == len(s) {
			return false
		}
		n := commonFold(s[at:], sub[place:])
		if n == len(sub)-place {
			m := commonFoldBefore(s[:at], sub[:place])
			if m == place {
				return true
			}
			n += m
		}
		if p.over(1 + n) {
			return false
		}
		if budget -= n; budget < 0 {
			return containsFoldHashed(s, sub, p)
		}
		if at == nextSmall {
			nextSmall = indexFrom(s, small, at+1)
		} else {
			nextCapital = indexFrom(s, capital, at+1)
		}
	}
}

// indexFrom is where c stands in s at or after from, len(s) if it does not.
func indexFrom(s string, c byte, from int) int {
	if i := strings.IndexByte(s[from:], c); i >= 0 {
		return from + i
	}
	return len(s)
}

// containsFoldUnicode is containsFold for any letters. It looks closer where a
// byte can begin the first letter of sub in one of its cases.
func containsFoldUnicode(s, sub string, p *CancelCheck) bool {
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
		if p.over(1 + n) {
			return false
		}
		if budget -= n; budget < 0 {
			return containsFoldHashed(s[i:], sub, p)
		}
	}
	return false
}

// containsFoldHashed is containsFold by the method of Rabin and Karp: it looks
// closer only where the letters sum up to the same hash.
func containsFoldHashed(s, sub string, p *CancelCheck) bool {
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
	for s != "" && !p.over(1) {
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
		if a[0] < utf8.RuneSelf && b[i] < utf8.RuneSelf {
			if lower(a[0]) != lower(b[i]) {
				break
			}
			a, i = a[1:], i+1
			continue
		}
		r, n := letter(a)
		q, m := letter(b[i:])
		if r != q && fold(r) != fold(q) {
			break
		}
		a, i = a[n:], i+m
	}
	return i
}

// commonFoldBefore is the length of the longest suffix of b, a text in ASCII,
// with which a ends, but for case.
func commonFoldBefore(a, b string) int {
	n := 0
	for a != "" && n < len(b) {
		if last := a[len(a)-1]; last < utf8.RuneSelf {
			if lower(last) != lower(b[len(b)-1-n]) {
				break
			}
			a, n = a[:len(a)-1], n+1
			continue
		}
		r, width := utf8.DecodeLastRuneInString(a)
		if fold(r) != fold(rune(b[len(b)-1-n])) {
			break
		}
		a, n = a[:len(a)-width], n+1
	}
	return n
}
