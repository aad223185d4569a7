package llmquery

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"unicode/utf8"
)

// checkJSON refuses what is no JSON text in UTF-8, and what has a key twice in
// one object: of two values, only one could be meant. It nests as deep as the
// text does, without recursion.
func checkJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return badRequest("the body is not valid UTF-8")
	}
	type key struct {
		object int
		name   string
	}
	var (
		tokens  = json.NewDecoder(bytes.NewReader(raw))
		path    []container
		objects int
		keys    = make(map[key]bool)
	)
	tokens.UseNumber()
	for done, n := false, 1; ; n++ {
		if n%stretch == 0 {
			runtime.Gosched()
		}
		t, err := tokens.Token()
		switch {
		case errors.Is(err, io.EOF) && done:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return badRequest("malformed JSON: unexpected end")
		case err != nil:
			return badRequest("malformed JSON: %v", err)
		case done:
			return badRequest("malformed JSON: something follows the value")
		}
		switch inside := len(path) - 1; {
		case t == json.Delim('{'):
			objects++
			path = append(path, container{object: objects})
			continue
		case t == json.Delim('['):
			path = append(path, container{})
			continue
		case t == json.Delim('}'), t == json.Delim(']'):
			path = path[:inside]
		case inside >= 0 && path[inside].object > 0 && !path[inside].hasKey:
			c, name := &path[inside], t.(string)
			if keys[key{c.object, name}] {
				return badRequest("%sduplicate key %q", pathOf(path[:inside]), name)
			}
			keys[key{c.object, name}] = true
			c.key, c.hasKey = name, true
			continue
		}
		if done = len(path) == 0; !done {
			path[len(path)-1].hasKey = false // its value has been read
		}
	}
}

// stretch is the number of tokens after which others get the processor: the
// scheduler would take it away after 10 ms.
const stretch = 256

// container is an object or array around a token.
type container struct {
	object int // counts the objects, 0 for an array
	// hasKey is true between a key of an object and the end of its value.
	key    string
	hasKey bool
}

// pathOf is the path of a value inside containers, in front of an error.
func pathOf(path []container) string {
	const most = 16
	var keys []string
	for _, c := range path[:min(len(path), most)] {
		if c.object > 0 {
			keys = append(keys, c.key)
		}
	}
	if len(path) > most {
		keys = append(keys, "...")
	}
	if len(keys) == 0 {
		return ""
	}
	return strings.Join(keys, ".") + ": "
}
