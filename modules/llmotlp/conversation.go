package llmotlp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/translate"
)

// side says where the conventions have what one side of a call said.
type side struct {
	role     string
	messages string   // OpenTelemetry's, in one attribute
	flat     []string // messages whose fields are attributes
	texts    [2]string
	legacy   []string // the bodies of OpenLLMetry, which come before events
	bodies   []string // the bodies of the others: the provider's own, or nothing but text
	paths    []string // the paths of the messages in a body
	events   func(*call) []message
}

var (
	requestSide = side{
		role: "user", messages: "gen_ai.input.messages", flat: []string{"gen_ai.prompt.", "llm.input_messages."},
		texts: [2]string{"llm.prompts.", "prompt.text"}, legacy: []string{"gen_ai.prompt"},
		bodies: []string{observation + "input", "request_data", "ai.prompt.messages", "ai.prompt", "mlflow.spanInputs", "genkit:input", "input.value"},
		paths:  []string{"messages", "input", "contents", "prompt"}, events: (*call).askedEvents,
	}
	answered = side{
		role: "assistant", messages: "gen_ai.output.messages", flat: []string{"gen_ai.completion.", "llm.output_messages."},
		texts: [2]string{"llm.choices.", "completion.text"}, legacy: []string{"gen_ai.completion"},
		bodies: []string{observation + "output", "response_data", "ai.response.text", "ai.response.object", "mlflow.spanOutputs", "genkit:output", "output.value"},
		paths:  []string{"choices.#.message", "message", "combined_chunk_content", "generations.0.#.message"}, events: (*call).choiceEvents,
	}
)

// messages returns the messages of the first convention that has any. An answer has a message
// for each choice.
func (c *call) messages(s *side) []message {
	for _, read := range []func() []message{
		func() []message { return messagesOf(c.json(s.messages), s.role) },
		func() []message { return flatMessages(c.list(s.flat[0]), s.role) },
		func() []message { return flatMessages(c.list(s.flat[1]), s.role) },
		func() []message { return texts(c.list(s.texts[0]), s.texts[1], s.role) },
		func() []message { return c.bodies(s.legacy, s) },
		func() []message { return s.events(c) },
		func() []message { return c.bodies(s.bodies, s) },
	} {
		if messages := read(); len(messages) > 0 {
			return messages
		}
	}
	return nil
}

// bodies reads the first of the bodies that has messages. The AI SDK has the calls of tools in
// an attribute of their own.
func (c *call) bodies(names []string, s *side) (messages []message) {
	for _, name := range names {
		if messages = c.body(name, s); len(messages) > 0 {
			break
		}
	}
	if s == &answered {
		eachOf(gjson.ParseBytes(c.json("ai.response.toolCalls")), func(call gjson.Result) {
			if len(messages) == 0 {
				messages = []message{{Role: s.role, Content: null}}
			}
			messages[0].toolCall(call)
		})
	}
	return messages
}

// input are the messages that the model was given, with its instructions.
func (c *call) input() []message {
	messages := c.messages(&requestSide)
	if len(messages) == 0 {
		return nil
	}
	system := messagesOf(c.json("gen_ai.system_instructions"), "system")
	if text := c.text("gen_ai.system_instructions"); system == nil && text != "" {
		system = []message{textMessage("system", text)}
	}
	return append(system, messages...)
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
	for _, key := range []string{"ai.values", "ai.value"} { // AI SDK, which writes each as JSON
		for _, text := range c.texts(key) {
			input = append(input, cmp.Or(gjson.Parse(text).Str, text))
		}
	}
	if len(input) == 0 {
		for _, key := range []string{"request_data", "mlflow.spanInputs", "input.value"} {
			switch v := gjson.GetBytes(c.json(key), "input"); {
			case v.Type == gjson.String:
				return []string{v.Str}
			case v.IsArray():
				eachOf(v, func(text gjson.Result) { input = append(input, text.String()) })
				return input
			}
		}
	}
	return input
}

// flatMessages reads messages whose fields are attributes: OpenLLMetry's, like
// gen_ai.prompt.0.role, and OpenInference's, like llm.input_messages.0.message.role.
// https://arize-ai.github.io/openinference/spec/attributes/semantic-conventions.html
func flatMessages(list []attributes, role string) []message {
	var messages []message
	for _, a := range list {
		m := a.flatContent(cmp.Or(a.text("role", "message.role"), role))
		m.Reasoning += a.text("reasoning", "reasoning_content")
		m.Name, m.ToolCallID = a.text("message.name"), a.text("tool_call_id", "message.tool_call_id")
		m.finish = a.text("finish_reason", "message.finish_reason")
		for _, call := range append(a.list("tool_calls."), a.list("message.tool_calls.")...) {
			m.call(call.text("id", "tool_call.id"), call.text("name", "function.name", "tool_call.function.name"),
				call.text("arguments", "function.arguments", "tool_call.function.arguments"))
		}
		if name := a.text("function_call.name", "message.function_call_name"); name != "" {
			m.call("", name, a.text("function_call.arguments", "message.function_call_arguments_json"))
		}
		if !m.empty() {
			messages = append(messages, m)
		}
	}
	return messages
}

// flatContent is a message with the content that attributes have: text, a list or
// an object from an SDK that knows such values, or OpenInference's parts.
func (a attributes) flatContent(role string) message {
	m := textMessage(role, a.text("content", "message.content"))
	if raw := a.json("content"); m.empty() && raw != nil {
		m = messageOf(gjson.ParseBytes(slices.Concat([]byte(`{"content":`), raw, []byte("}"))), role)[0]
	}
	var parts []any
	var reasoning strings.Builder
	for _, part := range a.list("message.contents.") {
		text := part.text("message_content.text")
		switch kind := part.text("message_content.type"); {
		case kind == "image":
			m.media = true
			parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": part.text("message_content.image.image.url")}})
		case kind == "reasoning":
			reasoning.WriteString(text)
		case text != "":
			parts = append(parts, textPart{"text", text})
		}
	}
	if len(parts) > 0 {
		m.Content, _ = translate.Encode(parts) // text always marshals
	}
	m.Reasoning += reasoning.String()
	return m
}

// texts reads OpenInference's prompts and choices of text completions.
func texts(list []attributes, key, role string) []message {
	var messages []message
	for _, a := range list {
		if text := a.text(key); text != "" {
			messages = append(messages, textMessage(role, text))
		}
	}
	return messages
}

// body reads an attribute that holds a whole body, the messages of a body, or
// nothing but text.
func (c *call) body(key string, s *side) []message {
	if c.attributes[key] == nil {
		return nil
	}
	raw := c.json(key)
	if v := gjson.ParseBytes(raw); v.IsArray() && (v.Get("0.role").Exists() || isParts(v)) || v.Get("role").Exists() {
		return messagesOf(raw, s.role)
	}
	for _, path := range s.paths {
		if found := gjson.GetBytes(raw, path); found.IsArray() && found.Get("#").Int() > 0 || found.IsObject() || found.Type == gjson.String {
			return messagesOf(json.RawMessage(found.Raw), s.role)
		}
	}
	if text := c.text(key); text != "" {
		return []message{textMessage(s.role, text)}
	}
	return nil
}

// messageEvents are the events of messages in OpenTelemetry before version 1.37, each with the
// role of its message.
var messageEvents = map[string]string{
	"gen_ai.system.message":    "system",
	"gen_ai.user.message":      "user",
	"gen_ai.assistant.message": "assistant",
	"gen_ai.tool.message":      "tool",
}

// askedEvents reads the events of the input.
func (c *call) askedEvents() []message {
	var messages []message
	for _, event := range c.span.GetEvents() {
		if role, ok := messageEvents[event.GetName()]; ok {
			messages = append(messages, messagesOf(eventContent(event), role)...)
		}
	}
	return messages
}

// choiceEvents reads the events gen_ai.choice.
func (c *call) choiceEvents() []message {
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

// eventContent returns the content of an event as an object. One attribute has the object, or
// each attribute has a member.
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
		function := &chat.Function{Name: name, Description: description, Parameters: parameters}
		tool, _ := translate.Encode(chat.Tool{Type: "function", Function: function}) // valid JSON marshals
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
