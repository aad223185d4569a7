package intake

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Decode reads JSON into v, which must have each field of the text, in the same letter case.
func Decode(raw []byte, v any) error {
	if err := CheckJSON(raw); err != nil {
		return err
	}
	var err error
	gjson.ParseBytes(raw).ForEach(func(name, _ gjson.Result) bool {
		if strings.ToLower(name.Str) != name.Str { // encoding/json takes any case
			err = fmt.Errorf("unknown field %q", name.Str)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		kind, number, _ := strings.Cut(wrong.Value, " ") // a number that the type cannot have is named
		return fmt.Errorf("%s: %s is expected, not %s", cmp.Or(wrong.Field, "the body"), kindOf(wrong.Type), cmp.Or(number, valueKinds[kind]))
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// valueKinds are the kinds of values in JSON by the words that encoding/json has for them.
var valueKinds = map[string]string{
	"string": "a string", "number": "a number", "bool": "true or false", "array": "an array", "object": "an object",
}

// kindOf is the kind of the values that a type takes.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// CheckJSON refuses what is no JSON text in UTF-8, and what has a key twice in one object:
// of two values, only one could be meant. The text may be nested to any depth.
func CheckJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("the body is not valid UTF-8")
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
			return errors.New("malformed JSON: unexpected end")
		case err != nil:
			return fmt.Errorf("malformed JSON: %w", err)
		case done:
			return errors.New("malformed JSON: something follows the value")
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
				return fmt.Errorf("%sduplicate key %q", pathOf(path[:inside]), name)
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
	const maxNames = 16
	var keys []string
	for _, c := range path[:min(len(path), maxNames)] {
		if c.object > 0 {
			keys = append(keys, c.key)
		}
	}
	if len(path) > maxNames {
		keys = append(keys, "...")
	}
	if len(keys) == 0 {
		return ""
	}
	return strings.Join(keys, ".") + ": "
}
