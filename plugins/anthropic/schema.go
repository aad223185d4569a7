package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// refusedKeywords are the keywords of JSON Schema that the provider cannot enforce.
var refusedKeywords = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "pattern",
	"maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems",
	"minProperties", "maxProperties", "patternProperties", "propertyNames",
	"oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems",
}

var formats = []string{
	"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
}

// Enforceable returns the schema of a field with all objects closed, and without
// the keywords that structured outputs and strict tools refuse. The client is
// warned of those. A schema that needs no change is returned as it is. Anthropic's
// rules (https://platform.claude.com/docs/en/build-with-claude/structured-outputs)
// are Bedrock's too.
func Enforceable(p *translate.Request, field string, schema json.RawMessage) (json.RawMessage, error) {
	var e enforcer
	enforced := e.appendSchema(nil, gjson.ParseBytes(schema))
	if !e.changed {
		return schema, nil
	}
	if len(e.names) == 0 {
		return enforced, nil
	}
	return enforced, p.DropWithWarning(field, "sent without "+strings.Join(e.names, ", ")+", which the provider does not enforce")
}

type enforcer struct {
	names   []string // of what is not enforced, each once
	changed bool
}

func (e *enforcer) appendSchema(b []byte, schema gjson.Result) []byte {
	if !schema.IsObject() {
		return append(b, schema.Raw...)
	}
	b = appendMembers(b, schema, func(b []byte, key, v gjson.Result) []byte {
		switch name := key.Str; {
		case name == "oneOf" && v.IsArray() && !schema.Get("anyOf").Exists(): // more than one may match
			e.leaveOut(name)
			return e.appendList(append(b, `"anyOf":`...), v)
		case e.refuses(name, v):
			e.leaveOut(name)
			return nil
		case name == "items":
			return e.appendSchema(appendKey(b, key), v)
		case v.IsObject() && (name == "properties" || name == "$defs" || name == "definitions"):
			return appendMembers(appendKey(b, key), v, func(b []byte, key, v gjson.Result) []byte { return e.appendSchema(appendKey(b, key), v) })
		case v.IsArray() && strings.HasSuffix(name, "Of"):
			return e.appendList(appendKey(b, key), v)
		}
		return append(appendKey(b, key), v.Raw...)
	})
	object := schema.Get("type").Str == "object" || schema.Get("properties").IsObject()
	if !object || schema.Get("additionalProperties").Type == gjson.False {
		return b
	}
	e.changed = true
	if !schema.Get("properties").Exists() { // the object can only be empty
		e.leaveOut("additionalProperties")
	}
	return append(b[:len(b)-1], `,"additionalProperties":false}`...) // beside type or properties
}

func appendKey(b []byte, key gjson.Result) []byte { return append(append(b, key.Raw...), ':') }

// appendMembers appends an object with the members that member appends. It returns nil to leave one out.
func appendMembers(b []byte, object gjson.Result, member func(b []byte, key, v gjson.Result) []byte) []byte {
	b = append(b, '{')
	first := len(b)
	object.ForEach(func(key, v gjson.Result) bool {
		start := len(b)
		if start > first {
			b = append(b, ',')
		}
		if longer := member(b, key, v); longer != nil {
			b = longer
		} else {
			b = b[:start]
		}
		return true
	})
	return append(b, '}')
}

func (e *enforcer) appendList(b []byte, schemas gjson.Result) []byte {
	b = append(b, '[')
	for i, schema := range schemas.Array() {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.appendSchema(b, schema)
	}
	return append(b, ']')
}

func (e *enforcer) leaveOut(keyword string) {
	e.changed = true
	if !slices.Contains(e.names, keyword) {
		e.names = append(e.names, keyword)
	}
}

func (e *enforcer) refuses(key string, v gjson.Result) bool {
	switch key {
	case "minItems":
		return v.Num > 1
	case "format":
		return !slices.Contains(formats, v.Str)
	case "additionalProperties":
		return v.Type != gjson.False
	}
	return slices.Contains(refusedKeywords, key)
}
