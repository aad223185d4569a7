package inbound

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

var (
	chatRoles = []string{"developer", "system", "user", "assistant", "tool"}

	// messageMembers are the members of messages without a warning: those that are read, and
	// the annotations, which clients send back with answers.
	messageMembers = []string{
		"role", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "tool_call_id", "function_call", "audio",
		"annotations",
	}
)

func (c *chatRequest) messages(v gjson.Result) error {
	if !v.IsArray() {
		return plugins.Invalid("messages", "Invalid type for 'messages': expected an array.")
	}
	for i, m := range v.Array() {
		path := fmt.Sprintf("messages[%d]", i)
		if !m.IsObject() {
			return plugins.Invalid(path, "Invalid type for '%s': expected an object.", path)
		}
		var err error
		c.leaveOut(path, m, messageMembers...)
		switch role := m.Get("role").Str; role {
		case "developer", "system", "user":
			err = c.message(path, role, m.Get("content"))
		case "assistant":
			err = c.assistant(path, m)
		case "tool":
			err = c.output(path, m)
		case "":
			err = translate.Missing(path + ".role")
		default:
			err = translate.InvalidValue(path+".role", role, chatRoles)
		}
		if err != nil {
			return err
		}
		c.spoken = true
	}
	return nil
}

func (c *chatRequest) message(path, role string, content gjson.Result) error {
	parts, err := chatContent(path, role, content)
	if err != nil {
		return err
	}
	c.item(path, 0, fmt.Appendf(nil, `{"role":"%s","content":%s`, role, parts))
	return nil
}

// assistant adds the assistant's thoughts, its text and its calls of tools.
func (c *chatRequest) assistant(path string, m gjson.Result) error {
	for _, field := range []string{"function_call", "audio"} {
		if m.Get(field).Type != gjson.Null {
			return unsupported(path+"."+field, "send 'content' and 'tool_calls'.")
		}
	}
	for _, field := range []string{"reasoning_content", "reasoning"} {
		if thought := m.Get(field); thought.Type == gjson.String && thought.Str != "" {
			c.item(path+"."+field, 0, fmt.Appendf(nil, `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":%s}]`, thought.Raw))
			break
		}
	}
	calls, content, refusal := m.Get("tool_calls").Array(), m.Get("content"), m.Get("refusal")
	if present := content.Type != gjson.Null && content.Raw != `""`; present || refusal.Str == "" && len(calls) == 0 {
		if err := c.message(path, "assistant", content); err != nil {
			return err
		}
	}
	if refusal.Str != "" {
		c.item(path+".refusal", 0, fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"refusal","refusal":%s}]`, refusal.Raw))
	}
	for i, call := range calls {
		if err := c.call(fmt.Sprintf("%s.tool_calls[%d]", path, i), call); err != nil {
			return err
		}
	}
	return nil
}

func (c *chatRequest) call(path string, v gjson.Result) error {
	kind := v.Get("type").Str
	item, input := `{"type":"function_call"`, "arguments"
	switch kind {
	case "function":
	case "custom":
		item, input = `{"type":"custom_tool_call"`, "input"
		c.custom[v.Get("id").Str] = true
	case "":
		kind = "function" // which several clients leave out
	default:
		return translate.InvalidValue(path+".type", kind, []string{"function", "custom"})
	}
	function := v.Get(kind)
	for _, required := range []struct{ param, value string }{{".id", v.Get("id").Str}, {"." + kind + ".name", function.Get("name").Str}} {
		if required.value == "" {
			return translate.Missing(path + required.param)
		}
	}
	b := member([]byte(item), "call_id", v.Get("id"))
	b = member(b, "name", function.Get("name"))
	c.item(path, 0, member(b, input, function.Get(input)))
	return nil
}

func (c *chatRequest) output(path string, m gjson.Result) error {
	id := m.Get("tool_call_id")
	if id.Str == "" {
		return translate.Missing(path + ".tool_call_id")
	}
	content, err := chatContent(path, "tool", m.Get("content"))
	if err != nil {
		return err
	}
	kind := "function_call_output"
	if c.custom[id.Str] {
		kind = "custom_tool_call_output"
	}
	c.item(path, 0, fmt.Appendf(nil, `{"type":"%s","call_id":%s,"output":%s`, kind, id.Raw, content))
	return nil
}

func chatContent(path, role string, content gjson.Result) ([]byte, error) {
	switch {
	case content.Type == gjson.String:
		return []byte(content.Raw), nil
	case content.Type == gjson.Null:
		return nil, translate.Missing(path + ".content")
	case !content.IsArray():
		return nil, plugins.Invalid(path+".content", "Invalid type for '%s.content': expected a string or an array.", path)
	}
	b := []byte{'['}
	for i, part := range content.Array() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendChatPart(b, fmt.Sprintf("%s.content[%d]", path, i), role, part); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendChatPart(b []byte, path, role string, v gjson.Result) ([]byte, error) {
	switch kind := v.Get("type").Str; kind {
	case "text":
		b = openTextPart(b, role, v)
	case "refusal":
		b = append(b, `{"type":"refusal"`...)
		b = member(b, "refusal", v.Get("refusal"))
	case "image_url":
		image := v.Get("image_url")
		url := image
		if image.IsObject() {
			url = image.Get("url")
		}
		b = append(b, `{"type":"input_image"`...)
		b = member(b, "image_url", url)
		b = member(b, "detail", image.Get("detail"))
	case "file":
		b = append(b, `{"type":"input_file"`...)
		for _, key := range []string{"file_data", "file_id", "filename"} {
			b = member(b, key, v.Get("file."+key))
		}
	case "input_audio":
		b = append(b, `{"type":"input_audio"`...)
		b = member(b, "input_audio", v.Get("input_audio"))
	default:
		return nil, translate.InvalidValue(path+".type", kind, []string{"text", "image_url", "input_audio", "file", "refusal"})
	}
	// Several gateways let clients of Claude mark a prefix in Anthropic's way.
	if mark := v.Get("prompt_cache_breakpoint"); mark.IsObject() {
		return append(member(b, "prompt_cache_breakpoint", mark), '}'), nil
	}
	return append(appendCacheBreakpoint(b, v.Get("cache_control")), '}'), nil
}

// hostedTool is a tool of the client's that is one of Responses, but for Anthropic's mark.
func hostedTool(t gjson.Result) []byte {
	tool, mark := []byte(t.Raw), t.Get("cache_control")
	if !mark.IsObject() || !t.Get("type").Exists() { // without a type it is refused
		return tool
	}
	tool = plugins.DeleteField(tool, "cache_control")
	return append(appendCacheBreakpoint(tool[:len(tool)-1], mark), '}')
}

// appendCacheBreakpoint appends Anthropic's mark of the part or the tool that ends a prefix to cache. Its
// TTL of an hour is longer than the default.
func appendCacheBreakpoint(b []byte, mark gjson.Result) []byte {
	if !mark.IsObject() {
		return b
	}
	b = append(b, `,"prompt_cache_breakpoint":{"mode":"explicit"`...)
	if mark.Get("ttl").Str == "1h" {
		b = append(b, `,"ttl":"1h"`...)
	}
	return append(b, '}')
}
