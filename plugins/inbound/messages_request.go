package inbound

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// parseMessages reads the body of POST /v1/messages
// (https://platform.claude.com/docs/en/api/messages).
func parseMessages(raw []byte) (*translate.Request, error) {
	if err := translate.CheckObject(raw); err != nil {
		return nil, err
	}
	var m messagesRequest
	m.read(raw)
	if !m.limit.Exists() {
		return nil, translate.Missing("max_tokens")
	}
	m.set("max_output_tokens", m.limit.Raw, "max_tokens")
	return m.translated()
}

// ParseCount reads the body of POST /v1/messages/count_tokens, which has no limit
// (https://platform.claude.com/docs/en/api/messages-count-tokens).
func ParseCount(raw []byte) (*translate.Request, error) {
	if err := translate.CheckObject(raw); err != nil {
		return nil, err
	}
	var m messagesRequest
	m.read(raw)
	return m.translated()
}

// read reads the fields of a body.
func (m *messagesRequest) read(raw []byte) {
	gjson.Parse(plugins.View(raw)).ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.Null {
			m.field(key.Str, v)
		}
		return true
	})
}

// translated returns the request that asks for the same.
func (m *messagesRequest) translated() (*translate.Request, error) {
	m.set("store", "false", "")
	m.reasoning()
	if m.threaded {
		return nil, noThreads()
	}
	for _, read := range []func() error{m.readSystem, m.readTools, m.readMessages} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	p, err := m.parse()
	if err != nil {
		return nil, err
	}
	kind := m.thinking.Get("type").Str
	p.HidesReasoning = kind == "" || kind == "disabled"
	if !p.HidesReasoning && m.thinking.Get("display").Str != "omitted" {
		showReasoning(p)
	}
	return p, nil
}

type messagesRequest struct {
	body
	limit, system, messages gjson.Result
	tools, choice           gjson.Result
	thinking, output        gjson.Result
	cache                   gjson.Result // marks the last block (https://platform.claude.com/docs/en/build-with-claude/prompt-caching)
	threaded                bool         // it is of a thread, which the provider would keep
}

// noThreads returns the error by which Anthropic's libraries send the whole conversation
// (https://platform.claude.com/docs/en/api/errors).
func noThreads() *plugins.Error {
	return plugins.Unsupported("thread", "Threads are not supported here: send the whole conversation without 'thread'.").
		WithCode("thread_unsupported_request")
}

func (m *messagesRequest) field(name string, v gjson.Result) {
	switch name {
	case "model", "stream", "temperature", "top_p", "top_k":
		m.set(name, v.Raw, name)
	case "max_tokens":
		m.limit = v
	case "system":
		m.system = v
	case "messages":
		m.messages = v
	case "tools":
		m.tools = v
	case "tool_choice":
		m.choice = v
	case "stop_sequences":
		m.set("stop", v.Raw, name)
	case "thinking":
		m.thinking = v
		m.leaveOut(name, v, "type", "budget_tokens", "display")
	case "output_config":
		m.output = v
		m.leaveOut(name, v, "effort", "format")
		if format := v.Get("format"); format.Exists() {
			m.format(format, "output_config.format")
		}
	case "output_format":
		m.format(v, name)
	case "metadata":
		m.leaveOut(name, v, "user_id")
		if user := v.Get("user_id"); user.Exists() {
			m.set("user", user.Raw, "metadata.user_id")
		}
	case "service_tier":
		tier := v.Raw
		if v.Str == "standard_only" {
			tier = `"default"`
		}
		m.set(name, tier, name)
	case "thread":
		m.threaded = true
	case "cache_control":
		m.cache = v
	default:
		if name != "speed" || v.Str != "standard" { // which is that of all
			m.foreign = append(m.foreign, name)
		}
	}
}

func (m *messagesRequest) format(v gjson.Result, from string) {
	m.set("text", `{"format":`+string(member([]byte(`{"type":"json_schema","name":"answer"`), "schema", v.Get("schema")))+`}}`, "")
	m.name("text.format", from)
}

// reasoning sets how much the model thinks: as much as the effort says, or else as
// the tokens that it may think. A model that decides itself thinks at the effort that
// is Anthropic's default.
func (m *messagesRequest) reasoning() {
	effort, from := m.output.Get("effort").Str, "output_config.effort"
	kind := m.thinking.Get("type").Str
	switch {
	case kind == "disabled":
		effort, from = "none", "thinking"
	case effort != "":
	case kind == "enabled":
		effort, from = translate.EffortOf(m.thinking.Get("budget_tokens").Int(), m.limit.Int()), "thinking"
	case kind == "adaptive":
		effort, from = "high", "thinking"
	case m.thinking.Exists():
		m.foreign = append(m.foreign, "thinking")
		return
	default:
		return
	}
	m.set("reasoning", `{"effort":`+rawString(effort)+`}`, "")
	m.name("reasoning.effort", from)
}

// billingHeader begins the block in which Claude Code tells Anthropic about itself.
// It may differ in each request, and no other provider has a use for it: there it
// would keep the prompt out of the cache.
const billingHeader = "x-anthropic-billing-header:"

func (m *messagesRequest) readSystem() error {
	if m.system.Type == gjson.String {
		m.set("instructions", m.system.Raw, "system")
		return nil
	}
	for i, block := range m.system.Array() {
		path := fmt.Sprintf("system[%d]", i)
		if strings.HasPrefix(block.Get("text").Str, billingHeader) {
			continue
		}
		part, err := m.appendBlock(nil, path, "system", block)
		if err != nil {
			return err
		}
		m.item(path, 0, fmt.Appendf(nil, `{"role":"system","content":[%s]`, part))
	}
	return nil
}

var hostedTools = map[string]string{
	"web_search_":     "web_search",
	"code_execution_": "code_interpreter",
}

func (m *messagesRequest) readTools() error {
	if m.tools.Exists() && !m.tools.IsArray() {
		return plugins.Invalid("tools", "Invalid type for 'tools': expected an array.")
	}
	for i, t := range m.tools.Array() {
		path := fmt.Sprintf("tools[%d]", i)
		kind := hostedType(t)
		switch kind {
		case "", "custom":
			// How finely the input is streamed is the provider's choice.
			m.leaveOut(path, t, "type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming")
			tool := member([]byte(`{"type":"function"`), "name", t.Get("name"))
			tool = member(tool, "description", t.Get("description"))
			tool = member(tool, "parameters", t.Get("input_schema"))
			tool = member(tool, "strict", t.Get("strict"))
			m.tool(append(appendCacheBreakpoint(tool, t.Get("cache_control")), '}'))
		case "web_search":
			m.leaveOut(path, t, "type", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location", "cache_control")
			m.webSearch(t)
		case "code_interpreter":
			m.leaveOut(path, t, "type", "name", "cache_control")
			tool := []byte(`{"type":"code_interpreter","container":{"type":"auto"}`)
			m.tool(append(appendCacheBreakpoint(tool, t.Get("cache_control")), '}'))
		default:
			m.tool(hostedTool(t))
		}
	}
	m.toolChoice()
	return nil
}

// hostedType is the type of a tool. Tools that Anthropic hosts have the type of Responses.
func hostedType(t gjson.Result) string {
	kind := t.Get("type").Str
	for prefix, hosted := range hostedTools {
		if strings.HasPrefix(kind, prefix) {
			return hosted
		}
	}
	return kind
}

func (m *messagesRequest) webSearch(t gjson.Result) {
	tool := []byte(`{"type":"web_search"`)
	var domains []byte
	for _, key := range []string{"allowed_domains", "blocked_domains"} {
		domains = member(domains, key, t.Get(key))
	}
	if domains != nil {
		tool = append(append(plugins.AppendKey(tool, "filters"), '{'), domains[1:]...)
		tool = append(tool, '}')
	}
	tool = member(tool, "user_location", t.Get("user_location"))
	m.tool(append(appendCacheBreakpoint(tool, t.Get("cache_control")), '}'))
	if maxUses := t.Get("max_uses"); maxUses.Exists() {
		m.set("max_tool_calls", maxUses.Raw, "tools")
	}
}

func (m *messagesRequest) toolChoice() {
	v := m.choice
	if !v.Exists() {
		return
	}
	m.leaveOut("tool_choice", v, "type", "name", "disable_parallel_tool_use")
	choice := rawString(v.Get("type").Str)
	switch v.Get("type").Str {
	case "any":
		choice = `"required"`
	case "tool":
		choice = `{"type":"function","name":` + rawString(v.Get("name").Str) + `}`
		for _, t := range m.tools.Array() {
			if kind := hostedType(t); kind != "" && kind != "custom" && t.Get("name").Str == v.Get("name").Str {
				choice = `{"type":` + rawString(kind) + `}`
			}
		}
	}
	m.set("tool_choice", choice, "")
	if v.Get("disable_parallel_tool_use").Bool() {
		m.set("parallel_tool_calls", "false", "tool_choice.disable_parallel_tool_use")
	}
}
