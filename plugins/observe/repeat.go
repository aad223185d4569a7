package observe

import (
	"cmp"
	"slices"

	"github.com/tidwall/gjson"
)

// Repeat finds the events of a stream that are like one before but for one text
// and some counts, as most are: nothing else of them needs to be read.
type Repeat struct{ template template }

// Learn makes event, which is valid JSON, the one that others are like but for
// text and the whole numbers anywhere in counts, which are values within it.
func (r *Repeat) Learn(event []byte, text, counts gjson.Result) {
	t := &r.template
	t.learn(true)
	t.gap(text.Index+1, text.Index+len(text.Raw)-1, false)
	t.counts(counts)
	slices.SortFunc(t.gaps, func(a, b gap) int { return cmp.Compare(a.start, b.start) })
	t.learned(event)
}

// counts notes the whole numbers of v, which has no more levels than events have.
func (t *template) counts(v gjson.Result) {
	v.ForEach(func(_, v gjson.Result) bool {
		if v.Type == gjson.JSON {
			t.counts(v)
		} else if v.Type == gjson.Number && digits([]byte(v.Raw)) == len(v.Raw) {
			t.gap(v.Index, v.Index+len(v.Raw), true)
		}
		return true
	})
}

// Text is the text of an event that is like the one learned, and false for any
// other, as for what is not valid JSON.
func (r *Repeat) Text(event []byte) (string, bool) {
	if !r.template.fits(event) {
		return "", false
	}
	for _, g := range r.template.gaps {
		if quoted := event[max(g.at-1, 0) : g.at+g.length+1]; !g.count && gjson.ValidBytes(quoted) {
			return gjson.ParseBytes(quoted).Str, true
		}
	}
	return "", false
}
