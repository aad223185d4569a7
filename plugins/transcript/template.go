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
	if !n.learn(v, s, t) {
		t.Reset()
		return
	}
	for _, key := range beside {
		t.GapAt(e.Get(key), nil)
	}
	t.Learn(e.data)
}

// gap notes that events may differ in v, which lengthens or replaces n, or is padding if n is nil.
func (t *template) gap(v gjson.Result, n *node) {
	if t != nil {
		t.GapAt(v, n)
	}
}
