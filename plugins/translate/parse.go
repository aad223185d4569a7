package translate

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// ParseRequest reads the body of POST /v1/responses into the neutral request.
// Errors are *Error and name the field. Each input item is in one of the turns;
// items of hosted tools are left out with a warning.
func ParseRequest(body []byte) (*Request, error) {
	if err := check(body, false); err != nil {
		return nil, err
	}
	p := &Request{Raw: body}
	var input, tools, choice gjson.Result
	gjson.ParseBytes(body).ForEach(func(key, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch key.Str {
		case "model":
			p.Model = v.Str
		case "stream":
			p.Stream = v.Bool()
		case "instructions":
			p.Instructions = v.Str
		case "input":
			input = v
		case "tools":
			tools = v
		case "tool_choice":
			choice = v
		case "parallel_tool_calls":
			b := v.Bool()
			p.ParallelToolCalls = &b
		case "text":
			p.Verbosity = v.Get("verbosity").Str
		case "reasoning":
			p.Reasoning = Reasoning{Effort: v.Get("effort").Str, Summary: v.Get("summary").Str}
		case "temperature":
			p.Temperature = &v.Num
		case "top_p":
			p.TopP = &v.Num
		case "presence_penalty":
			p.PresencePenalty = &v.Num
		case "frequency_penalty":
			p.FrequencyPenalty = &v.Num
		case "top_logprobs":
			p.TopLogprobs = plugins.Known(v.Int())
		case "max_output_tokens":
			p.MaxOutputTokens = plugins.Known(v.Int())
		case "max_tool_calls":
			p.MaxToolCalls = plugins.Known(v.Int())
		case "include":
			for _, value := range v.Array() {
				p.Include = append(p.Include, value.Str)
			}
		case "service_tier":
			p.ServiceTier = v.Str
		case "truncation":
			p.Truncation = v.Str
		case "user":
			p.User = v.Str
		case "safety_identifier":
			p.SafetyIdentifier = v.Str
		case "prompt_cache_key":
			p.PromptCacheKey = v.Str
		case "metadata":
			p.Metadata = json.RawMessage(v.Raw)
		}
		return true
	})
	if p.Model == "" {
		return nil, missing("model")
	}
	if err := p.parseFormat(); err != nil {
		return nil, err
	}
	if err := p.parseTools(tools.Array(), "tools", ""); err != nil {
		return nil, err
	}
	if err := p.parseToolChoice(choice); err != nil {
		return nil, err
	}
	if err := p.parseInput(input); err != nil {
		return nil, err
	}
	return p, nil
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
			return missing(param + ".schema")
		}
		p.Format.Schema = json.RawMessage(schema.Raw)
		return nil
	}
	return invalidValue(param+".type", p.Format.Type, []string{"text", "json_object", "json_schema"})
}

// parseTools adds tools, and those of namespaces flat.
func (p *Request) parseTools(tools []gjson.Result, param, namespace string) error {
	for i, v := range tools {
		t := Tool{
			Param:       at(param, i),
			Type:        v.Get("type").Str,
			Name:        v.Get("name").Str,
			Namespace:   namespace,
			Description: v.Get("description").Str,
			Strict:      optionalBool(v.Get("strict")),
			Raw:         json.RawMessage(v.Raw),
		}
		if t.Type == "" {
			return missing(t.Param + ".type")
		}
		if t.Type == "namespace" && namespace == "" {
			if t.Name == "" {
				return missing(t.Param + ".name")
			}
			if err := p.parseTools(v.Get("tools").Array(), t.Param+".tools", t.Name); err != nil {
				return err
			}
			continue
		}
		if !t.Hosted() {
			if t.Name == "" {
				return missing(t.Param + ".name")
			}
			t.Name = flat(namespace, t.Name)
			t.Parameters = optionalObject(v.Get("parameters"))
			t.Format = optionalObject(v.Get("format"))
		}
		p.Tools = append(p.Tools, t)
	}
	return nil
}

func (p *Request) parseToolChoice(v gjson.Result) error {
	if v.Type == gjson.String {
		p.ToolChoice.Mode = v.Str
		return documented["tool_choice"].check("tool_choice", v, true)
	}
	if !v.IsObject() {
		return nil
	}
	if v.Get("type").Str == "allowed_tools" {
		p.ToolChoice.Mode = v.Get("mode").Str
		p.ToolChoice.Allowed = []string{}
		for _, t := range v.Get("tools").Array() {
			name := t.Get("type").Str
			if t.Get("name").Exists() {
				name = flatName(t)
			}
			p.ToolChoice.Allowed = append(p.ToolChoice.Allowed, name)
		}
		if mode := p.ToolChoice.Mode; mode != "auto" && mode != "required" {
			return invalidValue("tool_choice.mode", mode, []string{"auto", "required"})
		}
		return nil
	}
	p.ToolChoice = ToolChoice{Mode: "required", Type: v.Get("type").Str, Name: flatName(v)}
	if p.ToolChoice.Type == "" {
		return missing("tool_choice.type")
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

// at is the path of an element.
func at(param string, i int) string { return fmt.Sprintf("%s[%d]", param, i) }
