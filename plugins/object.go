package plugins

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/tidwall/gjson"
)

// Object is a JSON object that was read in one pass.
type Object struct {
	// Data is the object as it was read.
	Data []byte
	// Members are in their order. A name may stand twice.
	Members []Member
	keys    keySet
}

// Member is a member of an Object.
type Member struct {
	Name  string
	Value gjson.Result
}

// Names calls do with the name of each member, until do returns false.
func (o *Object) Names(do func(name string) bool) {
	for _, m := range o.Members {
		if !do(m.Name) {
			return
		}
	}
}

// ParseObject reads a JSON object. It reports whether data is JSON (ValidJSON) and an object. If
// not, the result has no members. Members share the memory of data.
func ParseObject(data []byte) (o *Object, valid bool) {
	o = &Object{Data: data, Members: make([]Member, 0, 8)} // most requests have no more
	r := jsonReader{data: data, deepest: maxDepth, keys: &o.keys}
	i := r.space(0)
	if i == len(data) || data[i] != '{' {
		return &Object{Data: data}, false
	}
	text := View(data)
	end := r.object(i+1, 1, func(key, keyEnd, value, valueEnd int) {
		v := gjson.Parse(text[value:valueEnd])
		v.Index = value
		o.Members = append(o.Members, Member{gjson.Parse(text[key:keyEnd]).Str, v})
	})
	if end < 0 || r.space(end) != len(data) {
		return &Object{Data: data}, false
	}
	return o, true
}

// Get returns the first member of that name. It does not exist if there is none.
func (o *Object) Get(name string) gjson.Result {
	for i := range o.Members {
		if o.Members[i].Name == name {
			return o.Members[i].Value
		}
	}
	return gjson.Result{}
}

// MayHave reports whether the object, or an object within it, may have a member of that name.
// False is certain.
func (o *Object) MayHave(name string) bool { return o.keys.has(name) }

// ValidJSON reports whether data is JSON that is nested no deeper than 10,000
// levels. Everything that comes from outside must pass it before gjson looks at it:
// gjson goes down by recursion, and a few megabytes of brackets would exhaust the
// stack, which ends the process.
func ValidJSON(data []byte) bool { return ValidNested(data, maxDepth) }

// ValidNested is ValidJSON for data that is nested no deeper than deepest.
func ValidNested(data []byte, deepest int) bool {
	r := jsonReader{data: data, deepest: deepest}
	end := r.value(r.space(0), 0)
	return end >= 0 && r.space(end) == len(data)
}

// maxDepth is how deep JSON may be nested, as encoding/json has it.
const maxDepth = 10_000

// jsonReader checks JSON (RFC 8259). It does what gjson.Valid does, four times as fast where
// strings are long, as those of requests are. Its methods take where a part begins, and return
// where the part ends, or -1 if the part is not valid.
type jsonReader struct {
	data    []byte
	deepest int     // how far data may be nested
	keys    *keySet // gets the keys of all objects; nil if nobody asks for them
}

func (r *jsonReader) space(i int) int {
	for i < len(r.data) && (r.data[i] == ' ' || r.data[i] == '\n' || r.data[i] == '\t' || r.data[i] == '\r') {
		i++
	}
	return i
}

func (r *jsonReader) value(i, depth int) int {
	if i == len(r.data) {
		return -1
	}
	switch c := r.data[i]; c {
	case '"':
		return r.text(i + 1)
	case '{':
		return r.object(i+1, depth+1, nil)
	case '[':
		return r.array(i+1, depth+1, nil)
	case 't':
		return r.literal(i, "true")
	case 'f':
		return r.literal(i, "false")
	case 'n':
		return r.literal(i, "null")
	}
	return r.number(i)
}

// object reads the rest of an object, and tells member where keys and values begin and end.
func (r *jsonReader) object(i, depth int, member func(key, keyEnd, value, valueEnd int)) int {
	if i = r.space(i); depth > r.deepest || i == len(r.data) {
		return -1
	}
	if r.data[i] == '}' {
		return i + 1
	}
	for {
		key := i
		if i == len(r.data) || r.data[i] != '"' {
			return -1
		}
		if i = r.text(i + 1); i < 0 {
			return -1
		}
		keyEnd := i
		if r.keys != nil {
			r.keys.add(r.data[key+1 : keyEnd-1])
		}
		if i = r.space(i); i == len(r.data) || r.data[i] != ':' {
			return -1
		}
		value := r.space(i + 1)
		if i = r.value(value, depth); i < 0 {
			return -1
		}
		if member != nil {
			member(key, keyEnd, value, i)
		}
		if i = r.space(i); i == len(r.data) {
			return -1
		}
		switch r.data[i] {
		case '}':
			return i + 1
		case ',':
			i = r.space(i + 1)
		default:
			return -1
		}
	}
}

// array reads the rest of an array, and tells element where values begin and end.
func (r *jsonReader) array(i, depth int, element func(value, valueEnd int)) int {
	if i = r.space(i); depth > r.deepest || i == len(r.data) {
		return -1
	}
	if r.data[i] == ']' {
		return i + 1
	}
	for {
		value := r.space(i)
		if i = r.value(value, depth); i < 0 {
			return -1
		}
		if element != nil {
			element(value, i)
		}
		if i = r.space(i); i == len(r.data) {
			return -1
		}
		switch r.data[i] {
		case ']':
			return i + 1
		case ',':
			i++
		default:
			return -1
		}
	}
}

// text reads the rest of a string. It looks at eight bytes at a time: the lowest bit that is
// set is that of the first quote, backslash or control character
// (https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord).
func (r *jsonReader) text(i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	for data := r.data; i < len(data); {
		if i+8 <= len(data) {
			word := binary.LittleEndian.Uint64(data[i:])
			quote, backslash := word^'"'*ones, word^'\\'*ones
			found := ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-' '*ones)&^word) & highs
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c != '\\':
			i++
		default:
			if i = r.escape(i + 1); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// escape reads the rest of an escape.
func (r *jsonReader) escape(i int) int {
	if i == len(r.data) {
		return -1
	}
	switch r.data[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		end := i + 1
		for end < len(r.data) && end < i+5 && isHex(r.data[end]) {
			end++
		}
		if end == i+5 {
			return end
		}
	}
	return -1
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (r *jsonReader) literal(i int, want string) int {
	if end := i + len(want); end <= len(r.data) && string(r.data[i:end]) == want {
		return end
	}
	return -1
}

func (r *jsonReader) number(i int) int {
	if r.data[i] == '-' {
		i++
	}
	end := r.digits(i)
	if end == i || r.data[i] == '0' && end > i+1 {
		return -1
	}
	if i = end; i < len(r.data) && r.data[i] == '.' {
		if end = r.digits(i + 1); end == i+1 {
			return -1
		}
		i = end
	}
	if i < len(r.data) && (r.data[i] == 'e' || r.data[i] == 'E') {
		if i++; i < len(r.data) && (r.data[i] == '+' || r.data[i] == '-') {
			i++
		}
		if end = r.digits(i); end == i {
			return -1
		}
		i = end
	}
	return i
}

func (r *jsonReader) digits(i int) int {
	for i < len(r.data) && '0' <= r.data[i] && r.data[i] <= '9' {
		i++
	}
	return i
}

// keySet is a Bloom filter of keys.
type keySet [16]uint64

// add adds a key as it stands between its quotes. One with an escape may be any.
func (s *keySet) add(key []byte) {
	if bytes.IndexByte(key, '\\') >= 0 {
		for i := range s {
			s[i] = ^uint64(0)
		}
	}
	h := hashKey(key)
	s[h>>6%16] |= 1 << (h % 64)
	s[h>>22%16] |= 1 << (h >> 16 % 64)
}

func (s *keySet) has(key string) bool {
	h := hashKey(key)
	return s[h>>6%16]&(1<<(h%64)) != 0 && s[h>>22%16]&(1<<(h>>16%64)) != 0
}

// hashKey is FNV-1a.
func hashKey[S string | []byte](key S) uint32 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return h
}

// DeleteField removes a top-level field from a body, however often the body has the field.
func DeleteField(body []byte, field string) []byte {
	if !gjson.GetBytes(body, field).Exists() {
		return body
	}
	r := jsonReader{data: body, deepest: maxDepth}
	begin := r.space(0) + 1
	begin = r.space(begin) // of the first member
	kept := append(make([]byte, 0, len(body)), body[:begin]...)
	before := begin // the end of the member before
	end := r.object(begin, 1, func(key, keyEnd, _, valueEnd int) {
		separator := body[before:key]
		if before = valueEnd; gjson.Parse(View(body[key:keyEnd])).Str == field {
			return
		}
		if len(kept) > begin {
			kept = append(kept, separator...)
		}
		kept = append(kept, body[key:valueEnd]...)
	})
	if end < 0 { // no JSON
		return body
	}
	return append(kept, body[before:]...)
}

// MapElements returns a JSON array with its elements changed, and whether any was. change returns the
// JSON of the element at an index.
func MapElements(list gjson.Result, change func(i int, element gjson.Result) string) (mapped string, changed bool) {
	var elements []string
	list.ForEach(func(_, element gjson.Result) bool {
		raw := change(len(elements), element)
		changed = changed || raw != element.Raw
		elements = append(elements, raw)
		return true
	})
	if !changed {
		return list.Raw, false
	}
	return "[" + strings.Join(elements, ",") + "]", true
}
