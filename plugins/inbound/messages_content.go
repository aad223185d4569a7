package inbound

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

func (m *messagesRequest) readMessages() error {
	if m.messages.Exists() && !m.messages.IsArray() {
		return plugins.Invalid("messages", "Invalid type for 'messages': expected an array.")
	}
	if len(m.messages.Array()) == 0 {
		return translate.Missing("messages")
	}
	messages := m.marked().Array()
	from, compacted := compaction(messages)
	for i, v := range messages {
		path := fmt.Sprintf("messages[%d]", i)
		if !v.IsObject() {
			return plugins.Invalid(path, "Invalid type for '%s': expected an object.", path)
		}
		role, content := v.Get("role").Str, v.Get("content")
		m.leaveOut(path, v, "role", "content")
		first := 0
		if i == from {
			first = compacted
		}
		switch {
		case i < from:
		case role != "user" && role != "assistant" && role != "system":
			return translate.InvalidValue(path+".role", role, []string{"user", "assistant", "system"})
		case content.Type == gjson.String:
			m.item(path, 0, fmt.Appendf(nil, `{"role":"%s","content":%s`, role, content.Raw))
		case !content.IsArray():
			return translate.Missing(path + ".content")
		default:
			if err := m.blocks(path, role, content, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// marked are the messages, the last block of which the client may have marked as the end of the prefix to be
// cached by a field of the request.
func (m *messagesRequest) marked() gjson.Result {
	messages := m.messages.Array()
	if !m.cache.IsObject() {
		return m.messages
	}
	content := messages[len(messages)-1].Get("content")
	path, value := fmt.Sprintf("%d.content", len(messages)-1), m.cache.Raw
	switch blocks := content.Array(); {
	case content.Type == gjson.String:
		value = `[{"type":"text","text":` + content.Raw + `,"cache_control":` + value + `}]`
	case len(blocks) > 0 && blocks[len(blocks)-1].IsObject() && !blocks[len(blocks)-1].Get("cache_control").Exists():
		path += fmt.Sprintf(".%d.cache_control", len(blocks)-1)
	default:
		return m.messages
	}
	marked, _ := sjson.SetRaw(m.messages.Raw, path, value) // an array, and a plain path
	return gjson.Parse(marked)
}

// compaction returns the message and the block from which on a model reads the conversation: the last
// compaction, which has a summary of all before it, or the beginning
// (https://platform.claude.com/docs/en/build-with-claude/compaction).
func compaction(messages []gjson.Result) (message, block int) {
	for i, v := range slices.Backward(messages) {
		for j, b := range slices.Backward(v.Get("content").Array()) {
			if b.Get("type").Str == "compaction" && b.Get("content").Str != "" {
				return i, j
			}
		}
	}
	return 0, 0
}

// blocks reads the blocks of a message from one of them on. Those in a row that are content become one message of Responses, the
// others become items.
func (m *messagesRequest) blocks(path, role string, content gjson.Result, from int) error {
	var parts []byte // of the message that is open
	first := 0
	say := func() {
		if len(parts) > 0 {
			m.item(path, first, fmt.Appendf(nil, `{"role":"%s","content":[%s]`, role, parts))
			parts = nil
		}
	}
	for i, block := range content.Array() {
		if i < from {
			continue
		}
		at := fmt.Sprintf("%s.content[%d]", path, i)
		kind := block.Get("type").Str
		if slices.Contains(partTypes, kind) {
			if len(parts) == 0 {
				first = i
			}
			var err error
			if parts, err = m.appendBlock(element(parts), at, role, block); err != nil {
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

// partTypes are the blocks that become parts of a message or of an output, and
// blockTypes all that a message may have.
var (
	partTypes  = []string{"text", "image", "document", "search_result", "tool_reference"}
	blockTypes = append(partTypes[:4:4], "thinking", "redacted_thinking", "tool_use", "tool_result")
)

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
	case kind == "compaction" && v.Get("content").Str != "":
		m.item(path, 0, fmt.Appendf(nil, `{"role":"user","content":[{"type":"input_text","text":%s}]`, v.Get("content").Raw))
	case kind == "compaction": // one that failed
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
	m.leaveOut(path, v, "type", "id", "name", "input", "caller", "cache_control")
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
	m.leaveOut(path, v, "type", "tool_use_id", "content", "is_error", "cache_control")
	mark, output := v.Get("cache_control"), []byte(`""`)
	switch {
	case content.Type == gjson.String && mark.IsObject():
		output = append(appendCacheBreakpoint(fmt.Appendf(nil, `[{"type":"input_text","text":%s`, content.Raw), mark), "}]"...)
	case content.Type == gjson.String:
		output = []byte(content.Raw)
	case content.IsArray():
		var parts []byte
		blocks := content.Array()
		for i, block := range blocks {
			var err error
			if parts, err = m.appendBlock(element(parts), fmt.Sprintf("%s.content[%d]", path, i), "tool", block); err != nil {
				return err
			}
		}
		if n := len(parts); n > 0 && !blocks[len(blocks)-1].Get("cache_control").IsObject() {
			parts = append(appendCacheBreakpoint(parts[:n-1], mark), '}') // of the result, and so of its last part
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

// appendBlock appends a block of a message as a part of its content.
func (m *messagesRequest) appendBlock(b []byte, path, role string, v gjson.Result) ([]byte, error) {
	source := v.Get("source")
	switch kind := v.Get("type").Str; kind {
	case "text":
		m.leaveOut(path, v, "type", "text", "citations", "cache_control")
		if v.Get("citations.0").Exists() { // of an earlier answer
			m.warnings = append(m.warnings, path+": citations left out")
		}
		b = openTextPart(b, role, v)
	case "image":
		m.leaveOut(path, v, "type", "source", "cache_control")
		b = appendSource(append(b, `{"type":"input_image","detail":"auto"`...), source, "image_url", "image_url")
	case "document":
		var err error
		if b, err = m.appendDocument(b, path, v); err != nil {
			return nil, err
		}
	case "search_result":
		m.leaveOut(path, v, "type", "source", "title", "content", "cache_control")
		b = appendParagraphs(b, v.Get("title").Str, source.Str, blockText(v.Get("content")))
	case "tool_reference": // the model has all tools from the beginning
		b = appendParagraphs(b, "There is a tool '"+v.Get("tool_name").Str+"'.")
	default:
		return nil, translate.InvalidValue(path+".type", kind, partTypes)
	}
	return append(appendCacheBreakpoint(b, v.Get("cache_control")), '}'), nil
}

// appendDocument appends a document but for its last brace: a file, or a text with what
// introduces it. A text that shall be cited is by itself, for citations count its
// characters.
func (m *messagesRequest) appendDocument(b []byte, path string, v gjson.Result) ([]byte, error) {
	source, title := v.Get("source"), v.Get("title").Str
	cited := v.Get("citations.enabled").Bool()
	fields := []string{"type", "source", "title", "citations", "cache_control"}
	switch source.Get("type").Str {
	case "text", "content":
		for i, block := range source.Get("content").Array() {
			if block.IsObject() && block.Get("type").Str != "text" {
				return nil, unsupported(fmt.Sprintf("%s.source.content[%d]", path, i), "a document of blocks can have text alone.")
			}
		}
		content := source.Get("data").Str + blockText(source.Get("content"))
		if !cited {
			fields = append(fields, "context")
			b = appendParagraphs(b, title, v.Get("context").Str, content)
			break
		}
		b = appendParagraphs(b, content)
	default:
		if title == "" {
			title = "document.pdf"
		}
		b = plugins.AppendString(append(b, `{"type":"input_file","filename":`...), title)
		b = appendSource(b, source, "file_url", "file_data")
	}
	if cited {
		if m.cited == nil {
			m.cited = make(map[string]string)
		}
		m.cited[path] = title
	}
	m.leaveOut(path, v, fields...)
	return b, nil
}

// appendParagraphs appends a part of text without its last brace.
func appendParagraphs(b []byte, paragraphs ...string) []byte {
	paragraphs = slices.DeleteFunc(paragraphs, func(s string) bool { return s == "" })
	return plugins.AppendString(append(b, `{"type":"input_text","text":`...), strings.Join(paragraphs, "\n\n"))
}

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

func blockText(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var texts []string
	for _, block := range content.Array() {
		texts = append(texts, block.Get("text").Str)
	}
	return strings.Join(texts, "\n\n")
}
