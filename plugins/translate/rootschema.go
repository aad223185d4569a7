package translate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// alternatives are the keywords that some providers refuse at the root of a tool's parameters.
var alternatives = []string{"anyOf", "oneOf", "allOf"}

// OneObject returns the schema of a tool's parameters without alternatives at its root: one object
// with the properties of all of them. A property is required if every alternative of anyOf or oneOf
// requires it, or one of allOf. joined is what was joined, nil if the schema is returned as it is.
func OneObject(schema json.RawMessage) (one json.RawMessage, joined []string) {
	root := gjson.ParseBytes(schema)
	joined = slices.DeleteFunc(slices.Clone(alternatives), func(name string) bool { return !root.Get(name).IsArray() })
	if len(joined) == 0 {
		return schema, nil
	}
	o := rootObject{root: root, types: make(map[string]string)}
	o.required = o.add(root, maxRootDepth)
	b := []byte(`{"type":"object"`)
	root.ForEach(func(key, v gjson.Result) bool {
		if name := key.Str; name != "type" && name != "properties" && name != "required" && !slices.Contains(alternatives, name) {
			b = append(plugins.AppendKey(b, name), v.Raw...)
		}
		return true
	})
	b = append(b, `,"properties":{`...)
	for i, name := range o.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(plugins.AppendString(b, name), ':'), o.types[name]...)
	}
	if b = append(b, '}'); len(o.required) > 0 {
		required, _ := json.Marshal(o.required) // strings
		b = append(append(b, `,"required":`...), required...)
	}
	return append(b, '}'), joined
}

// maxRootDepth bounds how deep alternatives and references within alternatives are followed.
const maxRootDepth = 8

// rootObject collects the properties of an object that is described by alternatives.
type rootObject struct {
	root     gjson.Result
	names    []string          // in their order
	types    map[string]string // the schemas of the properties, by name
	required []string
}

// add adds the properties of a schema, and returns which of them it requires.
func (o *rootObject) add(schema gjson.Result, depth int) (required []string) {
	if depth == 0 {
		return nil
	}
	if path, ok := strings.CutPrefix(schema.Get("$ref").Str, "#/"); ok {
		schema = o.root.Get(strings.ReplaceAll(gjsonPath(path), "/", "."))
	}
	schema.Get("properties").ForEach(func(name, v gjson.Result) bool {
		switch known, ok := o.types[name.Str]; {
		case !ok:
			o.names = append(o.names, name.Str)
			o.types[name.Str] = v.Raw
		case known != v.Raw:
			o.types[name.Str] = `{"anyOf":[` + known + `,` + v.Raw + `]}`
		}
		return true
	})
	for _, name := range schema.Get("required").Array() {
		required = append(required, name.Str)
	}
	for _, keyword := range alternatives {
		var common []string
		for i, alternative := range schema.Get(keyword).Array() {
			more := o.add(alternative, depth-1)
			switch {
			case keyword == "allOf":
				required = append(required, more...)
			case i == 0:
				common = more
			default:
				common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(more, name) })
			}
		}
		required = append(required, common...)
	}
	slices.Sort(required)
	return slices.Compact(required)
}

// gjsonPath escapes what is no letter in a path.
func gjsonPath(pointer string) string {
	return strings.NewReplacer(".", `\.`, "*", `\*`, "?", `\?`, "$", `\$`, "@", `\@`, "|", `\|`, "#", `\#`).Replace(pointer)
}
