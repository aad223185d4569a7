package clientconfig

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat edits JSON with comments and trailing commas, and plain JSON.
type jsonFormat struct{}

// parse returns the root of a text, which is an object. An empty text is an empty object.
func (jsonFormat) parse(text []byte) (*hujson.Value, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("expected an object, not %s", bytes.TrimSpace(text))
	}
	return &root, nil
}

// walk returns the innermost object on a path, how many names lead to it, and which of its
// members the next name is, or -1.
func (f jsonFormat) walk(text []byte, path []string) (object *hujson.Value, depth, member int, err error) {
	at, err := f.parse(text)
	if err != nil {
		return nil, 0, 0, err
	}
	for depth = 0; ; depth++ {
		members := at.Value.(*hujson.Object).Members
		member = -1
		for i := range members {
			if members[i].Name.Value.(hujson.Literal).String() == path[depth] {
				member = i // of a name that repeats, the last counts
			}
		}
		if member < 0 || depth == len(path)-1 {
			return at, depth, member, nil
		}
		next := &members[member].Value
		if _, ok := next.Value.(*hujson.Object); !ok {
			return nil, 0, 0, fmt.Errorf("%s is no object", strings.Join(path[:depth+1], "."))
		}
		at = next
	}
}

func (f jsonFormat) find(text []byte, path []string) (span, bool, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return span{}, false, nil
	}
	object, depth, member, err := f.walk(text, path)
	if err != nil || member < 0 || depth < len(path)-1 {
		return span{}, false, err
	}
	v := &object.Value.(*hujson.Object).Members[member].Value
	return span{v.StartOffset, v.EndOffset}, true, nil
}

// insert makes the value the first member of its object: there, neither a comma nor a comment
// comes before it.
func (f jsonFormat) insert(text []byte, path []string, value string) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	object, depth, _, err := f.walk(text, path)
	if err != nil {
		return nil, err
	}
	for i := len(path) - 1; i > depth; i-- {
		value = "{\n  " + quote(path[i]) + ": " + indent(value, "  ") + "\n}"
	}
	member := quote(path[depth]) + ": "
	members := object.Value.(*hujson.Object).Members
	inside := text[object.StartOffset:object.EndOffset]
	start := object.StartOffset + 1
	blanks := indentation(text, object.StartOffset)
	switch {
	case len(members) == 0:
		end := start
		if len(bytes.TrimSpace(inside[1:len(inside)-1])) == 0 {
			end = object.EndOffset - 1
		}
		return splice(text, span{start, end}, "\n"+blanks+"  "+member+indent(value, blanks+"  ")+"\n"+blanks), nil
	case !bytes.ContainsRune(inside, '\n'):
		return splice(text, span{start, start}, member+value+", "), nil
	default:
		if own := indentation(text, members[0].Name.StartOffset); own != "" {
			blanks = own
		}
		return splice(text, span{start, start}, "\n"+blanks+member+indent(value, blanks)+","), nil
	}
}

func (f jsonFormat) remove(text []byte, path []string) ([]byte, error) {
	object, _, member, err := f.walk(text, path)
	if err != nil {
		return nil, err
	}
	members := object.Value.(*hujson.Object).Members
	m := &members[member]
	start := len(bytes.TrimRight(text[:m.Name.StartOffset], " \t\r\n"))
	end := m.Value.EndOffset
	comma := end + len(m.Value.AfterExtra)
	switch {
	case text[comma] == ',' && len(members) > 1:
		end = comma + 1
	case member > 0:
		before := &members[member-1].Value
		at := before.EndOffset + len(before.AfterExtra)
		text = append(text[:at:at], text[at+1:]...)
		start, end = start-1, end-1
	case len(path) > 1 && len(bytes.TrimSpace(text[object.StartOffset+1:m.Name.StartOffset])) == 0 && len(bytes.TrimSpace(text[end:object.EndOffset-1])) == 0:
		return f.remove(text, path[:len(path)-1]) // nothing else is in the object
	}
	return splice(text, span{start, end}, ""), nil
}
