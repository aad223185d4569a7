package transcript

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

type kind uint8

const (
	complete kind = iota // a value in one piece; there is no value while raw is empty
	text                 // a string from several pieces
	object               // members by key
	list                 // elements, in the order of their keys where these are numbers
)

// node is a JSON value that is assembled from pieces. Numbers, escapes and the order of keys stay
// as the provider wrote them.
type node struct {
	kind     kind
	raw      string // JSON of a complete value
	unquoted []byte // a text without its quotes
	members  []member
	byKey    map[string]*node // members by key, nil below mapMembers
}

type member struct {
	key  string
	rank int // the key of an element of a list as a number, or unranked
	node *node
}

const (
	// unranked is the rank of elements whose key is no number: they come last.
	unranked = math.MaxInt
	// mapMembers is the number of members from which on a node finds them by a map.
	mapMembers = 16
)

// ensure returns the member under key, and adds it if the node has none. A node that is neither
// an object nor a list becomes an object.
func (n *node) ensure(key string) *node {
	if m := n.get(key); m != nil {
		return m
	}
	if n.kind != list {
		n.setKind(object)
	}
	return n.insert(key)
}

// push returns a new last element of the list n.
func (n *node) push() *node { return n.insert("") }

func (n *node) insert(key string) *node {
	rank := unranked
	if n.kind == list && key != "" {
		if index, err := strconv.ParseUint(key, 10, 31); err == nil {
			rank = int(index)
		}
	}
	m := new(node)
	n.members = append(n.members, member{key, rank, m})
	if n.byKey == nil && len(n.members) == mapMembers {
		n.byKey = make(map[string]*node, 2*mapMembers)
		for _, m := range n.members {
			n.byKey[m.key] = m.node
		}
	}
	if n.byKey != nil {
		n.byKey[key] = m
	}
	return m
}

// get returns the newest member under key, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	if n.byKey != nil {
		return n.byKey[key]
	}
	for _, m := range slices.Backward(n.members) {
		if m.key == key {
			return m.node
		}
	}
	return nil
}

// last returns the newest member, or nil.
func (n *node) last() *node {
	if len(n.members) == 0 {
		return nil
	}
	return n.members[len(n.members)-1].node
}

// lastOf returns the newest member that has a type and is not complete, or nil.
func (n *node) lastOf(kind string) *node {
	for _, m := range slices.Backward(n.members) {
		if t := m.node.get("type"); t != nil && t.equals(`"`+kind+`"`) {
			return m.node
		}
	}
	return nil
}

// list is ensure for a member that is a list.
func (n *node) list(key string) *node {
	l := n.ensure(key)
	l.setKind(list)
	return l
}

// setKind makes n an empty node of kind k, unless n has that kind.
func (n *node) setKind(k kind) {
	if n.kind != k {
		*n = node{kind: k}
	}
}

// set replaces n with the complete value raw. An empty raw is no value.
func (n *node) set(raw string) { *n = node{raw: raw} }

// isEmpty reports whether n has no value.
func (n *node) isEmpty() bool { return n == nil || n.kind == complete && n.raw == "" }

// isBlank reports whether n is empty, null, "" or 0.
func (n *node) isBlank() bool {
	if n.isEmpty() {
		return true
	}
	return n.kind == complete && (n.raw == "null" || n.raw == `""` || n.raw == "0")
}

// remove empties the member under key.
func (n *node) remove(key string) {
	if m := n.get(key); m != nil {
		*m = node{}
	}
}

// rename changes the key of a member, and removes the member that had the new key.
func (n *node) rename(key, to string) {
	m := n.get(key)
	if m.isEmpty() {
		return
	}
	n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.key == to })
	for i := range n.members {
		if n.members[i].node == m {
			n.members[i].key = to
		}
	}
	if n.byKey != nil {
		n.byKey[to] = m
		delete(n.byKey, key)
	}
}

// join appends a JSON string to n if n is a string.
func (n *node) join(piece string) {
	switch {
	case n.isBlank():
		n.set(piece)
		return
	case n.kind == complete && n.raw[0] == '"':
		*n = node{kind: text, unquoted: append(make([]byte, 0, 256), unquote(n.raw)...)}
	case n.kind != text:
		return
	}
	n.unquoted = append(n.unquoted, unquote(piece)...)
}

// length is how many bytes of JSON a string or another value in one piece has.
func (n *node) length() int {
	if n.kind == text {
		return len(n.unquoted) + len(`""`)
	}
	return len(n.raw)
}

// equals reports whether n is the complete value raw.
func (n *node) equals(raw string) bool { return n.kind == complete && n.raw == raw }

// equalsText reports whether n is the JSON string raw, in one piece or several.
func (n *node) equalsText(raw string) bool {
	return n.equals(raw) || n.kind == text && len(n.unquoted)+2 == len(raw) && string(n.unquoted) == unquote(raw)
}

// unquote returns a JSON string without its quotes, with its escapes.
func unquote(raw string) string { return raw[1 : len(raw)-1] }

// parse replaces a string with the JSON in it, and an empty string with an empty object. Incomplete
// JSON stays a string.
func (n *node) parse() {
	decoded := gjson.ParseBytes(n.appendJSON(nil)).Str
	switch {
	case decoded == "":
		n.set("{}")
	case plugins.ValidNested([]byte(decoded), deepest):
		n.set(decoded)
	}
}

// appendJSON appends the JSON of n to b.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case complete:
		return append(b, n.raw...)
	case text:
		b = append(b, '"')
		b = append(b, n.unquoted...)
		return append(b, '"')
	case list:
		slices.SortStableFunc(n.members, func(a, b member) int { return cmp.Compare(a.rank, b.rank) })
		return append(n.appendMembers(append(b, '['), false), ']')
	default:
		return append(n.appendMembers(append(b, '{'), true), '}')
	}
}

func (n *node) appendMembers(b []byte, keyed bool) []byte {
	first := true
	for _, m := range n.members {
		if m.node.isEmpty() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		if keyed {
			b = append(gjson.AppendJSONString(b, m.key), ':')
		}
		b = m.node.appendJSON(b)
	}
	return b
}
