package translate

import (
	"encoding/json"
	"errors"
	"maps"
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
// work, in bytes, grows by what was read; beyond maxRootWork the error is ErrTooManyAlternatives.
func OneObject(schema json.RawMessage, work *int) (one json.RawMessage, joined []string, err error) {
	root := gjson.ParseBytes(schema)
	joined = slices.DeleteFunc(slices.Clone(alternatives), func(name string) bool { return !root.Get(name).IsArray() })
	if len(joined) == 0 {
		return schema, nil, nil
	}
	o := rootObject{refs: References{Root: root}, work: work, types: make(map[string][]string), seen: make(map[[2]string]bool), targets: make(map[string]map[string]bool)}
	required := o.add(root)
	if *work > maxRootWork {
		return nil, nil, ErrTooManyAlternatives
	}
	b := []byte(`{"type":"object"`)
	root.ForEach(func(key, v gjson.Result) bool {
		if name := key.Str; name != "type" && name != "properties" && name != "required" && !slices.Contains(alternatives, name) {
			b = append(append(append(append(b, ','), key.Raw...), ':'), v.Raw...)
		}
		return true
	})
	b = append(b, `,"properties":{`...)
	for i, name := range o.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(plugins.AppendString(b, name), ':')
		if types := o.types[name]; len(types) == 1 {
			b = append(b, types[0]...)
		} else {
			b = append(append(append(b, `{"anyOf":[`...), strings.Join(types, ",")...), "]}"...)
		}
	}
	if b = append(b, '}'); len(required) > 0 {
		names, _ := json.Marshal(slices.Sorted(maps.Keys(required))) // strings
		b = append(append(b, `,"required":`...), names...)
	}
	return append(b, '}'), joined, nil
}

// ErrTooManyAlternatives is the error for schemas whose alternatives are too much work to join.
var ErrTooManyAlternatives = errors.New("there are too many alternatives at its root")

const (
	// maxRootWork bounds, in bytes, what is read of the schemas of a request while their alternatives are
	// joined: each alternative with all within it, and what the references lead through.
	maxRootWork = 32 << 20
	// itemWork is the work, in bytes, for an alternative, or for a name that one requires, beside its text.
	itemWork = 64
)

// rootObject collects the properties of an object that is described by alternatives.
type rootObject struct {
	refs    References
	work    *int                       // in bytes, for all tools of the request
	names   []string                   // of the properties, in their order
	types   map[string][]string        // the schemas of the properties, by name
	seen    map[[2]string]bool         // the names with each of their schemas
	targets map[string]map[string]bool // what the targets of $ref require, nil within the target itself
}

// add adds the properties of a schema, and returns which of them it requires.
func (o *rootObject) add(schema gjson.Result) (required map[string]bool) {
	required = make(map[string]bool)
	if *o.work += itemWork + len(schema.Raw); *o.work > maxRootWork {
		return required
	}
	fields := schema.Map()
	maps.Copy(required, o.target(fields["$ref"].Str))
	fields["properties"].ForEach(func(name, v gjson.Result) bool {
		if property := [2]string{name.Str, v.Raw}; !o.seen[property] {
			o.seen[property] = true
			if o.types[name.Str] == nil {
				o.names = append(o.names, name.Str)
			}
			o.types[name.Str] = append(o.types[name.Str], v.Raw)
		}
		return true
	})
	for _, name := range fields["required"].Array() {
		required[name.Str] = true
	}
	for _, keyword := range alternatives {
		var common map[string]bool
		for i, alternative := range fields[keyword].Array() {
			more := o.add(alternative)
			switch {
			case keyword == "allOf":
				maps.Copy(required, more)
			case i == 0:
				common = more
			default:
				maps.DeleteFunc(common, func(name string, _ bool) bool { return !more[name] })
			}
		}
		maps.Copy(required, common)
	}
	*o.work += itemWork * len(required)
	return required
}

// target adds the target of a $ref once, and returns what it requires.
func (o *rootObject) target(ref string) (required map[string]bool) {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	required, ok = o.targets[pointer]
	if !ok {
		o.targets[pointer] = nil
		read := o.refs.Read
		target := o.refs.Resolve(ref)
		if *o.work += o.refs.Read - read; *o.work > maxRootWork {
			return nil
		}
		required = o.add(target)
		o.targets[pointer] = required
	}
	return required
}
