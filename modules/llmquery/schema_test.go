package llmquery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// description is an OpenAPI document that checks values against its schemas: in
// as much of JSON Schema 2020-12 as it uses, and an error for the rest. Schemas
// are named by their JSON pointers.
type description struct {
	root any
	// strict takes no property that a schema does not describe.
	strict bool
	// seen are the schemas that stood up to a value.
	seen map[string]bool
	// found has what stands at the pointers that were asked for.
	found map[string]any
}

func newDescription(t testing.TB, text string) *description {
	t.Helper()
	d := &description{seen: make(map[string]bool), found: make(map[string]any)}
	if err := json.Unmarshal([]byte(text), &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at is what stands at a pointer, nil when there is nothing.
func (d *description) at(pointer string) any {
	v, known := d.found[pointer]
	if !known {
		v = d.lookup(pointer)
		d.found[pointer] = v
	}
	return v
}

func (d *description) lookup(pointer string) any {
	v := d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "#/"), "/") {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[strings.ReplaceAll(name, "~1", "/")]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(parent) {
				return nil
			}
			v = parent[i]
		default:
			return nil
		}
	}
	return v
}

// object is the object at a pointer, after the reference that may stand there.
func (d *description) object(pointer string) (resolved string, object map[string]any) {
	object, _ = d.at(pointer).(map[string]any)
	if ref, ok := object["$ref"].(string); ok {
		return d.object(ref)
	}
	return pointer, object
}

// check says what is wrong with the value at path.
func (d *description) check(pointer, path string, v any) error {
	schema, ok := d.at(pointer).(map[string]any)
	if !ok {
		return fmt.Errorf("%s is no schema", pointer)
	}
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		if err := d.keyword(pointer, schema, keyword, path, v); err != nil {
			return err
		}
	}
	d.seen[pointer] = true
	return nil
}

func (d *description) keyword(pointer string, schema map[string]any, keyword, path string, v any) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s (%s/%s)", path, fmt.Sprintf(format, args...), pointer, keyword)
	}
	arg := schema[keyword]
	object, isObject := v.(map[string]any)
	array, isArray := v.([]any)
	switch keyword {
	case "description", "default":
	case "$ref":
		return d.check(arg.(string), path, v)
	case "type":
		types, several := arg.([]any)
		if !several {
			types = []any{arg}
		}
		if !slices.ContainsFunc(types, func(t any) bool { return isOfType(v, t.(string)) }) {
			return wrong("%v is none of %v", v, types)
		}
	case "const":
		if v != arg {
			return wrong("%v is not %v", v, arg)
		}
	case "enum":
		if !slices.Contains(arg.([]any), v) {
			return wrong("%v is none of %v", v, arg)
		}
	case "oneOf":
		var errs []error
		for i := range arg.([]any) {
			if err := d.check(fmt.Sprintf("%s/oneOf/%d", pointer, i), path, v); err != nil {
				errs = append(errs, err)
			}
		}
		if matches := len(arg.([]any)) - len(errs); matches != 1 {
			return wrong("%d match: %v", matches, errs)
		}
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := object[name.(string)]; isObject && !ok {
				return wrong("no %s", name)
			}
		}
	case "properties":
		for name, value := range object {
			if _, ok := arg.(map[string]any)[name]; ok {
				if err := d.check(pointer+"/properties/"+name, path+"."+name, value); err != nil {
					return err
				}
			} else if _, more := schema["additionalProperties"]; d.strict && !more {
				return wrong("%s is not described", name)
			}
		}
	case "additionalProperties":
		properties, _ := schema["properties"].(map[string]any)
		for name, value := range object {
			if _, ok := properties[name]; ok {
				continue
			}
			if arg == false {
				return wrong("%s is not described", name)
			}
			if err := d.check(pointer+"/"+keyword, path+"."+name, value); err != nil {
				return err
			}
		}
	case "items":
		for i, value := range array {
			if err := d.check(pointer+"/items", fmt.Sprintf("%s[%d]", path, i), value); err != nil {
				return err
			}
		}
	case "minItems", "maxItems":
		if isArray && !within(keyword, float64(len(array)), arg) {
			return wrong("%d items", len(array))
		}
	case "minProperties", "maxProperties":
		if isObject && !within(keyword, float64(len(object)), arg) {
			return wrong("%d properties", len(object))
		}
	case "minLength":
		if s, ok := v.(string); ok && !within(keyword, float64(utf8.RuneCountInString(s)), arg) {
			return wrong("%q", s)
		}
	case "minimum", "maximum":
		if n, ok := v.(float64); ok && !within(keyword, n, arg) {
			return wrong("%v", n)
		}
	case "format":
		if s, ok := v.(string); ok && !hasFormat(s, arg.(string)) {
			return wrong("%q is no %s", s, arg)
		}
	default:
		return wrong("the keyword is not checked")
	}
	return nil
}

func within(keyword string, n float64, bound any) bool {
	if strings.HasPrefix(keyword, "min") {
		return n >= bound.(float64)
	}
	return n <= bound.(float64)
}

func isOfType(v any, name string) bool {
	kinds := map[string]reflect.Kind{
		"string": reflect.String, "number": reflect.Float64, "integer": reflect.Float64, "boolean": reflect.Bool,
		"object": reflect.Map, "array": reflect.Slice, "null": reflect.Invalid,
	}
	kind, known := kinds[name]
	n, _ := v.(float64)
	return known && reflect.ValueOf(v).Kind() == kind && (name != "integer" || n == math.Trunc(n))
}

func hasFormat(s, format string) bool {
	var err error
	switch format {
	case "date-time":
		_, err = time.Parse(time.RFC3339Nano, s)
	case "uuid":
		_, err = uuid.Parse(s)
	default:
		return false
	}
	return err == nil
}

// properties are the pointers of all properties in a schema, and in those that
// it refers to.
func (d *description) properties(pointer string, found map[string]bool) {
	pointer, schema := d.object(pointer)
	for name := range mapOf(schema["properties"]) {
		property := pointer + "/properties/" + name
		if !found[property] {
			found[property] = true
			d.properties(property, found)
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if _, ok := schema[inner].(map[string]any); ok {
			d.properties(pointer+"/"+inner, found)
		}
	}
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// TestChecker holds that the checker of this test finds what is wrong.
func TestChecker(t *testing.T) {
	d := newDescription(t, `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","maximum":3},"s":{"enum":["a"]},
		"o":{"oneOf":[{"const":"all"},{"type":"object","maxProperties":0}]},"l":{"type":["array","null"],"items":{"format":"uuid"},"maxItems":1}}}`)
	d.root = map[string]any{"x": d.root}
	d.strict = true
	for text, valid := range map[string]bool{
		`{"n":1,"s":"a","o":{},"l":null}`: true, `{"n":3,"o":"all","l":["00000000-0000-0000-0000-000000000000"]}`: true,
		`{}`: false, `[]`: false, `{"n":4}`: false, `{"n":1.5}`: false, `{"n":"1"}`: false, `{"n":1,"s":"b"}`: false, `{"n":1,"more":1}`: false,
		`{"n":1,"o":"none"}`: false, `{"n":1,"o":{"a":1}}`: false, `{"n":1,"l":["a"]}`: false, `{"n":1,"l":[1,2]}`: false,
	} {
		d.expect(t, "#/x", text, valid)
	}
}
