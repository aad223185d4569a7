package translate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// ParseRequest reads the body of POST /v1/responses into the neutral request, which refers to
// the body: the body must not change. Errors are *Error and name the field. Each input item is
// in one of the turns; items of hosted tools are left out with a warning.
func ParseRequest(body []byte) (*Request, error) { return ParseMCP(body, nil) }

// ParseMCP is ParseRequest for a host that calls the tools of MCP servers: functions are
// in the place of each tool `mcp`, by its server_label, and its calls in the input are
// calls of functions with their outputs.
func ParseMCP(body []byte, functions map[string][]Tool) (*Request, error) {
	if err := check(body, false); err != nil {
		return nil, err
	}
	p := &Request{Raw: body, mcp: functions}
	var input, tools, choice gjson.Result
	gjson.Parse(plugins.View(body)).ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "input":
			input = v
		case "tools":
			tools = v
		case "tool_choice":
			choice = v
		case "text", "reasoning":
			v.ForEach(func(name, v gjson.Result) bool {
				p.set(key.Str+"."+name.Str, v)
				return true
			})
		default:
			p.set(key.Str, v)
		}
		return true
	})
	if p.Model == "" {
		return nil, Missing("model")
	}
	if err := p.parseFormat(); err != nil {
		return nil, err
	}
	if err := p.parseTools(tools.Array(), "tools", ""); err != nil {
		return nil, err
	}
	p.nameMCPTools()
	if err := p.parseToolChoice(choice); err != nil {
		return nil, err
	}
	if err := p.parseInput(input); err != nil {
		return nil, err
	}
	return p, nil
}

// set stores a value of the body, whose type was checked. null unsets the field.
func (p *Request) set(path string, v gjson.Result) {
	at := fields[path].at
	if at == nil {
		return
	}
	known := v.Type != gjson.Null
	switch to := at(p).(type) {
	case *string:
		*to = v.Str
	case *bool:
		*to = v.Bool()
	case **bool:
		*to = optionalBool(v)
	case **float64:
		if *to = nil; known {
			n := v.Num
			*to = &n
		}
	case *plugins.Count:
		*to = plugins.Count{N: v.Int(), Valid: known}
	case *[]string:
		*to = nil
		for _, value := range v.Array() {
			*to = append(*to, value.Str)
		}
	case *json.RawMessage:
		if *to = nil; known {
			*to = json.RawMessage(v.Raw)
		}
	}
}

func (p *Request) parseFormat() error {
	const param = "text.format"
	v := gjson.GetBytes(p.Raw, param)
	if v.Type == gjson.Null {
		return nil
	}
	if !v.IsObject() {
		return invalidType(param, []jsonType{anObject}, v)
	}
	p.Format = Format{
		Type:        v.Get("type").Str,
		Name:        v.Get("name").Str,
		Description: v.Get("description").Str,
		Strict:      optionalBool(v.Get("strict")),
	}
	switch p.Format.Type {
	case "text", "json_object":
		return nil
	case "json_schema":
		schema := v.Get("schema")
		if !schema.IsObject() {
			return Missing(param + ".schema")
		}
		p.Format.Schema = json.RawMessage(schema.Raw)
		return nil
	}
	return InvalidValue(param+".type", p.Format.Type, []string{"text", "json_object", "json_schema"})
}

// parseTools adds tools. Those of namespaces become flat.
func (p *Request) parseTools(tools []gjson.Result, param, namespace string) error {
	for i, v := range tools {
		t := Tool{
			Param:       indexPath(param, i),
			Type:        v.Get("type").Str,
			Name:        v.Get("name").Str,
			Namespace:   namespace,
			Description: v.Get("description").Str,
			Strict:      optionalBool(v.Get("strict")),
			CacheMark:   cacheMarkOf(v),
			Raw:         json.RawMessage(v.Raw),
		}
		if t.Type == "" {
			return Missing(t.Param + ".type")
		}
		if functions, ok := p.mcp[v.Get("server_label").Str]; ok && t.Type == "mcp" {
			for _, f := range functions {
				f.Param, f.Type = t.Param, "function"
				p.Tools = append(p.Tools, f)
			}
			markLast(p.Tools[len(p.Tools)-len(functions):], t.CacheMark)
			continue
		}
		if t.Type == "namespace" && namespace == "" {
			if t.Name == "" {
				return Missing(t.Param + ".name")
			}
			before := len(p.Tools)
			if err := p.parseTools(v.Get("tools").Array(), t.Param+".tools", t.Name); err != nil {
				return err
			}
			markLast(p.Tools[before:], t.CacheMark)
			continue
		}
		if !t.Hosted() {
			if t.Name == "" {
				return Missing(t.Param + ".name")
			}
			t.Name = flat(namespace, t.Name)
			t.Parameters = optionalObject(v.Get("parameters"))
			t.Format = optionalObject(v.Get("format"))
		}
		p.Tools = append(p.Tools, t)
	}
	return nil
}

// markLast gives the mark of a tool that is not sent itself to the last one of tools: the prefix to be
// cached ends with it.
func markLast(tools []Tool, mark CacheMark) {
	if mark.CacheBreakpoint && len(tools) > 0 {
		tools[len(tools)-1].CacheMark = mark
	}
}

func (p *Request) parseToolChoice(v gjson.Result) error {
	if v.Type == gjson.String {
		p.ToolChoice.Mode = v.Str
		return fields["tool_choice"].check("tool_choice", v, true)
	}
	if !v.IsObject() {
		return nil
	}
	if v.Get("type").Str == "allowed_tools" {
		p.ToolChoice.Mode = v.Get("mode").Str
		p.ToolChoice.Allowed = []string{}
		for _, t := range v.Get("tools").Array() {
			if names, ok := p.mcpNames(t); ok {
				p.ToolChoice.Allowed = append(p.ToolChoice.Allowed, names...)
				continue
			}
			name := t.Get("type").Str
			if t.Get("name").Exists() {
				name = FlatName(t)
			}
			p.ToolChoice.Allowed = append(p.ToolChoice.Allowed, name)
		}
		if mode := p.ToolChoice.Mode; mode != "auto" && mode != "required" {
			return InvalidValue("tool_choice.mode", mode, []string{"auto", "required"})
		}
		return nil
	}
	if names, ok := p.mcpNames(v); ok && len(names) > 0 {
		p.ToolChoice = ToolChoice{Mode: "required", Allowed: names}
		return nil
	}
	p.ToolChoice = ToolChoice{Mode: "required", Type: v.Get("type").Str, Name: FlatName(v)}
	if p.ToolChoice.Type == "" {
		return Missing("tool_choice.type")
	}
	if name := p.ToolChoice.Name; name != "" && p.Tool(name) == nil && p.ToolChoice.Type != "mcp" {
		return plugins.Invalid("tool_choice", "Tool choice '%s' not found in 'tools' parameter.", name)
	}
	return nil
}

func optionalBool(v gjson.Result) *bool {
	if !v.IsBool() {
		return nil
	}
	b := v.Bool()
	return &b
}

func optionalObject(v gjson.Result) json.RawMessage {
	if !v.IsObject() {
		return nil
	}
	return json.RawMessage(v.Raw)
}

func indexPath(param string, i int) string { return fmt.Sprintf("%s[%d]", param, i) }

func appendCompact(b []byte, raw json.RawMessage) []byte {
	w := bytes.NewBuffer(b)
	if json.Compact(w, raw) != nil {
		return append(b, "null"...)
	}
	return w.Bytes()
}

// compact returns a provider's JSON in UTF-8 and without white space. It is nil if the JSON is invalid or does
// not begin with open.
func compact(raw json.RawMessage, open byte) []byte {
	b := appendCompact(nil, bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	if len(b) == 0 || b[0] != open {
		return nil
	}
	return b
}

func appendElements(b, elements []byte) []byte {
	if len(b) > 0 && len(elements) > 0 {
		b = append(b, ',')
	}
	return append(b, elements...)
}
