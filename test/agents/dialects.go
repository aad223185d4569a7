package agents

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weirhq/weir/plugins"
)

type object = map[string]any

// at is the part of a request where a message stands.
func (c *Client) at(messages []Message, i int) string {
	_, before := c.list(messages[:i+1], "")
	at := len(before) - 1
	if c.Dialect == plugins.Responses { // calls of tools are items of their own
		_, before = c.list(messages[:i], "")
		at = len(before)
	}
	if c.Dialect == plugins.Chat { // the first message is the instructions
		at++
	}
	return fmt.Sprintf("messages[%d]", at)
}

// render writes the request of a call, and returns the tokens of what stands before the
// messages.
func (t *thread) render(c *Call) (prefix int) {
	name, list := t.Client.list(t.messages, t.life)
	body := object{"model": t.model, name: list, "stream": t.Client.Stream}
	prefix = len(t.system) / 4
	var tools []object
	for _, tool := range t.tools {
		prefix += len(tool) / 4
		name, description, _ := strings.Cut(tool, " ")
		tools = append(tools, object{"name": name, "description": description})
	}
	switch t.Client.Dialect {
	case plugins.Chat:
		c.Path = "/v1/chat/completions"
		body[name] = append([]object{{"role": "system", "content": t.system}}, list...)
		for i, tool := range tools {
			tools[i] = object{"type": "function", "function": tool}
		}
	case plugins.Responses:
		c.Path = "/v1/responses"
		body["instructions"] = t.system
		for i := range tools {
			tools[i]["type"] = "function"
		}
	case plugins.Messages:
		c.Path = "/v1/messages"
		system := object{"type": "text", "text": t.system}
		if !t.unmarked {
			system["cache_control"] = object{"type": "ephemeral"}
		}
		body["system"], body["max_tokens"] = []object{system}, 4096
		for _, tool := range tools {
			tool["input_schema"] = object{"type": "object"}
		}
		if t.unmarked {
			unmark(list)
		}
	case plugins.GenerateContent:
		c.Path = "/v1beta/models/" + t.model + ":generateContent"
		delete(body, "model")
		delete(body, "stream")
		body["systemInstruction"] = object{"parts": []object{{"text": t.system}}}
		if len(tools) > 0 {
			tools = []object{{"functionDeclarations": tools}}
		}
	}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	if t.Client.Dialect == plugins.Chat || t.Client.Dialect == plugins.Responses {
		if t.cacheKey != "" {
			body["prompt_cache_key"] = t.cacheKey
		}
		if t.life != "" {
			body["prompt_cache_retention"] = t.life
		}
	}
	c.Header = t.header()
	c.Body = Encode(body)
	return prefix
}

func (t *thread) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	agent, parent := t.agent, t.parentAgent
	switch t.Client.Headers {
	case "claude":
		if agent == "main" {
			agent = ""
		}
		if parent == "main" {
			parent = ""
		}
		set("X-Claude-Code-Session-Id", t.id)
		set("X-Claude-Code-Agent-Id", agent)
		set("X-Claude-Code-Parent-Agent-Id", parent)
	case "codex":
		if parent != "" {
			parent = t.id + "." + parent
		}
		set("Session-Id", t.id)
		set("Thread-Id", t.id+"."+agent)
		set("X-Codex-Parent-Thread-Id", parent)
	}
	if !t.Client.Gateway {
		set(map[string]string{"openai": "Authorization", "anthropic": "X-Api-Key", "gemini": "X-Goog-Api-Key"}[t.Client.Provider], t.key)
	}
	return h
}

func unmark(list []object) {
	for _, m := range list {
		for _, part := range m["content"].([]object) {
			delete(part, "cache_control")
		}
	}
}

// list are the messages as the client's dialect has them, and the field that they are.
// Of Messages, the last one is marked for the provider's cache.
func (c *Client) list(messages []Message, life string) (field string, list []object) {
	switch c.Dialect {
	case plugins.Chat:
		for _, m := range messages {
			list = append(list, chatMessage(m))
		}
		return "messages", list
	case plugins.Responses:
		for _, m := range messages {
			list = append(list, responsesItems(m)...)
		}
		return "input", list
	case plugins.Messages:
		list = alternate(messages, "assistant", "content", messagesParts)
		last := list[len(list)-1]["content"].([]object)
		mark := object{"type": "ephemeral"}
		if life != "" {
			mark["ttl"] = life
		}
		last[len(last)-1]["cache_control"] = mark
		return "messages", list
	}
	return "contents", alternate(messages, "model", "parts", geminiParts)
}

// alternate makes turns of the user and of the model, whose role is model. The results of tools
// that were called at once are one turn of the user.
func alternate(messages []Message, model, content string, partsOf func(Message) []object) (list []object) {
	for i, m := range messages {
		role, parts := "user", partsOf(m)
		if m.Role == "assistant" {
			role = model
		}
		if m.Role == "tool" && i > 0 && messages[i-1].Role == "tool" {
			last := list[len(list)-1]
			last[content] = append(last[content].([]object), parts...)
			continue
		}
		list = append(list, object{"role": role, content: parts})
	}
	return list
}

func chatMessage(m Message) object {
	switch m.Role {
	case "tool":
		return object{"role": "tool", "tool_call_id": m.Of.ID, "content": m.Text}
	case "user":
		return object{"role": "user", "content": m.Text}
	}
	message := object{"role": "assistant", "content": nil}
	if m.Text != "" {
		message["content"] = m.Text
	}
	var calls []object
	for _, call := range m.Calls {
		calls = append(calls, object{"id": call.ID, "type": "function", "function": object{"name": call.Name, "arguments": call.arguments()}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return message
}

// arguments returns the arguments of a call, as JSON.
func (c *ToolCall) arguments() string { return string(Encode(object{"prompt": c.Argument})) }

func responsesItems(m Message) (items []object) {
	switch m.Role {
	case "tool":
		return []object{{"type": "function_call_output", "call_id": m.Of.ID, "output": m.Text}}
	case "user":
		return []object{{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": m.Text}}}}
	}
	if m.Text != "" || len(m.Calls) == 0 {
		items = append(items, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": m.Text}}})
	}
	for _, call := range m.Calls {
		items = append(items, object{"type": "function_call", "call_id": call.ID, "name": call.Name, "arguments": call.arguments()})
	}
	return items
}

func messagesParts(m Message) (parts []object) {
	switch m.Role {
	case "tool":
		return []object{{"type": "tool_result", "tool_use_id": m.Of.ID, "content": m.Text}}
	case "user":
		return []object{{"type": "text", "text": m.Text}}
	}
	if m.Text != "" || len(m.Calls) == 0 {
		parts = append(parts, object{"type": "text", "text": m.Text})
	}
	for _, call := range m.Calls {
		parts = append(parts, object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{"prompt": call.Argument}})
	}
	return parts
}

func geminiParts(m Message) (parts []object) {
	switch m.Role {
	case "tool":
		return []object{{"functionResponse": object{"name": m.Of.Name, "response": object{"result": m.Text}}}}
	case "user":
		return []object{{"text": m.Text}}
	}
	if m.Text != "" || len(m.Calls) == 0 {
		parts = append(parts, object{"text": m.Text})
	}
	for _, call := range m.Calls {
		parts = append(parts, object{"functionCall": object{"name": call.Name, "args": object{"prompt": call.Argument}}})
	}
	return parts
}
