package transcript

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// Shape says how the pieces of a value join that the events of a stream bring. With the nil
// Shape, a value replaces the value before it. In every shape null replaces nothing.
type Shape struct {
	how    how
	fields Fields // shapes of an object's members
	find   find   // for a list, or for a string that can become a list of parts
	item   *Shape // the shape of the element that find returns
}

// Fields are the shapes of an object's members. One that is not named has the
// nil Shape.
type Fields map[string]*Shape

type how uint8

const (
	merge    how = iota // objects, field by field
	keep                // the first value that says something
	join                // strings, one after the other
	joinOnce            // as join, but ignores a piece that repeats the complete value
	collect             // lists, element by element
	replace             // the last value of a string that each event has
	drop                // padding, which is not stored
)

// find returns the element of list that the i-th item of a piece belongs to. If element is
// nil, the item is a new element under key, or at the end if key is empty. find changes
// nothing, and does not depend on the parts of the item that are joined or dropped.
type find func(list *node, item gjson.Result, i int) (element *node, key string)

// The shapes of values whose members have no shapes of their own.
var (
	// First is the first value that says something: not null, "" or 0.
	First = &Shape{how: keep}
	// Last is the last value of a string that each event has.
	Last = &Shape{how: replace}
	// Join is a string that comes in pieces.
	Join = &Shape{how: join}
	// Collect is a list to which each event adds its elements.
	Collect = &Shape{how: collect, find: appended, item: &Shape{how: merge}}
	// Merge is an object whose members replace those of the same name.
	Merge = &Shape{how: merge}
	// Drop is padding, which is not kept.
	Drop = &Shape{how: drop}

	// joinNames is Join, but ignores a piece that repeats the complete value.
	joinNames = &Shape{how: joinOnce}
)

// Object is an object whose members have shapes of their own.
func Object(f Fields) *Shape { return &Shape{how: merge, fields: f} }

// List is a list of objects. Pieces belong to the element with the same member "index", or
// else in the same position.
func List(f Fields) *Shape { return listOf(byIndex, f) }

func listOf(by find, f Fields) *Shape { return &Shape{how: collect, find: by, item: Object(f)} }

// add joins the next piece v to n as s says.
func (n *node) add(v gjson.Result, s *Shape) { n.learn(v, s, nil) }

// learn is add, and notes the gaps of v in t unless t is nil: texts that v lengthens, strings that
// v replaces, and padding. It returns false if v does more to n than that: then the gaps must not
// be used. It relies on find not to depend on a gap.
func (n *node) learn(v gjson.Result, s *Shape, t *template) (same bool) {
	switch {
	case v.Type == gjson.Null && !n.isEmpty():
		return true
	case s == nil:
		same = n.equals(v.Raw)
		n.set(v.Raw)
	case s.how == drop:
		if v.Type == gjson.String {
			t.gap(v, nil)
		}
		return true
	case s.how == replace:
		t.gap(v, n)
		same = n.kind == complete && v.Type == gjson.String
		n.set(v.Raw)
	case s.how == keep:
		if same = !n.isBlank(); !same {
			n.set(v.Raw)
		}
	case s.how == merge && v.IsObject():
		same = n.kind == object
		n.setKind(object)
		v.ForEach(func(key, value gjson.Result) bool {
			member := n.get(key.Str)
			if member == nil {
				same, member = false, n.ensure(key.Str)
			}
			same = member.learn(value, s.fields[key.Str], t) && same
			return true
		})
	case s.find != nil && v.IsArray():
		same = n.kind == list
		n.convertToParts()
		i := 0
		v.ForEach(func(_, item gjson.Result) bool {
			element, key := s.find(n, item, i)
			if element == nil {
				same, element = false, n.insert(key)
			}
			same = element.learn(item, s.item, t) && same
			i++
			return true
		})
	case s.how == join && s.find != nil && v.Type == gjson.String && n.kind == list:
		if part := textPart(v.Raw); v.Str != "" {
			s.element(n, part, 0).add(part, s.item)
		}
	case s.how == join && v.Type == gjson.String:
		t.gap(v, n)
		same = n.kind == text
		n.join(v.Raw)
	case s.how == joinOnce && n.equalsText(v.Raw):
		return n.equals(v.Raw)
	case s.how == joinOnce && v.Type == gjson.String:
		n.join(v.Raw)
	default:
		same = n.equals(v.Raw)
		n.set(v.Raw)
	}
	return same
}

// element returns what find finds, or the new element that find asks for.
func (s *Shape) element(list *node, item gjson.Result, i int) *node {
	element, key := s.find(list, item, i)
	if element == nil {
		return list.insert(key)
	}
	return element
}

// expand makes members of a complete object.
func (n *node) expand() {
	if n.kind == complete {
		n.add(gjson.Parse(n.raw), Merge)
	}
}

// convertToParts makes n a list. A text in n becomes the first part.
func (n *node) convertToParts() {
	if n.kind == list {
		return
	}
	var before string
	if n.kind == text || n.kind == complete && !n.isBlank() && n.raw[0] == '"' {
		before = string(n.appendJSON(nil))
	}
	n.setKind(list)
	if before != "" {
		n.push().add(textPart(before), Object(Fields{"text": Join}))
	}
}

func textPart(raw string) gjson.Result {
	return gjson.Parse(`{"type":"text","text":` + raw + `}`)
}

// appended makes each item an element of its own.
func appended(*node, gjson.Result, int) (*node, string) { return nil, "" }

// byIndex joins items of the same index, or of the same position if they have no index.
func byIndex(list *node, item gjson.Result, i int) (*node, string) {
	key := strconv.Itoa(i)
	if index := item.Get("index"); index.Type == gjson.Number {
		key = index.Raw
	}
	return list.get(key), key
}
