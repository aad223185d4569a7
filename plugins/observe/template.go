package observe

import "bytes"

// template is an event that changes nothing if it is read again. An event that
// differs from it only in its gaps, as most of a stream do, need not be read.
type template struct {
	raw  []byte // none while empty
	gaps []gap

	// learning is true while an event is read that may become the template.
	learning bool
}

// gap is a part of the template that may differ without telling anything but that
// there is content:
// the inside of a string, or a whole number.
type gap struct {
	start, end int
	count      bool
	// at is where the gap was in the event that fitted last, and length how long it
	// was.
	at, length int
}

// maxGaps is more than the gaps of any event that repeats in streams.
const maxGaps = 12

// fits reports whether an event repeats the template.
func (t *template) fits(event []byte) bool {
	if len(t.raw) == 0 {
		return false
	}
	from, at := 0, 0 // in the template, and in the event
	for i := range t.gaps {
		g := &t.gaps[i]
		rest, ok := bytes.CutPrefix(event[at:], t.raw[from:g.start])
		if !ok {
			return false
		}
		if g.count {
			g.length = digits(rest)
		} else {
			g.length = closingQuote(rest)
		}
		if g.length < 0 {
			return false
		}
		g.at = len(event) - len(rest)
		from, at = g.end, g.at+g.length
	}
	return bytes.Equal(event[at:], t.raw[from:])
}

// learn begins to read data, which may be an event's first.
func (t *template) learn(first bool) {
	t.raw, t.gaps, t.learning = t.raw[:0], t.gaps[:0], first
}

// gap notes one of the event under way.
func (t *template) gap(start, end int, count bool) {
	if len(t.gaps) == maxGaps {
		t.learning = false
	}
	if t.learning {
		t.gaps = append(t.gaps, gap{start: start, end: end, count: count})
	}
}

// learned makes the event the template, unless it has told something.
func (t *template) learned(event []byte) {
	if t.learning {
		t.raw = append(t.raw, event...)
	}
}

// closingQuote is where the string ends whose inside b begins with, -1 where it
// does not: at the first quote that an even number of backslashes precedes.
func closingQuote(b []byte) int {
	for from := 0; ; {
		quote := bytes.IndexByte(b[from:], '"')
		if quote < 0 {
			return -1
		}
		quote += from
		run := quote
		for run > 0 && b[run-1] == '\\' {
			run--
		}
		if (quote-run)&1 == 0 {
			return quote
		}
		from = quote + 1
	}
}

// digits is how many of them the whole number has that b begins with, -1 where it
// does not.
func digits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	if n == 0 || n > 1 && b[0] == '0' {
		return -1
	}
	return n
}
