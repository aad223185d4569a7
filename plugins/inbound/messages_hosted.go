package inbound

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// hostedBlocks are the two blocks by which Messages show a tool that the provider ran. result
// is empty for an item that has no such blocks: clients wait for the result of a call that has none.
type hostedBlocks struct{ id, name, input, result string }

// TranslatedToolUse begins the ids of hosted calls that another provider made. Anthropic does not
// take them back: it encrypts what its own tools find.
const TranslatedToolUse = "srvtoolu_item_"

// readHosted reads an item of the Responses API. Hosts that do not say what a tool has found leave out the
// sources or the outputs, or have null for them: an empty list would mean that it found nothing
// (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool).
func readHosted(item gjson.Result) (h hostedBlocks) {
	h.id = TranslatedToolUse + strings.TrimPrefix(item.Get("id").Str, "item_")
	action, isFailed := item.Get("action"), item.Get("status").Str == "failed"
	sources, outputs := action.Get("sources"), item.Get("outputs")
	switch kind := item.Get("type").Str; {
	case kind == "web_search_call" && action.Get("type").Str == "search":
		query := action.Get("query").Str
		if query == "" {
			query = action.Get("queries.0").Str
		}
		h.name, h.input = "web_search", `{"query":`+rawString(query)+`}`
		if isFailed {
			h.result = `{"type":"web_search_tool_result_error","error_code":"unavailable"}`
		} else if sources.IsArray() {
			h.result = "[" + string(appendPages(nil, sources)) + "]"
		}
	case kind == "code_interpreter_call":
		h.name, h.input = "code_execution", `{"code":`+rawString(item.Get("code").Str)+`}`
		if isFailed {
			h.result = `{"type":"code_execution_tool_result_error","error_code":"unavailable"}`
		} else if outputs.IsArray() {
			var logs strings.Builder
			for _, output := range outputs.Array() {
				logs.WriteString(output.Get("logs").Str)
			}
			h.result = `{"type":"code_execution_result","stdout":` + rawString(logs.String()) + `,"stderr":"","return_code":0,"content":[]}`
		}
	}
	return h
}

// appendPages appends the results of a search. A page has its URL as title, because clients demand one.
func appendPages(b []byte, sources gjson.Result) []byte {
	for _, source := range sources.Array() {
		url := source.Get("url")
		if url.Str == "" { // OpenAI's own sources, such as the weather
			continue
		}
		b = member(append(element(b), `{"type":"web_search_result","encrypted_content":"","page_age":null`...), "url", url)
		b = append(member(b, "title", url), '}')
	}
	return b
}

// useBlock is the block of the call.
func (h hostedBlocks) useBlock(input string) string {
	return `{"type":"server_tool_use","id":` + rawString(h.id) + `,"name":"` + h.name + `","input":` + input + `}`
}

// resultBlock is the block of the result.
func (h hostedBlocks) resultBlock() string {
	return `{"type":"` + h.name + `_tool_result","tool_use_id":` + rawString(h.id) + `,"content":` + h.result + `}`
}

// showsHosted reports whether the client has asked for a tool that the provider runs. Other clients may not
// know the blocks.
func showsHosted(p *translate.Request) bool {
	return slices.ContainsFunc(p.Tools, func(t translate.Tool) bool {
		return strings.HasPrefix(t.Type, "web_search") || t.Type == "code_interpreter"
	})
}

// appendHosted appends the blocks of an item as events.
func (m *messagesEncoder) appendHosted(b []byte, o *translate.Output) []byte {
	h := readHosted(gjson.ParseBytes(o.JSON))
	if h.result == "" {
		return b
	}
	b = m.startBlock(b, h.useBlock("{}"))
	b = m.stopBlock(m.addText(b, inputDelta, plugins.AppendEscaped(nil, h.input)))
	return m.stopBlock(m.startBlock(b, h.resultBlock()))
}

// appendServerTools appends how often the provider searched, to usage without its last brace. It counts the
// searches that have results.
func appendServerTools(b []byte, a *translate.Assembler) []byte {
	var searches int64
	for _, o := range a.Outputs() {
		if o.Kind != translate.HostedOutput {
			continue
		}
		if h := readHosted(gjson.ParseBytes(o.JSON)); h.name == "web_search" && strings.HasPrefix(h.result, "[") {
			searches++
		}
	}
	if searches == 0 {
		return b
	}
	return append(translate.AppendCounts(b, translate.Labelled{Label: `,"server_tool_use":{"web_search_requests":`, N: searches}), `,"web_fetch_requests":0}`...)
}
