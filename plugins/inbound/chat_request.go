package inbound

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// chatFields are the fields of Chat Completions that Responses has, too, and "stop", "seed" and
// "top_k", which providers know beside those of Responses.
var chatFields = []string{
	"model", "stream", "stream_options", "temperature", "top_p", "top_k", "top_logprobs", "presence_penalty", "frequency_penalty",
	"parallel_tool_calls", "service_tier", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_options",
	"prompt_cache_retention", "metadata", "moderation", "seed", "stop",
}

func parseChat(raw []byte) (*translate.Request, error) {
	if err := translate.CheckObject(raw); err != nil {
		return nil, err
	}
	c := chatRequest{custom: make(map[string]bool)}
	var err error
	gjson.Parse(plugins.View(raw)).ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.Null {
			err = c.field(key.Str, v)
		}
		return err == nil
	})
	if err != nil {
		return nil, c.names.Error(err)
	}
	if !c.limit.Exists() {
		c.limit, c.limitName = c.oldLimit, "max_tokens"
	}
	if c.limit.Exists() {
		c.set("max_output_tokens", c.limit.Raw, c.limitName)
	}
	c.settings()
	if !c.spoken {
		return nil, translate.Missing("messages")
	}
	p, err := c.parse()
	if err != nil {
		return nil, err
	}
	showReasoning(p)
	return p, nil
}

type chatRequest struct {
	body
	custom map[string]bool // ids of calls of custom tools
	spoken bool            // there are messages

	limit, oldLimit   gjson.Result // max_completion_tokens and max_tokens
	limitName         string
	effort, verbosity gjson.Result
	format            []byte
	store             bool
}

func (c *chatRequest) field(name string, v gjson.Result) error {
	switch name {
	case "messages":
		return c.messages(v)
	case "max_completion_tokens":
		c.limit, c.limitName = v, name
	case "max_tokens":
		c.oldLimit = v
	case "reasoning_effort":
		c.effort = v
	case "verbosity":
		c.verbosity = v
	case "response_format":
		c.responseFormat(v)
	case "tools":
		return c.readTools(v)
	case "tool_choice":
		c.toolChoice(v)
	case "web_search_options":
		c.leaveOut(name, v, "search_context_size", "user_location")
		tool := member([]byte(`{"type":"web_search"`), "search_context_size", v.Get("search_context_size"))
		if place := v.Get("user_location.approximate"); place.IsObject() {
			tool = append(plugins.AppendKey(tool, "user_location"), flat("approximate", place)...)
		}
		c.tool(append(tool, '}'))
	case "logprobs":
		if v.Bool() {
			c.include = append(element(c.include), `"message.output_text.logprobs"`...)
			c.name("include.message.output_text.logprobs", name)
		}
	case "store":
		c.store = v.Bool()
	case "n":
		if v.Num != 1 {
			return unsupported(name, "a request has one choice.")
		}
	case "modalities":
		for _, m := range v.Array() {
			if m.Str != "text" {
				return unsupported(name, "the answer can be text alone.")
			}
		}
	case "functions", "function_call":
		return unsupported(name, "use 'tools' and 'tool_choice'.")
	default:
		if slices.Contains(chatFields, name) {
			c.set(name, v.Raw, name)
		} else {
			c.foreign = append(c.foreign, name)
		}
	}
	return nil
}

// settings sets the fields that Responses nests, and those whose default differs in Responses.
func (c *chatRequest) settings() {
	if c.effort.Exists() {
		c.set("reasoning", `{"effort":`+c.effort.Raw+`}`, "")
		c.name("reasoning.effort", "reasoning_effort")
	}
	if c.format != nil || c.verbosity.Exists() {
		settings := member([]byte(`{"format":`+string(c.textFormat())), "verbosity", c.verbosity)
		c.set("text", string(settings)+"}", "")
		c.name("text.verbosity", "verbosity")
		c.name("text.format", "response_format")
	}
	c.set("store", strconv.FormatBool(c.store), "")
}

func (c *chatRequest) textFormat() []byte {
	if c.format == nil {
		return []byte(`{"type":"text"}`)
	}
	return c.format
}

func (c *chatRequest) responseFormat(v gjson.Result) {
	c.format = []byte(v.Raw)
	if schema := v.Get("json_schema"); schema.IsObject() && v.Get("type").Str == "json_schema" {
		c.format = flat("json_schema", schema)
	}
}

func (c *chatRequest) readTools(v gjson.Result) error {
	if !v.IsArray() {
		return plugins.Invalid("tools", "Invalid type for 'tools': expected an array.")
	}
	for i, t := range v.Array() {
		param := fmt.Sprintf("tools[%d]", i)
		switch kind := t.Get("type").Str; kind {
		case "function", "custom":
			nested := t.Get(kind)
			if !nested.IsObject() {
				return translate.Missing(param + "." + kind)
			}
			tool := flatTool(kind, nested)
			c.tool(append(appendCacheBreakpoint(tool[:len(tool)-1], t.Get("cache_control")), '}'))
		default:
			c.tool(hostedTool(t))
		}
	}
	return nil
}

func flatTool(kind string, nested gjson.Result) []byte {
	grammar := nested.Get("format.grammar")
	if !grammar.IsObject() {
		return flat(kind, nested)
	}
	b := plugins.AppendString([]byte(`{"type":`), kind)
	b = member(b, "name", nested.Get("name"))
	b = member(b, "description", nested.Get("description"))
	b = append(plugins.AppendKey(b, "format"), flat("grammar", grammar)...)
	return append(b, '}')
}

func (c *chatRequest) toolChoice(v gjson.Result) {
	choice := []byte(v.Raw)
	switch kind := v.Get("type").Str; kind {
	case "function", "custom":
		choice = flat(kind, v.Get(kind))
	case "allowed_tools":
		allowed := v.Get("allowed_tools")
		var tools []byte
		for _, t := range allowed.Get("tools").Array() {
			kind := t.Get("type").Str
			tools = append(element(tools), flat(kind, t.Get(kind))...)
		}
		choice = member([]byte(`{"type":"allowed_tools"`), "mode", allowed.Get("mode"))
		choice = append(plugins.AppendKey(choice, "tools"), '[')
		choice = append(append(choice, tools...), ']', '}')
	}
	c.set("tool_choice", string(choice), "")
}
