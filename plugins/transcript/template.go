package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// template is an event that only lengthened texts. An event that differs from it
// only in these texts, as most of a stream do, has the same effect: only its pieces
// of the texts need to be read and validated.
type template struct {
	raw  string // none while empty
	gaps []gap
}

// gap is a string that may differ, or a count.
type gap struct {
	start, end int    // in the template, of the inside of a string
	count      bool   // which is padding
	node       *node  // the text that it lengthens or value that it replaces, nil where it is padding
	piece      string // with its quotes, of the event under way
}

// take does with an event what the template did, if it is like it.
func (t *template) take(event string) bool {
	if t.raw == "" {
		return false
	}
	from, at := 0, 0 // the ends of what is compared
	for i := range t.gaps {
		g := &t.gaps[i]
		before := t.raw[from:g.start]
		if !strings.HasPrefix(event[at:], before) {
			return false
		}
		at += len(before)
		var n int
		if g.count {
			n = countLength(event[at:])
		} else if n = insideLength(event[at:]); n >= 0 {
			g.piece = event[at-1 : at+n+1]
		}
		if n < 0 {
			return false
		}
		from, at = g.end, at+n
	}
	if event[at:] != t.raw[from:] {
		return false
	}
	for _, g := range t.gaps {
		switch {
		case g.node == nil:
		case g.node.kind == text:
			g.node.join(g.piece)
		default:
			g.node.set(g.piece)
		}
	}
	return true
}

// insideLength is how long the inside of a JSON string is, at which s begins,
// and -1 where it is not valid or has no end.
func insideLength(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i
		case c < ' ':
			return -1
		case c == '\\':
			_, n, valid := plugins.Unescape(s[i:])
			if !valid && n != len(`\ud800`) { // half a surrogate pair is JSON
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// countLength is how long the whole number is at which s begins, and -1 where
// there is none.
func countLength(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if n == 0 || n > 1 && s[0] == '0' {
		return -1
	}
	return n
}

// add joins v, which is part of e, to n as s says. If that only lengthens texts, e
// becomes the template of the events after it. These may differ from it in v, and
// in the strings and numbers under the keys beside, which have no effect.
func (e event) add(n *node, v gjson.Result, s *Shape, beside ...string) {
	t := e.template
	if t == nil {
		n.add(v, s)
		return
	}
	t.gaps = t.gaps[:0]
	if !t.learn(n, v, s) {
		n.add(v, s)
		return
	}
	for _, key := range beside {
		if v := e.Get(key); v.Type == gjson.String {
			t.gap(nil, v)
		} else if v.Type == gjson.Number && countLength(v.Raw) == len(v.Raw) {
			t.gaps = append(t.gaps, gap{start: v.Index, end: v.Index + len(v.Raw), count: true})
		}
	}
	slices.SortFunc(t.gaps, func(a, b gap) int { return cmp.Compare(a.start, b.start) })
	t.raw = e.Raw
	t.take(e.Raw)
}

// forget makes t a template of nothing, and keeps only its room.
func (t *template) forget() {
	clear(t.gaps[:cap(t.gaps)])
	t.raw, t.gaps = "", t.gaps[:0]
}

// learn notes the gaps of v. It returns false if adding v to n does more than fill
// them: then the gaps must not be used. It mirrors node.add, and relies on a find
// not to depend on a gap.
func (t *template) learn(n *node, v gjson.Result, s *Shape) bool {
	switch {
	case n == nil:
		return false
	case v.Type == gjson.Null && !n.none():
		return true
	case s == nil:
	case s.how == drop:
		if v.Type == gjson.String {
			t.gap(nil, v)
		}
		return true
	case s.how == replace:
		t.gap(n, v)
		return n.kind == whole && v.Type == gjson.String
	case s.how == keep:
		return !n.blank()
	case s.how == merge && v.IsObject():
		same := n.kind == object
		v.ForEach(func(key, value gjson.Result) bool {
			same = same && t.learn(n.get(key.Str), value, s.fields[key.Str])
			return same
		})
		return same
	case s.find != nil && v.IsArray():
		same, i := n.kind == list, 0
		v.ForEach(func(_, item gjson.Result) bool {
			if same {
				element, _ := s.find(n, item, i)
				same = t.learn(element, item, s.item)
			}
			i++
			return same
		})
		return same
	case s.how == join && v.Type == gjson.String:
		t.gap(n, v)
		return n.kind == text
	}
	return n.kind == whole && n.raw == v.Raw
}

func (t *template) gap(n *node, v gjson.Result) {
	t.gaps = append(t.gaps, gap{start: v.Index + 1, end: v.Index + len(v.Raw) - 1, node: n})
}
