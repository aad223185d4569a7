package llmotlp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/translate"
)

// message is a message of Chat Completions. The content of all conventions is kept in this
// form.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"` // text, a list of parts, or null
	Reasoning string          `json:"reasoning_content,omitempty"`
	Name      string          `json:"name,omitempty"`
	chat.Calls[json.RawMessage]
	ToolCallID string `json:"tool_call_id,omitempty"`

	finish string // the finish reason, if the message is a choice of the answer
	media  bool   // it has images, audio or files
}

var null = json.RawMessage("null")

// textMessage returns a message of plain text, or of the parts that a convention has written into
// a text as JSON.
func textMessage(role, text string) message {
	m := message{Role: role, Content: null}
	if strings.HasPrefix(strings.TrimSpace(text), "[") && json.Valid([]byte(text)) {
		if parts := gjson.Parse(text); isParts(parts) {
			m.parts(parts)
			return m
		}
	}
	if text != "" {
		m.Content = appendText(nil, text)
	}
	return m
}

// isParts reports whether a value is a list of objects with types, and not of LangChain's messages, which have types, too.
func isParts(v gjson.Result) bool {
	parts := v.IsArray() && v.Get("0").Exists()
	eachOf(v, func(part gjson.Result) {
		parts = parts && part.IsObject() && !part.Get("lc").Exists() && (part.Get("type").Type == gjson.String || part.Get("text").Type == gjson.String)
	})
	return parts
}

// messagesOf reads a message or a list of messages: OpenTelemetry's, which have parts, or the
// provider's, which have content. A text is a message of the role.
func messagesOf(raw json.RawMessage, role string) []message {
	v := gjson.ParseBytes(raw)
	switch {
	case v.Type == gjson.String:
		return []message{textMessage(role, v.Str)}
	case v.IsObject():
		return messageOf(v, role)
	case isParts(v):
		m := message{Role: role, Content: null}
		m.parts(v)
		return []message{m}
	}
	var list []message
	eachOf(v, func(element gjson.Result) {
		switch {
		case element.IsObject():
			list = append(list, messageOf(element, role)...)
		case element.IsArray(): // LangChain's, which has a list for each of several prompts
			eachOf(element, func(inner gjson.Result) {
				if inner.IsObject() {
					list = append(list, messageOf(inner, role)...)
				}
			})
		case element.Type == gjson.String:
			list = append(list, textMessage(role, element.Str))
		}
	})
	return list
}

// eachOf calls do with each element of a list.
func eachOf(v gjson.Result, do func(element gjson.Result)) {
	if v.IsArray() {
		v.ForEach(func(_, element gjson.Result) bool {
			do(element)
			return true
		})
	}
}

// langChainRoles are the roles of LangChain's types of messages.
var langChainRoles = map[string]string{"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system", "tool": "tool"}

// messageOf reads one message. The results of several tools are a message each.
func messageOf(v gjson.Result, role string) []message {
	if arguments := v.Get("kwargs"); v.Get("lc").Exists() && arguments.IsObject() { // LangChain's own form, which LangSmith reports
		v, role = arguments, cmp.Or(langChainRoles[arguments.Get("type").Str], role)
	}
	if stated := v.Get("role").Str; stated != "" {
		role = stated
	}
	if role == "model" { // Google's name
		role = "assistant"
	}
	var m message
	switch content := v.Get("content"); {
	case v.Get("parts").IsArray():
		m = message{Role: role, Content: null}
		if results := m.parts(v.Get("parts")); len(results) > 0 {
			if m.empty() {
				return results
			}
			m.finish = v.Get("finish_reason").Str
			return append([]message{m}, results...)
		}
	case content.Type == gjson.String:
		m = textMessage(role, content.Str)
	default:
		m = message{Role: role, Content: null}
		m.parts(content)
	}
	m.Name, m.ToolCallID, m.finish = v.Get("name").Str, v.Get("tool_call_id").Str, v.Get("finish_reason").Str
	eachOf(chat.CallList(v), func(call gjson.Result) {
		switch {
		case !call.Get("args").Exists():
			m.ToolCalls = append(m.ToolCalls, json.RawMessage(call.Raw))
		case !strings.Contains(v.Get("content").Raw, `"tool_use"`): // LangChain has Anthropic's calls twice
			m.toolCall(call)
		}
	})
	return []message{m}
}

func (m *message) empty() bool {
	return string(m.Content) == "null" && m.ToolCalls == nil && m.Reasoning == ""
}

// parts takes the parts of a message, and returns the results of tools among
// them. Parts that Weir does not know are kept as they are.
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-input-messages.json
func (m *message) parts(list gjson.Result) (results []message) {
	var content []any
	var texts int
	var reasoning strings.Builder
	eachOf(list, func(part gjson.Result) {
		kind := part.Get("type").Str
		text := part.Get("text")
		if !text.Exists() {
			text = part.Get("content")
		}
		switch {
		case kind == "reasoning" && text.Type == gjson.String:
			reasoning.WriteString(text.Str)
		case kind == "tool_call" || kind == "tool-call" || kind == "tool_use":
			m.toolCall(part)
		case kind == "tool-result" || kind == "tool_result": // AI SDK, Anthropic
			result := firstOf(part, "output", "result", "content")
			if value := result.Get("value"); value.Exists() {
				result = value
			}
			results = append(results, message{Role: "tool", ToolCallID: firstOf(part, "toolCallId", "tool_use_id").Str, Content: appendText(nil, result.String())})
		case kind == "tool_call_response":
			result := part.Get("response")
			if !result.Exists() {
				result = part.Get("result")
			}
			results = append(results, message{Role: "tool", ToolCallID: part.Get("id").Str, Content: appendText(nil, result.String())})
		case (kind == "text" || kind == "") && text.Type == gjson.String:
			content = append(content, textPart{"text", text.Str})
			texts++
		case kind == "blob" || kind == "uri" || kind == "file" && part.Get("file_id").Exists():
			m.media = true
			content = append(content, mediaPart(part))
		default:
			m.media = m.media || strings.Contains(kind, "image") || strings.Contains(kind, "audio") || strings.Contains(kind, "file")
			content = append(content, json.RawMessage(part.Raw))
		}
	})
	m.Reasoning = reasoning.String()
	switch {
	case len(content) == 1 && texts == 1:
		m.Content = appendText(nil, content[0].(textPart).Text)
	case len(content) > 0:
		m.Content, _ = translate.Encode(content) // valid JSON marshals
	}
	return results
}

// call adds a call of a tool, whose arguments are text in Chat Completions.
func (m *message) call(id, name, arguments string) {
	call, _ := translate.Encode(chat.CallFunction(id, name, arguments)) // text always marshals
	m.ToolCalls = append(m.ToolCalls, call)
}

// toolCall adds a call of a tool as OpenTelemetry, the AI SDK or Anthropic writes it.
func (m *message) toolCall(v gjson.Result) {
	m.call(firstOf(v, "id", "toolCallId").Str, firstOf(v, "name", "toolName").Str, firstOf(v, "arguments", "input", "args").String())
}

// firstOf returns the first of the members that an object has.
func firstOf(v gjson.Result, names ...string) (found gjson.Result) {
	for _, name := range names {
		if found = v.Get(name); found.Exists() {
			break
		}
	}
	return found
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// mediaPart returns a medium of OpenTelemetry as a part of Chat Completions.
func mediaPart(part gjson.Result) any {
	mediaType, modality := part.Get("mime_type").Str, part.Get("modality").Str
	if modality == "" {
		modality, _, _ = strings.Cut(mediaType, "/")
	}
	content, uri := part.Get("content").Str, part.Get("uri").Str
	switch {
	case part.Get("type").Str == "file":
		return map[string]any{"type": "file", "file": map[string]string{"file_id": part.Get("file_id").Str}}
	case content != "" && modality == "audio":
		_, format, _ := strings.Cut(mediaType, "/")
		return map[string]any{"type": "input_audio", "input_audio": map[string]string{"data": content, "format": format}}
	case content != "":
		uri = "data:" + mediaType + ";base64," + content
	}
	key := "image_url"
	if modality == "audio" || modality == "video" {
		key = modality + "_url"
	}
	return map[string]any{"type": key, key: map[string]string{"url": uri}}
}
