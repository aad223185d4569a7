package transcript

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// template is an event that only lengthened texts. An event that repeats it but for these
// texts has the same effect. A gap means the text that it lengthens or the value that it
// replaces, nil if the gap is padding.
type template struct{ streams.Template[*node] }

// take does with an event what the template did, if it is like it.
func (t *template) take(event []byte) bool {
	if !t.FitsValid(event) {
		return false
	}
	gaps := t.Gaps()
	for i := range gaps {
		switch n, piece := gaps[i].Meaning, gaps[i].Quoted(event); {
		case n == nil:
		case n.kind == text:
			n.join(plugins.View(piece))
		default:
			n.set(plugins.View(piece))
		}
	}
	return true
}

// add joins v, which is part of e, to n as s says. If that only lengthens texts, e becomes
// the template of the events after it. Those may differ in v, and in the strings and numbers
// under the keys beside, which have no effect.
func (e event) add(n *node, v gjson.Result, s *Shape, beside ...string) {
	t := e.template
	if t == nil {
		n.add(v, s)
		return
	}
	t.Reset()
	if !t.learn(n, v, s) {
		t.Reset()
		n.add(v, s)
		return
	}
	for _, key := range beside {
		t.GapAt(e.Get(key), nil)
	}
	t.Learn(e.data)
	n.add(v, s)
}

// learn notes the gaps of v. It returns false if adding v to n does more than fill the gaps:
// then they must not be used. learn mirrors node.add, and relies on find not to depend on a
// gap.
func (t *template) learn(n *node, v gjson.Result, s *Shape) bool {
	switch {
	case n == nil:
		return false
	case v.Type == gjson.Null && !n.none():
		return true
	case s == nil:
	case s.how == drop:
		if v.Type == gjson.String {
			t.GapAt(v, nil)
		}
		return true
	case s.how == replace:
		t.GapAt(v, n)
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
		t.GapAt(v, n)
		return n.kind == text
	}
	return n.kind == whole && n.raw == v.Raw
}
