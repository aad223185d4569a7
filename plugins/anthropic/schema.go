package anthropic

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins/translate"
)

// refused are the keywords of JSON Schema that structured outputs and strict
// tools cannot enforce.
var refused = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "pattern",
	"maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems",
	"minProperties", "maxProperties", "patternProperties", "propertyNames",
}

// formats are the values of format that can be enforced.
var formats = []string{
	"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
}

// Enforceable is the schema of a field without what structured outputs and strict
// tools refuse to enforce, of which the client is warned, and with all objects
// closed. One that is fine stays as it is. Anthropic's rules
// (https://platform.claude.com/docs/en/build-with-claude/structured-outputs) are
// Bedrock's too.
func Enforceable(p *translate.Request, field string, schema json.RawMessage) (json.RawMessage, error) {
	var f findings
	f.walk("", gjson.ParseBytes(schema))
	if len(f.names) > 0 {
		done := "sent without " + strings.Join(f.names, ", ") + ", which the provider does not enforce"
		if err := drop(p, field, done); err != nil {
			return nil, err
		}
	}
	var err error
	for _, path := range f.refused {
		if schema, err = sjson.DeleteBytes(schema, path); err != nil {
			return nil, err
		}
	}
	for _, path := range f.open {
		if schema, err = sjson.SetRawBytes(schema, path, []byte("false")); err != nil {
			return nil, err
		}
	}
	return schema, nil
}

// findings are the places in a schema that have to change, as paths.
type findings struct {
	refused []string // keywords to leave out
	names   []string // of what is not enforced, each once
	open    []string // additionalProperties to set to false
}

func (f *findings) walk(path string, schema gjson.Result) {
	schema.ForEach(func(key, v gjson.Result) bool {
		at := path + gjson.Escape(key.Str)
		switch {
		case !schema.IsObject():
		case f.refuses(key.Str, v):
			f.refused = append(f.refused, at)
			f.name(key.Str)
		case key.Str == "items" || key.Str == "not":
			f.walk(at+".", v)
		case key.Str == "properties" || key.Str == "$defs" || key.Str == "definitions":
			v.ForEach(func(name, property gjson.Result) bool {
				f.walk(at+"."+gjson.Escape(name.Str)+".", property)
				return true
			})
		case v.IsArray() && strings.HasSuffix(key.Str, "Of"):
			for i, option := range v.Array() {
				f.walk(at+"."+strconv.Itoa(i)+".", option)
			}
		}
		return true
	})
	object := schema.Get("type").Str == "object" || schema.Get("properties").IsObject()
	if object && schema.Get("additionalProperties").Type != gjson.False {
		f.open = append(f.open, path+"additionalProperties")
		if !schema.Get("properties").Exists() { // and so it comes to be empty
			f.name("additionalProperties")
		}
	}
}

// name tells the client of a keyword, once.
func (f *findings) name(keyword string) {
	if !slices.Contains(f.names, keyword) {
		f.names = append(f.names, keyword)
	}
}

func (f *findings) refuses(key string, v gjson.Result) bool {
	switch key {
	case "minItems":
		return v.Num > 1
	case "format":
		return !slices.Contains(formats, v.Str)
	case "additionalProperties":
		return v.Type != gjson.False
	}
	return slices.Contains(refused, key)
}
