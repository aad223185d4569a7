package translate

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

func (p *Request) parseInput(input gjson.Result) error {
	var c conversation
	switch {
	case input.Type == gjson.String:
		c.addMessage(&Message{Role: RoleUser, Content: []Part{{Param: "input", Type: PartText, Text: input.Str}}})
	case input.IsArray():
		c.searches = p.searchesOf(input)
		for i, v := range input.Array() {
			if err := p.parseItem(&c, i, v); err != nil {
				return err
			}
		}
	default:
		return Missing("input")
	}
	var err error
	p.Turns, err = c.turns()
	return err
}

// hostedToolItems are the items of tools that the provider ran. Even a strict request may lose them: the
// assistant's text that follows has their result.
var hostedToolItems = []string{
	"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
	"mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
}

func (p *Request) parseItem(c *conversation, i int, v gjson.Result) error {
	param := indexPath("input", i)
	if !v.IsObject() {
		return invalidType(param, []jsonType{anObject}, v)
	}
	kind := v.Get("type").Str
	if kind == "message" || kind == "" || kind == "reasoning" || kind == "agent_message" {
		if err := c.addResults(); err != nil {
			return err
		}
	}
	switch kind {
	case "message", "":
		m, err := parseMessage(i, param, v)
		if err != nil {
			return err
		}
		c.addMessage(m)
		return nil
	case "agent_message":
		return parseAgentMessage(c, i, param, v)
	case "function_call":
		return parseCall(c, &ToolCall{Index: i}, param, "arguments", v)
	case "custom_tool_call":
		return parseCall(c, &ToolCall{Index: i, Custom: true}, param, "input", v)
	case "function_call_output", "custom_tool_call_output":
		o := &ToolOutput{
			Index:  i,
			CallID: v.Get("call_id").Str,
			Custom: kind == "custom_tool_call_output",
			Failed: v.Get("status").Str == statusIncomplete,
		}
		if !v.Get("output").Exists() {
			return Missing(param + ".output")
		}
		var err error
		if o.Content, err = parseContent(param+".output", v.Get("output")); err != nil {
			return err
		}
		return c.addOutput(o)
	case "reasoning":
		c.addAssistantItem(&ReasoningItem{
			Index:            i,
			ID:               v.Get("id").Str,
			Summary:          texts(v.Get("summary")),
			Content:          texts(v.Get("content")),
			EncryptedContent: v.Get("encrypted_content").Str,
		})
		return nil
	case "tool_search_call":
		if !c.searches[v.Get("call_id").Str] {
			p.Warnings = append(p.Warnings, param+": "+kind+" left out")
			return nil
		}
		return c.addCall(&ToolCall{Index: i, CallID: v.Get("call_id").Str, Name: toolSearch, Arguments: v.Get("arguments").String()})
	case "additional_tools", "tool_search_output":
		if id := v.Get("call_id").Str; kind == "tool_search_output" && c.searches[id] {
			found := []Part{{Param: param, Type: PartText, Text: foundTools(v.Get("tools"))}}
			if err := c.addOutput(&ToolOutput{Index: i, CallID: id, Content: found}); err != nil {
				return err
			}
		}
		return p.parseLaterTools(param+".tools", v.Get("tools").Array())
	default:
		if t := p.mcpTool(v); t != nil && kind == "mcp_call" {
			return addMCPCall(c, i, t, v)
		}
		if len(p.mcp) > 0 && strings.HasPrefix(kind, "mcp_") && kind != "mcp_call" { // the host has read it
			return nil
		}
		if slices.Contains(hostedToolItems, kind) {
			p.Warnings = append(p.Warnings, param+": "+kind+" left out")
			return nil
		}
		return plugins.Unsupported(param, "Input items of type '%s' cannot be used here: send the conversation as messages, "+
			"calls, outputs and reasoning.", kind)
	}
}

// parseLaterTools adds tools that the model got in the middle of the conversation, unless it has them already.
func (p *Request) parseLaterTools(param string, tools []gjson.Result) error {
	var later Request
	if err := later.parseTools(tools, param, ""); err != nil {
		return err
	}
	known := make(map[string]bool, len(p.Tools))
	for i := range p.Tools {
		known[p.Tools[i].Name] = true
	}
	for _, t := range later.Tools {
		if t.Hosted() || !known[t.Name] {
			p.Tools = append(p.Tools, t)
			known[t.Name] = true
		}
	}
	return nil
}

func parseMessage(i int, param string, v gjson.Result) (*Message, error) {
	m := &Message{Index: i, Role: Role(v.Get("role").Str), Phase: v.Get("phase").Str}
	switch m.Role {
	case RoleUser, RoleSystem, RoleDeveloper, RoleAssistant:
	case "":
		return nil, Missing(param + ".role")
	default:
		return nil, InvalidValue(param+".role", string(m.Role), []string{"assistant", "system", "developer", "user"})
	}
	content := v.Get("content")
	if !content.Exists() {
		return nil, Missing(param + ".content")
	}
	var err error
	m.Content, err = parseContent(param+".content", content)
	return m, err
}

// parseAgentMessage reads what another agent of the client has said, as Codex sends it
// (https://github.com/sgl-project/sglang/pull/35216). Models without such items read it from the
// user, in tags. What is encrypted is for OpenAI alone.
func parseAgentMessage(c *conversation, i int, param string, v gjson.Result) error {
	message := strings.Join(texts(v.Get("content")), "\n\n")
	if message == "" {
		return plugins.Unsupported(param+".content", "A message of an agent without a text that can be read cannot be used here.")
	}
	text := "<agent_message from=\"" + v.Get("author").Str + "\">\n" + message + "\n</agent_message>"
	c.addMessage(&Message{Index: i, Role: RoleUser, Content: []Part{{Param: param, Type: PartText, Text: text}}})
	return nil
}

// parseCall reads a call. Its arguments are at key.
func parseCall(c *conversation, call *ToolCall, param, key string, v gjson.Result) error {
	arguments := v.Get(key)
	if arguments.Type != gjson.Null && arguments.Type != gjson.String {
		return invalidType(param+"."+key, []jsonType{aString}, arguments)
	}
	if call.Arguments = arguments.Str; !call.Custom {
		call.Arguments = unquoted(arguments.Str)
	}
	call.CallID, call.Name = v.Get("call_id").Str, FlatName(v)
	if call.CallID == "" {
		return Missing(param + ".call_id")
	}
	if v.Get("name").Str == "" {
		return Missing(param + ".name")
	}
	return c.addCall(call)
}

func texts(parts gjson.Result) []string {
	var all []string
	for _, p := range parts.Array() {
		all = append(all, p.Get("text").Str)
	}
	return all
}

func parseContent(param string, v gjson.Result) ([]Part, error) {
	if v.Type == gjson.String {
		return []Part{{Param: param, Type: PartText, Text: v.Str}}, nil
	}
	if !v.IsArray() {
		return nil, invalidType(param, []jsonType{aString, anArray}, v)
	}
	var parts []Part
	for i, e := range v.Array() {
		part, err := parsePart(indexPath(param, i), e)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

var partTypes = []string{"input_text", "output_text", "refusal", "input_image", "input_file", "input_audio"}

func parsePart(param string, v gjson.Result) (Part, error) {
	p := Part{
		Param:     param,
		Type:      PartType(v.Get("type").Str),
		FileID:    v.Get("file_id").Str,
		Filename:  v.Get("filename").Str,
		Detail:    v.Get("detail").Str,
		CacheMark: cacheMarkOf(v),
	}
	switch p.Type {
	case PartText, "output_text", "text":
		p.Type = PartText
		if v.Get("text").Type != gjson.String {
			return p, invalidType(param+".text", []jsonType{aString}, v.Get("text"))
		}
		p.Text = v.Get("text").Str
		return p, nil
	case PartRefusal:
		p.Text = v.Get("refusal").Str
		return p, nil
	case PartImage:
		if err := p.setURL(param+".image_url", v.Get("image_url").Str); err != nil {
			return p, err
		}
	case PartFile:
		if err := p.setURL(param+".file_url", v.Get("file_url").Str); err != nil {
			return p, err
		}
		if data := v.Get("file_data").Str; strings.HasPrefix(data, "data:") {
			if err := p.setURL(param+".file_data", data); err != nil {
				return p, err
			}
		} else if data != "" {
			p.MediaType, p.Data = "application/octet-stream", data
		}
	case PartAudio:
		p.MediaType = "audio/" + v.Get("input_audio.format").Str
		p.Data = v.Get("input_audio.data").Str
	default:
		return p, InvalidValue(param+".type", string(p.Type), partTypes)
	}
	if p.Data == "" && p.URL == "" && p.FileID == "" {
		return p, plugins.Invalid(param, "The part has no content: give it a URL, data or a file_id.")
	}
	return p, nil
}

// setURL sets the media that is at a URL, or in a data: URL (RFC 2397).
func (p *Part) setURL(param, url string) error {
	data, inline := strings.CutPrefix(url, "data:")
	if !inline {
		p.URL = url
		return nil
	}
	head, data, _ := strings.Cut(data, ",")
	mediaType, ok := strings.CutSuffix(head, ";base64")
	if !ok || data == "" {
		return plugins.Invalid(param, "The data: URL must be of the form data:<media type>;base64,<data>.")
	}
	if p.MediaType, _, _ = strings.Cut(mediaType, ";"); p.MediaType == "image/jpg" { // what OpenAI takes too
		p.MediaType = "image/jpeg"
	}
	p.Data = data
	return nil
}
