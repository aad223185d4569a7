package observe

import (
	"slices"
	"strings"
)

// Table says what the values of a dialect's JSON mean, by their paths: keys joined by dots,
// "#" for the elements of an array. The paths begin at the top of a body, of an event, or of
// an element of a stream that is one array.
type Table map[string]Field

// Under returns the table for an object at a path.
func (t Table) Under(path string) Table {
	moved := make(Table, len(t))
	for p, f := range t {
		moved[strings.TrimSuffix(path+"."+p, ".")] = f
	}
	return moved
}

// inParts returns the table with all fields marked as those of a Part.
func (t Table) inParts() Table {
	marked := make(Table, len(t))
	for p, f := range t {
		marked[p] = f | inPart
	}
	return marked
}

// node is one step of the paths of a table, compiled.
type node struct {
	key   string
	field Field
	elem  *node
	keys  []*node
	// lengths has bit n set if a key of n bytes is in keys: most keys of a document are in
	// no table, and are ruled out without a comparison.
	lengths uint64
}

// compile makes the root of all paths of the tables.
func compile(tables ...Table) *node {
	root := new(node)
	root.add(tables...)
	return root
}

// add adds the paths of tables. The later of two fields for a path counts.
func (n *node) add(tables ...Table) {
	for _, t := range tables {
		for path, f := range t {
			at := n
			for step := range strings.SplitSeq(path, ".") {
				at = at.step(step)
			}
			at.field = f
		}
	}
}

func (n *node) step(s string) *node {
	switch s {
	case "":
		return n
	case "#":
		if n.elem == nil {
			n.elem = new(node)
		}
		return n.elem
	}
	if i := slices.IndexFunc(n.keys, func(k *node) bool { return k.key == s }); i >= 0 {
		return n.keys[i]
	}
	child := &node{key: s}
	n.keys = append(n.keys, child)
	n.lengths |= 1 << len(s)
	return child
}

// child is the step to a member of an object, nil where the table has none.
func (n *node) child(key []byte) *node {
	if n.lengths>>len(key)&1 == 0 {
		return nil
	}
	for _, k := range n.keys {
		if k.key == string(key) {
			return k
		}
	}
	return nil
}
