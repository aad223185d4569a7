package translate

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// References finds what the references within a JSON Schema point to. It reads each object and each list
// on the way once, however many references lead through it.
type References struct {
	// Root is the schema.
	Root gjson.Result
	// Read is how many bytes of the schema were read.
	Read int

	members map[string]map[string]gjson.Result // of what was read, by the pointer to it
}

// Resolve returns what a $ref points to, such as "#/$defs/place". The result does not exist if the
// reference points elsewhere or nowhere. A pointer (RFC 6901) in a fragment is percent-encoded: the one
// to "a b" is "#/$defs/a%20b".
func (r *References) Resolve(ref string) gjson.Result {
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !local || err != nil || pointer != "" && pointer[0] != '/' {
		return gjson.Result{}
	}
	v := r.Root
	for end := 0; end < len(pointer) && v.Exists(); {
		key, _, _ := strings.Cut(pointer[end+1:], "/")
		v = r.membersOf(v, pointer[:end])[unescapePointer.Replace(key)]
		end += 1 + len(key)
	}
	return v
}

// membersOf returns the members of the object, or the elements of the list, at a pointer.
func (r *References) membersOf(v gjson.Result, pointer string) map[string]gjson.Result {
	members, known := r.members[pointer]
	if known || !v.IsObject() && !v.IsArray() {
		return members
	}
	members = make(map[string]gjson.Result)
	v.ForEach(func(key, member gjson.Result) bool {
		name := key.Str
		if v.IsArray() {
			name = strconv.Itoa(len(members))
		}
		if _, twice := members[name]; !twice {
			members[name] = member
		}
		return true
	})
	if r.members == nil {
		r.members = make(map[string]map[string]gjson.Result)
	}
	r.members[pointer] = members
	r.Read += len(v.Raw)
	return members
}

// unescapePointer gives the keys of a JSON Pointer their own characters back.
var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
