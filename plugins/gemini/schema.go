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
)

// acceptable returns the schema of a field as the provider takes it: nothing beside a reference
// but other keywords with a $, no allOf and no const
// (https://ai.google.dev/api/caching#FunctionDeclaration). Pydantic writes a description or a
// default beside references. A schema that has none of these is returned as it is.
func acceptable(p *translate.Request, field string, schema json.RawMessage) (json.RawMessage, error) {
	has := func(keyword string) bool { return bytes.Contains(schema, []byte(keyword)) }
	if len(schema) > maxInlined || !has(`"$ref"`) && !has(`"const"`) && !has(`"allOf"`) {
		return schema, nil
	}
	w := schemaWriter{field: field, root: gjson.ParseBytes(schema)}
	written := w.appendSchema(nil, w.root)
	if w.err != nil {
		return nil, w.err
	}
	if w.dropsConst {
		return written, p.DropWithWarning(field, "sent without constants that are neither text nor numbers, which the provider does not take")
	}
	return written, nil
}

// schemaWriter writes a schema as the provider takes it.
type schemaWriter struct {
	field      string       // of the request, for errors
	root       gjson.Result // the schema, into which references point
	enclosing  []string     // the inlined references in which the writer is, the outermost first
	inlined    int          // how many references were inlined
	dropsConst bool         // a constant was left out
	err        error        // the first reference that points nowhere
}

func (w *schemaWriter) appendSchema(b []byte, schema gjson.Result) []byte {
	if !schema.IsObject() {
		return append(b, schema.Raw...)
	}
	return append(w.appendMembers(append(b, '{'), schema, make(map[string]bool)), '}')
}

// appendMembers appends the members of a schema but those that are written already, and then
// those of the schema that it extends.
func (w *schemaWriter) appendMembers(b []byte, schema gjson.Result, written map[string]bool) []byte {
	ref := schema.Get("$ref")
	base := ref
	if parts := schema.Get("allOf"); !ref.Exists() && len(parts.Array()) == 1 { // Pydantic 1 has references in these
		base = parts.Get("0")
	}
	inlines := base.IsObject() || ref.Type == gjson.String && w.inlines(schema, ref.Str, len(b))
	keepsRef := ref.Exists() && !inlines
	schema.ForEach(func(key, v gjson.Result) bool {
		name := key.Str
		switch {
		case written[name],
			inlines && (name == "$ref" || name == "allOf" && base.IsObject()),
			keepsRef && !strings.HasPrefix(name, "$"),
			name == "enum" && schema.Get("const").Exists():
			return true
		case name == "const":
			if !keepsRef {
				b = w.appendConst(b, schema, v, written)
			}
			return true
		case name == "definitions":
			name = "$defs"
		}
		written[name] = true
		b = w.appendValue(appendName(b, name), name, v)
		return true
	})
	switch {
	case inlines && base.IsObject():
		return w.appendMembers(b, base, written)
	case inlines:
		w.inlined++
		w.enclosing = append(w.enclosing, ref.Str)
		b = w.appendMembers(b, w.resolve(ref.Str), written)
		w.enclosing = w.enclosing[:len(w.enclosing)-1]
	}
	return b
}

// appendValue appends the value of a keyword, and the schemas within the value as the provider takes
// them.
func (w *schemaWriter) appendValue(b []byte, keyword string, v gjson.Result) []byte {
	switch {
	case keyword == "$ref":
		text, _ := json.Marshal(strings.Replace(v.Str, "#/definitions/", "#/$defs/", 1))
		return append(b, text...)
	case v.IsObject() && (keyword == "properties" || keyword == "$defs"):
		b = append(b, '{')
		v.ForEach(func(key, v gjson.Result) bool {
			b = w.appendSchema(appendName(b, key.Str), v)
			return true
		})
		return append(b, '}')
	case keyword == "items" || keyword == "additionalProperties":
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

// appendConst appends what the provider takes in place of a constant.
func (w *schemaWriter) appendConst(b []byte, schema, v gjson.Result, written map[string]bool) []byte {
	kind := ""
	switch v.Type {
	case gjson.String:
		kind = "string"
	case gjson.Number:
		kind = "number"
	case gjson.Null:
		kind = "null"
	case gjson.True, gjson.False:
		kind, w.dropsConst = "boolean", true
	default:
		w.dropsConst = true
	}
	if kind != "" && !schema.Get("type").Exists() && !written["type"] {
		written["type"] = true
		b = append(appendName(b, "type"), `"`+kind+`"`...)
	}
	if (kind == "string" || kind == "number") && !written["enum"] {
		written["enum"] = true
		b = append(append(append(appendName(b, "enum"), '['), v.Raw...), ']')
	}
	return b
}
