package llmotlp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// input are the messages that the model was given, from the first convention
// that has any.
func (c *call) input() []message {
	for _, read := range []func() []message{
		func() []message { return messagesOf(c.json("gen_ai.input.messages"), "user") },
		func() []message { return openLLMetry(c.list("gen_ai.prompt."), "user") },
		func() []message { return openInference(c.list("llm.input_messages."), "user") },
		func() []message { return texts(c.list("llm.prompts."), "prompt.text", "user") },
		func() []message { return c.value("gen_ai.prompt", "messages", "user") },
		c.asked,
		func() []message { return c.value("input.value", "messages", "user") },
	} {
		if messages := read(); len(messages) > 0 {
			system := messagesOf(c.json("gen_ai.system_instructions"), "system")
			if system == nil && c.text("gen_ai.system_instructions") != "" {
				system = []message{said("system", c.text("gen_ai.system_instructions"))}
			}
			return append(system, messages...)
		}
	}
	return nil
}

// output are the messages that the model answered, one for each choice.
func (c *call) output() []message {
	for _, read := range []func() []message{
		func() []message { return messagesOf(c.json("gen_ai.output.messages"), "assistant") },
		func() []message { return openLLMetry(c.list("gen_ai.completion."), "assistant") },
		func() []message { return openInference(c.list("llm.output_messages."), "assistant") },
		func() []message { return texts(c.list("llm.choices."), "completion.text", "assistant") },
		func() []message { return c.value("gen_ai.completion", "choices.#.message", "assistant") },
		c.chosen,
		func() []message { return c.value("output.value", "choices.#.message", "assistant") },
	} {
		if messages := read(); len(messages) > 0 {
			return messages
		}
	}
	return nil
}

// embedded are the texts that were embedded.
func (c *call) embedded() []string {
	var input []string
	for _, e := range c.list("embedding.embeddings.") { // OpenInference
		if text := e.text("embedding.text"); text != "" {
			input = append(input, text)
		}
	}
	for _, e := range c.list("gen_ai.prompt.") { // OpenLLMetry
		if text := e.text("content"); text != "" {
			input = append(input, text)
		}
	}
	return input
}

// openLLMetry reads messages whose fields are attributes: gen_ai.prompt.0.role.
func openLLMetry(list []attributes, role string) []message {
	var messages []message
	for _, a := range list {
		own := a.text("role")
		if own == "" {
			own = role
		}
		m := said(own, a.text("content"))
		if m.empty() { // a list or an object, from an SDK that knows such values
			m = messageOf(gjson.ParseBytes(slices.Concat([]byte(`{"content":`), orNull(a.json("content")), []byte("}"))), own)[0]
		}
		m.Reasoning += a.text("reasoning", "reasoning_content")
		m.ToolCallID, m.finish = a.text("tool_call_id"), a.text("finish_reason")
		for _, call := range a.list("tool_calls.") {
			m.call(call.text("id"), call.text("name", "function.name"), gjson.Result{Type: gjson.String, Str: call.text("arguments", "function.arguments")})
		}
		if name := a.text("function_call.name"); name != "" {
			m.call("", name, gjson.Result{Type: gjson.String, Str: a.text("function_call.arguments")})
		}
		if !m.empty() {
			messages = append(messages, m)
		}
	}
	return messages
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return null
	}
	return raw
}

// openInference reads messages whose fields are attributes:
// llm.input_messages.0.message.role.
// https://arize-ai.github.io/openinference/spec/attributes/semantic-conventions.html
func openInference(list []attributes, role string) []message {
	var messages []message
	for _, a := range list {
		own := a.text("message.role")
		if own == "" {
			own = role
		}
		m := said(own, a.text("message.content"))
		var parts []any
		var reasoning strings.Builder
		for _, part := range a.list("message.contents.") {
			switch kind := part.text("message_content.type"); kind {
			case "image":
				m.media = true
				parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": part.text("message_content.image.image.url")}})
			case "reasoning":
				reasoning.WriteString(part.text("message_content.text"))
			default:
				if text := part.text("message_content.text"); text != "" {
					parts = append(parts, textPart{"text", text})
				}
			}
		}
		if len(parts) > 0 {
			m.Content, _ = marshal(parts) // text always marshals
		}
		m.Reasoning += reasoning.String()
		m.Name, m.ToolCallID = a.text("message.name"), a.text("message.tool_call_id")
		m.finish = a.text("message.finish_reason")
		for _, call := range a.list("message.tool_calls.") {
			m.call(call.text("tool_call.id"), call.text("tool_call.function.name"), gjson.Result{Type: gjson.String, Str: call.text("tool_call.function.arguments")})
		}
		if name := a.text("message.function_call_name"); name != "" {
			m.call("", name, gjson.Result{Type: gjson.String, Str: a.text("message.function_call_arguments_json")})
		}
		if !m.empty() {
			messages = append(messages, m)
		}
	}
	return messages
}

// texts reads OpenInference's prompts and choices of text completions.
func texts(list []attributes, key, role string) []message {
	var messages []message
	for _, a := range list {
		if text := a.text(key); text != "" {
			messages = append(messages, said(role, text))
		}
	}
	return messages
}

// value reads an attribute that holds a whole body, the messages of it, or
// nothing but text.
func (c *call) value(key, place, role string) []message {
	raw := c.json(key)
	if messages := gjson.GetBytes(raw, place); messages.IsArray() {
		return messagesOf(json.RawMessage(messages.Raw), role)
	}
	if v := gjson.ParseBytes(raw); v.IsArray() && (v.Get("0.role").Exists() || isParts(v)) {
		return messagesOf(raw, role)
	}
	if text := c.text(key); text != "" {
		return []message{said(role, text)}
	}
	return nil
}

// messageEvents are the events that OpenTelemetry had for each message before its
// version 1.37, as they stand in spans, and whose message it is.
var messageEvents = map[string]string{
	"gen_ai.system.message":    "system",
	"gen_ai.user.message":      "user",
	"gen_ai.assistant.message": "assistant",
	"gen_ai.tool.message":      "tool",
}

// asked reads the events of the input.
func (c *call) asked() []message {
	var messages []message
	for _, event := range c.span.GetEvents() {
		if role, ok := messageEvents[event.GetName()]; ok {
			messages = append(messages, messagesOf(eventContent(event), role)...)
		}
	}
	return messages
}

// chosen reads the events gen_ai.choice.
func (c *call) chosen() []message {
	var messages []message
	for _, event := range c.span.GetEvents() {
		if event.GetName() != "gen_ai.choice" {
			continue
		}
		choice := gjson.ParseBytes(eventContent(event))
		inner := choice.Get("message")
		switch {
		case !inner.Exists():
			inner = choice
		case inner.Type == gjson.String && strings.HasPrefix(inner.Str, "{") && json.Valid([]byte(inner.Str)):
			inner = gjson.Parse(inner.Str)
		}
		for _, m := range messagesOf(json.RawMessage(inner.Raw), "assistant") {
			m.finish = choice.Get("finish_reason").Str
			messages = append(messages, m)
		}
	}
	return messages
}

// eventContent is what an event says, as an object: in one attribute, or in its
// attributes.
func eventContent(event *tracepb.Span_Event) json.RawMessage {
	a := make(attributes)
	a.add(event.Attributes)
	if raw := a.json("gen_ai.event.content"); raw != nil {
		return raw
	}
	return appendJSON(nil, &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{
		KvlistValue: &commonpb.KeyValueList{Values: event.Attributes},
	}}, 0)
}

// tools are the definitions of the tools that the model could call.
func (c *call) tools() []json.RawMessage {
	var tools []json.RawMessage
	add := func(name, description string, parameters json.RawMessage) {
		type function struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
		}
		tool, _ := marshal(struct { // valid JSON marshals
			Type     string   `json:"type"`
			Function function `json:"function"`
		}{"function", function{name, description, parameters}})
		tools = append(tools, tool)
	}
	eachOf(gjson.ParseBytes(c.json("gen_ai.tool.definitions")), func(tool gjson.Result) {
		if kind := tool.Get("type").Str; tool.Get("function").Exists() || kind != "" && kind != "function" {
			tools = append(tools, json.RawMessage(tool.Raw))
		} else {
			add(tool.Get("name").Str, tool.Get("description").Str, json.RawMessage(tool.Get("parameters").Raw))
		}
	})
	for _, a := range append(c.list("llm.request.functions."), c.list("gen_ai.tool.definitions.")...) {
		add(a.text("name"), a.text("description"), a.json("parameters"))
	}
	for _, a := range c.list("llm.tools.") {
		if schema := a.json("tool.json_schema"); schema != nil {
			tools = append(tools, schema)
		}
	}
	return tools
}
