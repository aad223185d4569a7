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
	whole  kind = iota // a value that came in one piece; there is no value yet while raw is empty
	text               // a string that came in several pieces
	object             // members by their keys
	list               // elements, in the order of their keys where these are numbers
)

// node is a JSON value that is put together from pieces. Numbers, escapes and the order of
// keys stay as the provider wrote them.
type node struct {
	kind    kind
	raw     string // JSON of a whole
	inside  []byte // a text between its quotes
	members []member
	byKey   map[string]*node // members by key, nil while they are few
}

type member struct {
	key  string
	rank int // the key of an element as a number
	node *node
}

const (
	// unranked is the rank of elements without a number, which come last.
	unranked = math.MaxInt
	// many members are found by a map, fewer by looking through them.
	many = 16
)

// at returns the member under key, a new one if the node had none. A node that is neither an
// object nor a list becomes an object.
func (n *node) at(key string) *node {
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
	if n.byKey == nil && len(n.members) == many {
		n.byKey = make(map[string]*node, 2*many)
		for _, m := range n.members {
			n.byKey[m.key] = m.node
		}
	}
	if n.byKey != nil {
		n.byKey[key] = m
	}
	return m
}

// get returns the member under key, nil if there is none.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	if n.byKey != nil {
		return n.byKey[key]
	}
	for _, m := range n.members {
		if m.key == key {
			return m.node
		}
	}
	return nil
}

// last returns the newest member, nil if there is none.
func (n *node) last() *node {
	if len(n.members) == 0 {
		return nil
	}
	return n.members[len(n.members)-1].node
}

// list returns the member under key, which becomes a list.
func (n *node) list(key string) *node {
	l := n.at(key)
	l.setKind(list)
	return l
}

// setKind makes n an empty node of kind k, unless n has that kind.
func (n *node) setKind(k kind) {
	if n.kind != k {
		*n = node{kind: k}
	}
}

// set makes n the whole value raw. An empty raw is no value.
func (n *node) set(raw string) { *n = node{raw: raw} }

// none reports whether nothing was put into n.
func (n *node) none() bool { return n == nil || n.kind == whole && n.raw == "" }

// blank reports whether n is nothing, null, "" or 0.
func (n *node) blank() bool {
	if n.none() {
		return true
	}
	return n.kind == whole && (n.raw == "null" || n.raw == `""` || n.raw == "0")
}

// remove takes the member under key out of n.
func (n *node) remove(key string) {
	if m := n.get(key); m != nil {
		*m = node{}
	}
}

// rename gives the member under key the name to. A member of that name is removed.
func (n *node) rename(key, to string) {
	m := n.get(key)
	if m.none() {
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

// join appends a string, given as JSON, to n if n is a string.
func (n *node) join(piece string) {
	switch {
	case n.blank():
		n.set(piece)
		return
	case n.kind == whole && n.raw[0] == '"':
		*n = node{kind: text, inside: append(make([]byte, 0, 256), unquote(n.raw)...)}
	case n.kind != text:
		return
	}
	n.inside = append(n.inside, unquote(piece)...)
}

// is reports whether n is the whole value raw.
func (n *node) is(raw string) bool { return n.kind == whole && n.raw == raw }

// repeats reports whether n is the string raw.
func (n *node) repeats(raw string) bool {
	return n.is(raw) || n.kind == text && len(n.inside)+2 == len(raw) && string(n.inside) == unquote(raw)
}

// unquote returns a JSON string without its quotes. Escapes stay.
func unquote(raw string) string { return raw[1 : len(raw)-1] }

// parse replaces a string with the JSON in it, and an empty string with an empty object.
// JSON that was cut stays a string.
func (n *node) parse() {
	decoded := gjson.ParseBytes(n.appendJSON(nil)).Str
	switch {
	case decoded == "":
		n.set("{}")
	case plugins.ValidNested([]byte(decoded), deepest):
		n.set(decoded)
	}
}

// appendJSON appends n to b.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case whole:
		return append(b, n.raw...)
	case text:
		b = append(b, '"')
		b = append(b, n.inside...)
		return append(b, '"')
	case list:
		slices.SortStableFunc(n.members, func(a, b member) int { return cmp.Compare(a.rank, b.rank) })
		return append(n.appendMembers(append(b, '['), false), ']')
	default:
		return append(n.appendMembers(append(b, '{'), true), '}')
	}
}

func (n *node) appendMembers(b []byte, keyed bool) []byte {
	separate := false
	for _, m := range n.members {
		if m.node.none() {
			continue
		}
		if separate {
			b = append(b, ',')
		}
		separate = true
		if keyed {
			b = append(gjson.AppendJSONString(b, m.key), ':')
		}
		b = m.node.appendJSON(b)
	}
	return b
}
