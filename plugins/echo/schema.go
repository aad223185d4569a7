package echo

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// A schema may refer to itself, so what is made from it is bounded; beyond the
// bounds every value is null.
const (
	maxExampleDepth = 8
	maxExampleRefs  = 64
	maxExampleBytes = 64 << 10 // which a value that is copied from the schema may exceed once
)

// exampleArguments is an object with the required properties of a JSON Schema.
func exampleArguments(schema json.RawMessage) []byte {
	root := gjson.ParseBytes(schema)
	if !root.IsObject() {
		return []byte("{}")
	}
	e := exampler{targets: translate.References{Root: root}}
	e.object(root, 0)
	return e.buf
}

// exampler writes the smallest instance that a schema lets it guess.
type exampler struct {
	targets translate.References // of "$ref"
	refs    int                  // followed so far
	buf     []byte
}

func (e *exampler) value(s gjson.Result, depth int) {
	if !s.IsObject() || depth > maxExampleDepth || len(e.buf) > maxExampleBytes {
		e.buf = append(e.buf, "null"...)
		return
	}
	for _, literal := range []string{"const", "default", "examples.0", "enum.0"} {
		if v := s.Get(literal); v.Exists() {
			e.buf = append(e.buf, v.Raw...)
			return
		}
	}
	if ref := s.Get("$ref"); ref.Exists() {
		e.value(e.resolve(ref.String()), depth+1)
		return
	}
	for _, branch := range []string{"anyOf.0", "oneOf.0", "allOf.0"} {
		if v := s.Get(branch); v.Exists() {
			e.value(v, depth+1)
			return
		}
	}

	kind := s.Get("type")
	if kind.IsArray() {
		kind = kind.Get("0")
	}
	switch kind.String() {
	case "string":
		e.buf = append(e.buf, `"text"`...)
	case "integer", "number":
		n := "1"
		if least := s.Get("minimum"); least.Type == gjson.Number {
			n = least.Raw
		}
		e.buf = append(e.buf, n...)
	case "boolean":
		e.buf = append(e.buf, "true"...)
	case "array":
		e.buf = append(e.buf, '[')
		if s.Get("minItems").Int() > 0 {
			e.value(s.Get("items"), depth+1)
		}
		e.buf = append(e.buf, ']')
	case "null":
		e.buf = append(e.buf, "null"...)
	default: // a schema without a type is an object's more often than not
		e.object(s, depth)
	}
}

func (e *exampler) object(s gjson.Result, depth int) {
	properties := s.Get("properties").Map()
	seen := make(map[string]bool)
	e.buf = append(e.buf, '{')
	for _, name := range s.Get("required").Array() {
		if name.Type != gjson.String || seen[name.Str] {
			continue
		}
		if len(seen) > 0 {
			e.buf = append(e.buf, ',')
		}
		seen[name.Str] = true
		e.buf = append(e.buf, name.Raw...)
		e.buf = append(e.buf, ':')
		e.value(properties[name.Str], depth+1)
	}
	e.buf = append(e.buf, '}')
}

// resolve follows a reference into the schema itself, such as "#/$defs/place".
func (e *exampler) resolve(ref string) gjson.Result {
	if e.refs == maxExampleRefs {
		return gjson.Result{}
	}
	e.refs++
	return e.targets.Resolve(ref)
}
