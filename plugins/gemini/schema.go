package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

const (
	// maxInlined is how long a schema may become, in bytes, before references stay references.
	maxInlined = 256 << 10
	// maxReferences is how many references of a schema are inlined. The others stay references.
	maxReferences = 1000
	// maxWork is how many bytes of schemas are read for one schema: each with all within it. What is
	// beyond stays as it is.
	maxWork = 4 << 20
)

// adaptSchema returns the schema of a field as the provider takes it: nothing beside a reference
// but other keywords with a $, no allOf and no const, only texts and numbers in an enum, and no "true" as
// the schema of a value (https://ai.google.dev/api/caching#FunctionDeclaration). Pydantic writes a
// description or a default beside references, zod allOf, schemars null in an enum, and .NET "true". A schema
// that has none of these is returned as it is.
func adaptSchema(p *translate.Request, field string, schema json.RawMessage) (json.RawMessage, error) {
	has := func(text string) bool { return bytes.Contains(schema, []byte(text)) }
	if len(schema) > maxInlined || !has(`"$ref"`) && !has(`"const"`) && !has(`"allOf"`) && !has(`"enum"`) && !has("true") {
		return schema, nil
	}
	w := schemaWriter{field: field, refs: translate.References{Root: gjson.ParseBytes(schema)}}
	written := w.appendSchema(nil, w.refs.Root)
	if w.err != nil {
		return nil, w.err
	}
	if w.drops {
		return written, p.DropWithWarning(field, "sent without constants that are neither text nor numbers, or without what several schemas of an allOf say in different ways, which the provider does not take")
	}
	return written, nil
}

// schemaWriter writes a schema as the provider takes it.
type schemaWriter struct {
	field     string               // of the request, for errors
	refs      translate.References // of the schema
	enclosing []string             // the inlined references in which the writer is, the outermost first
	inlined   int                  // how many references were inlined
	work      int                  // how many bytes of schemas were read
	drops     bool                 // what narrows a schema was left out
	err       error                // the first reference that points nowhere
}

func (w *schemaWriter) appendSchema(b []byte, schema gjson.Result) []byte {
	switch {
	case schema.Type == gjson.True: // any value
		return append(b, "{}"...)
	case !schema.IsObject() || w.work > maxWork:
		return append(b, schema.Raw...)
	}
	outer := len(w.enclosing)
	layers, ref := w.layers(nil, make(map[string]bool), schema, len(b))
	if ref != "" {
		layers = layers[:1]
	}
	b = append(w.appendMembers(append(b, '{'), layers, ref), '}')
	w.enclosing = w.enclosing[:outer]
	return b
}

// layers adds a schema, and those that it extends by a reference or by allOf: a value must match all of
// them. texts are those of the layers. ref is a reference that stays, because it stands alone or points to a
// schema that it is in.
func (w *schemaWriter) layers(layers []gjson.Result, texts map[string]bool, schema gjson.Result, size int) (all []gjson.Result, ref string) {
	alone := len(layers) == 0
	layers = append(layers, schema)
	texts[schema.Raw] = true
	if w.work += len(schema.Raw); w.work > maxWork {
		w.drops = true
		return layers, ""
	}
	parts := schema.Get("allOf").Array()
	v := schema.Get("$ref")
	if alone && !v.Exists() && len(parts) == 1 && slices.Contains(w.enclosing, parts[0].Get("$ref").Str) { // as Pydantic 1 writes it
		return layers, parts[0].Get("$ref").Str
	}
	if v.Type == gjson.String {
		if alone && !w.inlines(schema, v.Str, size) {
			return layers, v.Str
		}
		if !alone && (w.inlined == maxReferences || size > maxInlined || slices.Contains(w.enclosing, v.Str)) {
			w.drops = true
			return layers, ""
		}
		w.inlined++
		w.enclosing = append(w.enclosing, v.Str)
		parts = append([]gjson.Result{w.resolve(v.Str)}, parts...)
	}
	for _, part := range parts {
		if part.IsObject() && !texts[part.Raw] {
			layers, _ = w.layers(layers, texts, part, size)
		}
	}
	return layers, ""
}

// conflictFree are the keywords of which layers may have different values, and none is lost: those that only
// describe, and those whose values are joined. All with a $ are, too.
var conflictFree = map[string]bool{
	"title": true, "description": true, "default": true, "example": true, "examples": true, "deprecated": true,
	"readOnly": true, "writeOnly": true, "propertyOrdering": true, "allOf": true, "properties": true, "required": true,
}

// appendMembers appends the members of a schema in layers, of which the first that has a keyword decides. A
// schema with a reference that stays has no other members but those with a $.
func (w *schemaWriter) appendMembers(b []byte, layers []gjson.Result, ref string) []byte {
	written := map[string]string{"allOf": "", "$ref": ""} // values in JSON
	if ref != "" {
		b = w.appendValue(appendName(b, "$ref"), "$ref", gjson.Result{Type: gjson.String, Str: ref})
	}
	typed := slices.ContainsFunc(layers, func(layer gjson.Result) bool { return layer.Get("type").Exists() })
	for _, layer := range layers {
		layer.ForEach(func(key, v gjson.Result) bool {
			name, value := key.Str, v.Raw
			switch name {
			case "definitions":
				name = "$defs"
			case "const", "enum":
				name, value = "enum", enumOf(layer).Raw
			}
			if ref != "" && !strings.HasPrefix(name, "$") {
				return true
			}
			if earlier, ok := written[name]; ok {
				w.drops = w.drops || value != earlier && !conflictFree[name] && !strings.HasPrefix(name, "$")
				return true
			}
			written[name] = value
			switch name {
			case "enum":
				b = w.appendEnum(b, gjson.Parse(value).Array(), typed)
			case "properties":
				b = w.appendProperties(appendName(b, name), layers)
			case "required":
				b = appendRequired(appendName(b, name), layers)
			default:
				b = w.appendValue(appendName(b, name), name, v)
			}
			return true
		})
	}
	return b
}

// appendProperties appends the properties of all layers. One that several layers have must match all of
// them.
func (w *schemaWriter) appendProperties(b []byte, layers []gjson.Result) []byte {
	var names []string
	schemas := make(map[string][]string)
	texts := make(map[[2]string]bool) // the names with each of their schemas
	for _, layer := range layers {
		layer.Get("properties").ForEach(func(key, v gjson.Result) bool {
			if schemas[key.Str] == nil {
				names = append(names, key.Str)
			}
			if property := [2]string{key.Str, v.Raw}; !texts[property] {
				texts[property] = true
				schemas[key.Str] = append(schemas[key.Str], v.Raw)
			}
			return true
		})
	}
	b = append(b, '{')
	for _, name := range names {
		schema := schemas[name][0]
		if len(schemas[name]) > 1 {
			schema = `{"allOf":[` + strings.Join(schemas[name], ",") + `]}`
		}
		b = w.appendSchema(appendName(b, name), gjson.Parse(schema))
	}
	return append(b, '}')
}

// appendRequired appends the names of the properties that a layer requires.
func appendRequired(b []byte, layers []gjson.Result) []byte {
	names, known := []string{}, make(map[string]bool)
	for _, layer := range layers {
		for _, name := range layer.Get("required").Array() {
			if !known[name.Str] {
				known[name.Str] = true
				names = append(names, name.Str)
			}
		}
	}
	list, _ := json.Marshal(names) // strings
	return append(b, list...)
}

// appendValue appends the value of a keyword, and the schemas within the value as the provider takes
// them.
func (w *schemaWriter) appendValue(b []byte, keyword string, v gjson.Result) []byte {
	switch {
	case keyword == "$ref":
		text, _ := json.Marshal(strings.Replace(v.Str, "#/definitions/", "#/$defs/", 1))
		return append(b, text...)
	case v.IsObject() && keyword == "$defs":
		defer func(enclosing []string) { w.enclosing = enclosing }(w.enclosing)
		w.enclosing = nil // which are not around a definition
		b = append(b, '{')
		v.ForEach(func(key, v gjson.Result) bool {
			b = w.appendSchema(appendName(b, key.Str), v)
			return true
		})
		return append(b, '}')
	case keyword == "items", keyword == "additionalProperties" && v.IsObject():
		return w.appendSchema(b, v)
	case v.IsArray() && (keyword == "prefixItems" || strings.HasSuffix(keyword, "Of")):
		b = append(b, '[')
		for i, part := range v.Array() {
			if i > 0 {
				b = append(b, ',')
			}
			b = w.appendSchema(b, part)
		}
		return append(b, ']')
	}
	return append(b, v.Raw...)
}

// appendName appends the name of a member, after a comma unless it is the first.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	text, _ := json.Marshal(name)
	return append(append(b, text...), ':')
}

// inlines reports whether the schema of a reference takes its place: the provider takes a
// reference only to $defs and with nothing beside it. A schema within itself stays a reference,
// which the provider unfolds as far as it can.
func (w *schemaWriter) inlines(schema gjson.Result, ref string, size int) bool {
	if w.inlined == maxReferences || size > maxInlined || slices.Contains(w.enclosing, ref) {
		return false
	}
	inlines := !strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/")
	schema.ForEach(func(key, _ gjson.Result) bool {
		inlines = inlines || !strings.HasPrefix(key.Str, "$") && key.Str != "definitions"
		return !inlines
	})
	return inlines
}

// resolve returns what a reference within the schema points to, such as "#/$defs/place".
func (w *schemaWriter) resolve(ref string) gjson.Result {
	v := w.refs.Resolve(ref)
	if v.Type == gjson.True { // it takes any value
		return gjson.Result{}
	}
	if !v.IsObject() && w.err == nil {
		w.err = plugins.Invalid(w.field, "The schema refers to '%s', which it does not have.", ref)
	}
	return v
}

// kinds are the types of the values that an enum can have.
var kinds = map[gjson.Type]string{
	gjson.String: "string", gjson.Number: "number", gjson.True: "boolean", gjson.False: "boolean", gjson.Null: "null",
}

// enumOf returns the list of the values that a schema allows: its constant, or those of its enum.
func enumOf(schema gjson.Result) gjson.Result {
	if constant := schema.Get("const"); constant.Exists() {
		return gjson.Parse("[" + constant.Raw + "]")
	}
	return schema.Get("enum")
}

// appendEnum appends what the provider takes in place of a constant or of the values of an enum: their
// types, unless the schema has a type, and those that are texts or numbers. A null is a type, and an enum
// with other values would forbid them if it was sent without.
func (w *schemaWriter) appendEnum(b []byte, values []gjson.Result, typed bool) []byte {
	var types, sent []string
	drops := false
	for _, v := range values {
		kind, ok := kinds[v.Type]
		if ok && !slices.Contains(types, kind) {
			types = append(types, kind)
		}
		switch kind {
		case "string", "number":
			sent = append(sent, v.Raw)
		case "null":
		default:
			drops = true
		}
	}
	if !typed && len(types) > 0 {
		list, _ := json.Marshal(types) // strings
		if len(types) == 1 {
			list, _ = json.Marshal(types[0])
		}
		b = append(appendName(b, "type"), list...)
	}
	w.drops = w.drops || drops
	if len(sent) == 0 || drops {
		return b
	}
	return append(append(append(appendName(b, "enum"), '['), strings.Join(sent, ",")...), ']')
}
