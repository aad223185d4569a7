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

// acceptable returns the schema of a field as the provider takes it: nothing beside a reference
// but other keywords with a $, no allOf and no const, only texts and numbers in an enum, and no "true" as
// the schema of a value (https://ai.google.dev/api/caching#FunctionDeclaration). Pydantic writes a
// description or a default beside references, zod allOf, schemars null in an enum, and .NET "true". A schema
// that has none of these is returned as it is.
func acceptable(p *translate.Request, field string, schema json.RawMessage) (json.RawMessage, error) {
	has := func(text string) bool { return bytes.Contains(schema, []byte(text)) }
	if len(schema) > maxInlined || !has(`"$ref"`) && !has(`"const"`) && !has(`"allOf"`) && !has(`"enum"`) && !has("true") {
		return schema, nil
	}
	w := schemaWriter{field: field, root: gjson.ParseBytes(schema)}
	written := w.appendSchema(nil, w.root)
	if w.err != nil {
		return nil, w.err
	}
	if w.drops {
		return written, p.DropWithWarning(field, "sent without constants that are neither text nor numbers, or without alternatives within allOf, which the provider does not take")
	}
	return written, nil
}

// schemaWriter writes a schema as the provider takes it.
type schemaWriter struct {
	field     string       // of the request, for errors
	root      gjson.Result // the schema, into which references point
	enclosing []string     // the inlined references in which the writer is, the outermost first
	inlined   int          // how many references were inlined
	work      int          // how many bytes of schemas were read
	drops     bool         // what narrows a schema was left out
	err       error        // the first reference that points nowhere
}

func (w *schemaWriter) appendSchema(b []byte, schema gjson.Result) []byte {
	switch {
	case schema.Type == gjson.True: // any value
		return append(b, "{}"...)
	case !schema.IsObject() || w.work > maxWork:
		return append(b, schema.Raw...)
	}
	outer := len(w.enclosing)
	layers, ref := w.layers(nil, schema, len(b))
	if ref != "" {
		layers = layers[:1]
	}
	b = append(w.appendMembers(append(b, '{'), layers, ref), '}')
	w.enclosing = w.enclosing[:outer]
	return b
}

// layers adds a schema, and those that it extends by a reference or by allOf: a value must match all of
// them. ref is a reference that stays, because it stands alone or points to a schema that it is in.
func (w *schemaWriter) layers(layers []gjson.Result, schema gjson.Result, size int) (all []gjson.Result, ref string) {
	alone := len(layers) == 0
	layers = append(layers, schema)
	if w.work += len(schema.Raw); w.work > maxWork {
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
		if !alone && (slices.Contains(w.enclosing, v.Str) || w.inlined == maxReferences || size > maxInlined) {
			w.drops = true
			return layers, ""
		}
		w.inlined++
		w.enclosing = append(w.enclosing, v.Str)
		parts = append([]gjson.Result{w.resolve(v.Str)}, parts...)
	}
	for _, part := range parts {
		if part.IsObject() && !slices.ContainsFunc(layers, func(layer gjson.Result) bool { return layer.Raw == part.Raw }) {
			layers, _ = w.layers(layers, part, size)
		}
	}
	return layers, ""
}

// appendMembers appends the members of a schema in layers, of which the first that has a keyword decides. A
// schema with a reference that stays has no other members but those with a $.
func (w *schemaWriter) appendMembers(b []byte, layers []gjson.Result, ref string) []byte {
	written := map[string]bool{"allOf": true, "$ref": true}
	if ref != "" {
		b = w.appendValue(appendName(b, "$ref"), "$ref", gjson.Result{Type: gjson.String, Str: ref})
	}
	typed := slices.ContainsFunc(layers, func(layer gjson.Result) bool { return layer.Get("type").Exists() })
	for _, layer := range layers {
		layer.ForEach(func(key, v gjson.Result) bool {
			name := key.Str
			switch name {
			case "definitions":
				name = "$defs"
			case "const":
				name = "enum"
			}
			switch {
			case ref != "" && !strings.HasPrefix(name, "$"):
				return true
			case written[name]:
				w.drops = w.drops || strings.HasSuffix(name, "Of") && name != "allOf"
				return true
			}
			written[name] = true
			switch name {
			case "enum":
				b = w.appendEnum(b, layer, typed)
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
	for _, layer := range layers {
		layer.Get("properties").ForEach(func(key, v gjson.Result) bool {
			if schemas[key.Str] == nil {
				names = append(names, key.Str)
			}
			if !slices.Contains(schemas[key.Str], v.Raw) {
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
	names := []string{}
	for _, layer := range layers {
		for _, name := range layer.Get("required").Array() {
			if !slices.Contains(names, name.Str) {
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
	if slices.Contains(w.enclosing, ref) || w.inlined == maxReferences || size > maxInlined {
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
	v := translate.Resolve(w.root, ref)
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

// appendEnum appends what the provider takes in place of a constant or of the values of an enum: their
// types, unless the schema has a type, and those that are texts or numbers. A null is a type, and an enum
// with other values would forbid them if it was sent without.
func (w *schemaWriter) appendEnum(b []byte, schema gjson.Result, typed bool) []byte {
	values := schema.Get("enum").Array()
	if constant := schema.Get("const"); constant.Exists() {
		values = []gjson.Result{constant}
	}
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
