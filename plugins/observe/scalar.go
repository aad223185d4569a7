package observe

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// maxText is how much is kept of a string or number, in bytes.
const maxText = 256

// string reads or skips a string up to its closing quote.
func (s *scanner) string(p []byte, i int) int {
	end, closed := s.closingQuote(p, i)
	if s.state == skipText {
		s.hash(p[i:end], s.skipped == 0)
		if !closed {
			return len(p)
		}
		if s.skipped > 0 {
			s.state = skipContainer
		} else {
			s.template.gap(i, end, false)
			s.endValue(false)
		}
		return end + 1
	}
	if !closed {
		s.keep(p[i:])
		return len(p)
	}
	raw := s.join(p[i:end])
	next := end + 1
	if s.state == inKey {
		s.state, s.next = atColon, s.member(raw)
		if next < len(p) && p[next] == ':' {
			s.state = atValue
			next++
		}
	} else {
		if s.next.field == Content {
			s.template.gap(i, end, false)
		}
		s.visit(text, s.unescape(raw))
		s.endValue(false)
	}
	s.pending = s.pending[:0]
	return next
}

// closingQuote finds the quote that ends the string which p[i:] continues: the
// first one that an even number of backslashes precedes.
func (s *scanner) closingQuote(p []byte, i int) (end int, closed bool) {
	for {
		end = len(p)
		quote := bytes.IndexByte(p[i:], '"')
		if quote > 0 && p[i+quote-1] != '\\' {
			s.escaped = false
			return i + quote, true
		}
		if quote >= 0 {
			end = i + quote
		}
		run := end
		for run > i && p[run-1] == '\\' {
			run--
		}
		odd := (end-run)&1 == 1
		if run == i && s.escaped {
			odd = !odd
		}
		s.escaped = odd && quote < 0
		if quote < 0 || !odd {
			return end, quote >= 0
		}
		i = end + 1
	}
}

// literal reads or skips a number, true, false, null, or what is in the place of
// one.
func (s *scanner) literal(p []byte, i int) int {
	end := i
	for end < len(p) && !delimiter[p[end]] {
		end++
	}
	if s.state == inLiteral {
		if end == len(p) {
			s.keep(p[i:])
			return end
		}
		raw := s.join(p[i:end])
		raw = raw[:min(len(raw), maxText)]
		k := number
		switch raw[0] {
		case 't', 'f':
			k = boolean
		case 'n':
			k = null
		}
		s.visit(k, raw)
		s.pending = s.pending[:0]
	} else {
		s.hash(p[i:end], false)
		if streams.Digits(p[i:end]) == end-i {
			s.template.gap(i, end, true)
		}
	}
	if end < len(p) {
		s.endValue(false)
	}
	return end
}

func (s *scanner) keep(b []byte) {
	s.pending = append(s.pending, b[:min(len(b), maxRaw-len(s.pending))]...)
}

func (s *scanner) join(b []byte) []byte {
	if len(s.pending) == 0 {
		return b[:min(len(b), maxRaw)]
	}
	s.keep(b)
	return s.pending
}

var space, delimiter [256]bool

// unescape is the text of a JSON string (RFC 8259, section 7), cut to maxText at a
// character. What is no escape is copied.
func (s *scanner) unescape(raw []byte) []byte {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return truncate(raw)
	}
	out := append(slices.Grow(s.decoded[:0], maxText+utf8.UTFMax), raw[:i]...)
	for i < len(raw) && len(out) <= maxText {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		r, n, _ := plugins.Unescape(raw[i:])
		if n == 0 {
			n = 2 // whatever follows is no digits
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	s.decoded = out
	return truncate(out)
}

// truncate cuts b to maxText, between two characters if it is UTF-8.
func truncate(b []byte) []byte {
	if len(b) <= maxText {
		return b
	}
	for cut := maxText; cut > maxText-utf8.UTFMax; cut-- {
		if utf8.RuneStart(b[cut]) {
			return b[:cut]
		}
	}
	return b[:maxText]
}
