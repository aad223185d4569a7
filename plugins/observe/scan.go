package observe

import "bytes"

// kind is the type of a JSON value.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	object
	array
)

// value is a value at a path of the scanner's table: a scalar that was read, or an object or
// array that opens.
type value struct {
	kind kind
	// bytes is a string without its escapes, any other scalar as it is, cut to
	// maxText. It is valid until the visitor returns.
	bytes []byte
	// key is the last step of the path, "" for an element of an array.
	key string
	// index is the position of the enclosing object in its array, 0 outside.
	index int32
}

// visitor gets the values that a scanner reads.
type visitor interface {
	value(f Field, v value)
	// endEvent follows each top-level value, and each element of a top-level array: a Gemini
	// stream without server-sent events is one array.
	endEvent()
	// endDocument follows a top-level value.
	endDocument()
}

// scanner reads JSON in pieces of any size, and passes the values that a table names to its
// visitor. Of the rest it keeps nothing but the beginning of a key or named scalar that a
// chunk cut. Its memory is the same at any depth. After broken JSON it reads nothing until
// the next reset.
type scanner struct {
	to       visitor
	root     *node
	template template
	outline  *outliner // nil if a response is read

	state  state
	next   *node // the table's node for the value ahead, nil if the table has none
	depth  int
	frames [maxDepth]frame

	skipped int    // containers open within a value that no path leads into
	escaped bool   // the string so far ends in an unfinished escape
	pending []byte // what earlier chunks held of the key or scalar
	decoded []byte
}

// maxDepth is more than the steps of the longest path of any table.
const maxDepth = 16

// frame is a container that paths lead into.
type frame struct {
	node  *node // whose keys count in an object, or what the elements of an array are
	index int32
	array bool
}

type state uint8

const (
	atValue state = iota
	atKey
	atColon
	atComma
	inKey
	inText
	inLiteral
	skipText
	skipLiteral
	skipContainer
	broken
)

func (s *scanner) reset() {
	s.state, s.next, s.depth = atValue, s.root, 0
	s.skipped, s.escaped, s.pending = 0, false, s.pending[:0]
}

// emptied returns an empty scanner with the memory of s.
func (s *scanner) emptied() scanner {
	e := scanner{pending: s.pending[:0], decoded: s.decoded[:0], template: s.template}
	e.template.learn(false)
	return e
}

// between reports whether the scanner is outside of top-level values.
func (s *scanner) between() bool { return s.depth == 0 && s.state == atValue }

// finish ends a top-level number: only the end of input does.
func (s *scanner) finish() {
	if s.depth == 0 && (s.state == inLiteral || s.state == skipLiteral) {
		s.write([]byte{'\n'})
	}
}

// write reads the next piece.
func (s *scanner) write(p []byte) {
	for i := 0; i < len(p); {
		switch s.state {
		case inKey, inText, skipText:
			i = s.string(p, i)
		case inLiteral, skipLiteral:
			i = s.literal(p, i)
		case skipContainer:
			i = s.skip(p, i)
		case broken:
			return
		default:
			i = s.token(p, i)
		}
	}
}

// token reads the structure of the containers that paths lead into.
func (s *scanner) token(p []byte, i int) int {
	c := p[i]
	switch {
	case space[c]:
	case s.state == atValue:
		return s.begin(p, i)
	case s.state == atComma && c == ',':
		f := &s.frames[s.depth-1]
		if f.array {
			f.index++
			s.state, s.next = atValue, f.node
			break
		}
		s.state = atKey
		// Providers write no space here: two steps in one.
		if i+1 < len(p) && p[i+1] == '"' {
			s.state = inKey
			return i + 2
		}
	case s.state == atKey && c == '"':
		s.state = inKey
	case s.state == atColon && c == ':':
		s.state = atValue
	case s.state == atComma && c == ']':
		s.leave(true)
	case s.state != atColon && c == '}':
		s.leave(false)
	default:
		s.state = broken
	}
	return i + 1
}

// begin reads a value, or the first of it.
func (s *scanner) begin(p []byte, i int) int {
	named := s.next != nil && s.next.field != none
	if named && s.next.field.isPart() {
		s.outline.begin(s.next.field, p[i], s.depth)
		named = false
	}
	switch c := p[i]; c {
	case '"':
		s.state = skipText
		if named {
			s.state = inText
		}
		if i++; i < len(p) {
			return s.string(p, i)
		}
		return i
	case '{', '[':
		if named {
			k := object
			if c == '[' {
				k = array
			}
			s.visit(k, nil)
		}
		s.enter(c == '[')
	case ']':
		s.leave(true)
	case '}', ',', ':':
		s.state = broken
	default:
		s.state = skipLiteral
		if named {
			s.state = inLiteral
		}
		return s.literal(p, i)
	}
	return i + 1
}

// enter opens a container, to be read if paths lead into it.
func (s *scanner) enter(isArray bool) {
	n := s.next
	if n != nil && isArray && s.depth > 0 {
		n = n.elem
	}
	if n == nil || (!isArray && len(n.keys) == 0) {
		s.state, s.skipped = skipContainer, 1
		return
	}
	s.frames[s.depth] = frame{node: n, array: isArray}
	s.depth++
	s.state, s.next = atKey, nil
	if isArray {
		s.state, s.next = atValue, n
	}
}

// leave closes the innermost container.
func (s *scanner) leave(isArray bool) {
	if s.depth == 0 || s.frames[s.depth-1].array != isArray {
		s.state = broken
		return
	}
	s.depth--
	s.endValue(isArray)
}

// endValue follows every value.
func (s *scanner) endValue(isArray bool) {
	s.state = atComma
	if s.outline != nil {
		s.outline.ended(s.depth)
	}
	switch {
	case s.depth == 0:
		s.state, s.next = atValue, s.root
		if !isArray {
			s.to.endEvent()
		}
		s.to.endDocument()
	case s.depth == 1 && s.frames[0].array:
		s.to.endEvent()
	}
}

// member returns the node of the table for a key.
func (s *scanner) member(raw []byte) *node {
	n := s.frames[s.depth-1].node
	if child := n.child(raw); child != nil || bytes.IndexByte(raw, '\\') < 0 {
		return child
	}
	return n.child(s.unescape(raw))
}

func (s *scanner) visit(k kind, b []byte) {
	v := value{kind: k, bytes: b, key: s.next.key}
	if d := s.depth - 2; d > 0 && s.frames[d].array {
		v.index = s.frames[d].index
	}
	s.to.value(s.next.field, v)
}

// rebase continues the event with another table, from the top-level member
// that is being visited, or from the next one.
func (s *scanner) rebase(root *node, key string) *node {
	s.root = root
	top := 0
	if s.frames[0].array {
		s.frames[0].node = root
		top = 1
	}
	s.frames[top].node = root
	if s.depth == top+1 {
		s.next = root.child([]byte(key))
		return s.next
	}
	return nil
}

// maxRaw bytes of a string with escapes decode to maxText at least: the longest
// escape of the shortest character is \u0041.
const maxRaw = 6 * maxText

// skip reads a container that no path leads into.
func (s *scanner) skip(p []byte, i int) int {
	for from := i; ; i++ {
		if i == len(p) {
			s.hash(p[from:], false)
			return i
		}
		switch structure[p[i]] {
		case 0:
		case '"':
			s.hash(p[from:i+1], false)
			s.state = skipText
			return i + 1
		case '{':
			s.skipped++
		case '}':
			s.skipped--
			if s.skipped == 0 {
				s.hash(p[from:i+1], false)
				s.endValue(false)
				return i + 1
			}
		}
	}
}

// hash makes bytes of a value part of a request's outline.
func (s *scanner) hash(p []byte, text bool) {
	if s.outline != nil {
		s.outline.write(p, text)
	}
}

// structure has the bytes that skip looks at: quotes, and brackets of either kind as one.
var structure [256]byte

func init() {
	for _, c := range []byte(" \t\r\n") {
		space[c], delimiter[c] = true, true
	}
	for _, c := range []byte(",]}") {
		delimiter[c] = true
	}
	for c, class := range map[byte]byte{'"': '"', '{': '{', '[': '{', '}': '}', ']': '}'} {
		structure[c] = class
	}
}
