package streams

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Template is an event that most others of its stream repeat, except in a few places, its
// gaps. Of an event that fits the template, only the gaps need to be read. T is the meaning
// of a gap to the caller.
type Template[T any] struct {
	event []byte // empty until an event was learned
	gaps  []Gap[T]
}

// Gap is a part in which events may differ from their template: the inside of a string, or
// a whole number.
type Gap[T any] struct {
	Meaning T

	start, end int // in the template
	isNumber   bool
	at, length int // in the event that fitted last
}

// Reset makes an empty template.
func (t *Template[T]) Reset() {
	clear(t.gaps)
	t.event, t.gaps = t.event[:0], t.gaps[:0]
}

// Gap notes a gap of the event that will be learned.
func (t *Template[T]) Gap(start, end int, isNumber bool, meaning T) {
	t.gaps = append(t.gaps, Gap[T]{Meaning: meaning, start: start, end: end, isNumber: isNumber})
}

// GapAt notes a value of the event that will be learned, if it is a string or a whole
// number.
func (t *Template[T]) GapAt(v gjson.Result, meaning T) {
	switch {
	case v.Type == gjson.String:
		t.Gap(v.Index+1, v.Index+len(v.Raw)-1, false, meaning)
	case v.Type == gjson.Number && Digits([]byte(v.Raw)) == len(v.Raw):
		t.Gap(v.Index, v.Index+len(v.Raw), true, meaning)
	}
}

// maxTemplate bounds the length of a template, in bytes. Events that repeat are shorter.
const maxTemplate = 16 << 10

// Learn makes event, which has the gaps, the template.
func (t *Template[T]) Learn(event []byte) {
	if len(event) > maxTemplate {
		t.Reset()
		return
	}
	slices.SortFunc(t.gaps, func(a, b Gap[T]) int { return cmp.Compare(a.start, b.start) })
	t.event = append(t.event[:0], event...)
}

// Gaps are those of the template, which Fits has found in an event.
func (t *Template[T]) Gaps() []Gap[T] { return t.gaps }

// Quoted returns the string of the event that fitted last, nil for a number.
func (g *Gap[T]) Quoted(event []byte) []byte {
	if g.isNumber {
		return nil
	}
	return event[g.at-1 : g.at+g.length+1]
}

// Fits reports whether an event repeats the template. What is in its strings may be
// invalid.
func (t *Template[T]) Fits(event []byte) bool { return t.fits(event, closingQuote) }

// FitsValid reports whether an event repeats the template and is valid JSON.
func (t *Template[T]) FitsValid(event []byte) bool { return t.fits(event, validInside) }

// fits compares an event with the template. inside returns the length of the inside of a
// string, -1 for none.
func (t *Template[T]) fits(event []byte, inside func([]byte) int) bool {
	if len(t.event) == 0 {
		return false
	}
	from, at := 0, 0 // in the template, and in the event
	for i := range t.gaps {
		g := &t.gaps[i]
		rest, ok := bytes.CutPrefix(event[at:], t.event[from:g.start])
		if !ok {
			return false
		}
		if g.isNumber {
			g.length = Digits(rest)
		} else {
			g.length = inside(rest)
		}
		if g.length < 0 {
			return false
		}
		g.at = len(event) - len(rest)
		from, at = g.end, g.at+g.length
	}
	return bytes.Equal(event[at:], t.event[from:])
}

// validInside is closingQuote, but -1 also for a string that is not valid.
func validInside(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i
		case c < ' ':
			return -1
		case c == '\\':
			_, n, valid := plugins.Unescape(b[i:])
			if !valid && n != len(`\ud800`) { // half a surrogate pair is JSON
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// closingQuote returns the length of the inside of a string that b begins with, -1 if the
// string has no end: the first quote after an even number of backslashes.
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

// Digits returns the length of the whole number that b begins with, -1 if there is none.
func Digits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	if n == 0 || n > 1 && b[0] == '0' {
		return -1
	}
	return n
}

// Repeat finds the events of a stream that repeat one before but for one text and some
// counts.
type Repeat struct{ template Template[struct{}] }

// Learn makes event, which is valid JSON, the one that others repeat but for text and the
// whole numbers in counts, which are values within it.
func (r *Repeat) Learn(event []byte, text, counts gjson.Result) {
	r.template.Reset()
	r.template.GapAt(text, struct{}{})
	r.counts(counts)
	r.template.Learn(event)
}

// counts notes the whole numbers of v, which has no more levels than events have.
func (r *Repeat) counts(v gjson.Result) {
	v.ForEach(func(_, v gjson.Result) bool {
		switch v.Type {
		case gjson.JSON:
			r.counts(v)
		case gjson.Number:
			r.template.GapAt(v, struct{}{})
		}
		return true
	})
}

// Text returns the text of an event that repeats the one learned, false for any other.
func (r *Repeat) Text(event []byte) (string, bool) {
	if !r.template.FitsValid(event) {
		return "", false
	}
	for i := range r.template.gaps {
		if quoted := r.template.gaps[i].Quoted(event); quoted != nil {
			return plugins.Text(gjson.ParseBytes(quoted)), true
		}
	}
	return "", false
}
