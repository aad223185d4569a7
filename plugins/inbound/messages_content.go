package inbound

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// readMessages reads the conversation.
func (m *messagesRequest) readMessages() error {
	if m.messages.Exists() && !m.messages.IsArray() {
		return plugins.Invalid("messages", "Invalid type for 'messages': expected an array.")
	}
	if len(m.messages.Array()) == 0 {
		return translate.Missing("messages")
	}
	for i, v := range m.messages.Array() {
		path := fmt.Sprintf("messages[%d]", i)
		if !v.IsObject() {
			return plugins.Invalid(path, "Invalid type for '%s': expected an object.", path)
		}
		role, content := v.Get("role").Str, v.Get("content")
		switch {
		case role != "user" && role != "assistant" && role != "system":
			return translate.InvalidValue(path+".role", role, []string{"user", "assistant", "system"})
		case content.Type == gjson.String:
			m.item(path, 0, fmt.Appendf(nil, `{"role":"%s","content":%s`, role, content.Raw))
		case !content.IsArray():
			return translate.Missing(path + ".content")
		default:
			if err := m.blocks(path, role, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// blocks reads the blocks of a message: those in a row that say something are a
// message of Responses, the others are items.
func (m *messagesRequest) blocks(path, role string, content gjson.Result) error {
	var parts []byte // of the message that is open
	first := 0
	say := func() {
		if len(parts) > 0 {
			m.item(path, first, fmt.Appendf(nil, `{"role":"%s","content":[%s]`, role, parts))
			parts = nil
		}
	}
	for i, block := range content.Array() {
		at := fmt.Sprintf("%s.content[%d]", path, i)
		kind := block.Get("type").Str
		if kind == "text" || kind == "image" || kind == "document" {
			if len(parts) == 0 {
				first = i
			}
			var err error
			if parts, err = appendBlock(element(parts), at, block); err != nil {
				return err
			}
			continue
		}
		say()
		if err := m.block(at, kind, block); err != nil {
			return err
		}
	}
	say()
	return nil
}

var blockTypes = []string{"text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"}

// block reads a block that is an item.
func (m *messagesRequest) block(path, kind string, v gjson.Result) error {
	switch {
	case kind == "tool_use":
		return m.call(path, v)
	case kind == "tool_result":
		return m.result(path, v)
	case kind == "thinking":
		summary := ""
		if thought := v.Get("thinking"); thought.Str != "" {
			summary = `{"type":"summary_text","text":` + thought.Raw + `}`
		}
		m.item(path, 0, member(fmt.Appendf(nil, `{"type":"reasoning","summary":[%s]`, summary), "encrypted_content", v.Get("signature")))
	case kind == "redacted_thinking":
		m.item(path, 0, member([]byte(`{"type":"reasoning","summary":[]`), "encrypted_content", v.Get("data")))
	case kind == "server_tool_use" || strings.HasSuffix(kind, "_tool_result"): // the text that follows has what came of it
		m.warnings = append(m.warnings, path+": "+kind+" left out")
	default:
		return translate.InvalidValue(path+".type", kind, blockTypes)
	}
	return nil
}

func (m *messagesRequest) call(path string, v gjson.Result) error {
	for _, required := range []string{"id", "name"} {
		if v.Get(required).Str == "" {
			return translate.Missing(path + "." + required)
		}
	}
	input := v.Get("input")
	if !input.IsObject() {
		return plugins.Invalid(path+".input", "Invalid type for '%s.input': expected an object.", path)
	}
	b := member([]byte(`{"type":"function_call"`), "call_id", v.Get("id"))
	b = append(plugins.AppendKey(member(b, "name", v.Get("name")), "arguments"), rawString(input.Raw)...)
	m.item(path, 0, b)
	return nil
}

func (m *messagesRequest) result(path string, v gjson.Result) error {
	id, content := v.Get("tool_use_id"), v.Get("content")
	if id.Str == "" {
		return translate.Missing(path + ".tool_use_id")
	}
	output := []byte(`""`)
	switch {
	case content.Type == gjson.String:
		output = []byte(content.Raw)
	case content.IsArray():
		var parts []byte
		for i, block := range content.Array() {
			var err error
			if parts, err = appendBlock(element(parts), fmt.Sprintf("%s.content[%d]", path, i), block); err != nil {
				return err
			}
		}
		output = fmt.Appendf(nil, `[%s]`, parts)
	}
	status := "completed"
	if v.Get("is_error").Bool() {
		status = "incomplete"
	}
	m.item(path, 0, fmt.Appendf(nil, `{"type":"function_call_output","call_id":%s,"status":"%s","output":%s`, id.Raw, status, output))
	return nil
}

// appendBlock appends a block that says something, as a part.
func appendBlock(b []byte, path string, v gjson.Result) ([]byte, error) {
	source := v.Get("source")
	switch kind := v.Get("type").Str; kind {
	case "text":
		b = member(append(b, `{"type":"input_text"`...), "text", v.Get("text"))
	case "image":
		b = appendSource(append(b, `{"type":"input_image"`...), source, "image_url", "image_url")
	case "document":
		if from := source.Get("type").Str; from == "text" || from == "content" {
			b = append(plugins.AppendKey(append(b, `{"type":"input_text"`...), "text"), documentText(source)...)
			break
		}
		b = append(b, `{"type":"input_file"`...)
		if title := v.Get("title").Str; title != "" {
			b = plugins.AppendString(plugins.AppendKey(b, "filename"), title)
		} else {
			b = append(b, `,"filename":"document.pdf"`...)
		}
		b = appendSource(b, source, "file_url", "file_data")
	default:
		return nil, translate.InvalidValue(path+".type", kind, []string{"text", "image", "document"})
	}
	if v.Get("cache_control").IsObject() {
		b = append(b, cacheBreakpoint...)
	}
	return append(b, '}'), nil
}

// appendSource appends where the content of a part is: at a URL, in a data: URL, or
// at the provider.
func appendSource(b []byte, source gjson.Result, url, inline string) []byte {
	switch source.Get("type").Str {
	case "base64":
		data := "data:" + source.Get("media_type").Str + ";base64," + source.Get("data").Str
		return plugins.AppendString(plugins.AppendKey(b, inline), data)
	case "url":
		return member(b, url, source.Get("url"))
	}
	return member(b, "file_id", source.Get("file_id"))
}

// documentText is the text of a document, as JSON.
func documentText(source gjson.Result) string {
	if data := source.Get("data"); data.Type == gjson.String {
		return data.Raw
	}
	content := source.Get("content")
	if content.Type == gjson.String {
		return content.Raw
	}
	var texts []string
	for _, block := range content.Array() {
		texts = append(texts, block.Get("text").Str)
	}
	return rawString(strings.Join(texts, "\n\n"))
}
