package bound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// A tool that runs at the provider reads what the provider fetches, and costs its container. A tool
// that the client runs costs nothing beside its text.
func TestHostedTools(t *testing.T) {
	m := &catalog.Model{ID: "m", Provider: "openai"}
	m.Context = 1_000_000
	for _, c := range []struct {
		tool   string
		hosted bool
		cost   plugins.Nanodollars
	}{
		{`{"type":"function","name":"f"}`, false, 0},
		{`{"type":"bash_20250124","name":"bash"}`, false, 0},
		{`{"type":"text_editor_20250728","name":"edit"}`, false, 0},
		{`{"type":"computer_use_preview"}`, false, 0},
		{`{"type":"tool_search_tool_regex_20251119","name":"s"}`, false, 0},
		{`{"type":"local_shell"}`, false, 0},
		{`{"type":"shell"}`, false, 0},
		{`{"type":"shell","environment":null}`, false, 0},
		{`{"type":"shell","environment":{"type":"local"}}`, false, 0},
		{`{"type":"shell","environment":{"type":"container_auto"}}`, true, 30_000_000},
		{`{"type":"shell","environment":{"type":"local","type":"container_auto"}}`, true, 30_000_000},
		{`{"type":"shell","environment":{"type":"local"},"environment":{"type":"container_reference","container_id":"c"}}`, true, 30_000_000},
		{`{"type":"shell","environment":{}}`, true, 30_000_000},
		{`{"type":"shell","environment":{"type":"container_auto","memory_limit":"64g"}}`, true, 1_920_000_000},
		{`{"type":"shell_2","environment":{"type":"local"}}`, true, 0},
		{`{"type":"computer_cloud"}`, true, 0},
		{`{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}`, false, 0},
		{`{"type":"namespace","name":"n","tools":[{"type":"code_interpreter","container":{"type":"auto","memory_limit":"4g"}}]}`, true, 120_000_000},
		{`{"type":"code_interpreter","container":{"type":"auto"}}`, true, 30_000_000},
		{`{"type":"code_interpreter","container":{"type":"auto","memory_limit":"1t"}}`, true, 1_920_000_000},
		{`{"type":"code_execution_20250825","name":"code"}`, true, 30_000_000},
		{`{"type":"file_search","vector_store_ids":["v"]}`, true, 10 * 2_500_000},
		{`{"type":"browser_search"}`, true, 10 * 8_000_000},
	} {
		d := Of(plugins.Responses, objectOf(`{"input":"hi","tools":[`+c.tool+`]}`), nil)
		u := d.Usage(m, UpperBound, 100, 1, 1)
		if d.Hosted != c.hosted || (u.Input.N == 1_000_000) != c.hosted || d.hosted.cost() != c.cost {
			t.Errorf("%s: hosted %t, %d tokens, %v", c.tool, d.Hosted, u.Input.N, d.hosted.cost())
		}
	}
}

// Bedrock names the tools that it runs in Converse.
func TestSystemToolsOfConverse(t *testing.T) {
	m := &catalog.Model{ID: "amazon.nova-2-lite-v1:0", Provider: "bedrock"}
	m.Context = 1_000_000
	for tool, want := range map[string]struct {
		searches int64
		cost     plugins.Nanodollars
	}{
		`{"systemTool":{"name":"nova_grounding"}}`:        {hostedCalls, 0},
		`{"systemTool":{"name":"nova_code_interpreter"}}`: {0, 30_000_000},
		`{"systemTool":{"name":"nova_tomorrow"}}`:         {0, 30_000_000},
	} {
		d := Of(plugins.Converse, objectOf(`{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"f"}},`+tool+`]}}`), nil)
		u := d.Usage(m, UpperBound, 100, 1, 1)
		if !d.Hosted || u.Input.N != 1_000_000 || u.WebSearches.N != want.searches || d.hosted.cost() != want.cost {
			t.Errorf("%s: hosted %t, %+v, %v", tool, d.Hosted, u, d.hosted.cost())
		}
	}
	if d := Of(plugins.Converse, objectOf(`{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"nova_grounding"}}]}}`), nil); d.Hosted {
		t.Error("a tool of the client counts as Bedrock's")
	}
}

// An option that Weir does not know counts by its bytes, and is named, unless the provider may
// fetch by it.
func TestUnknownOptions(t *testing.T) {
	for _, c := range []struct {
		option, provider string
		unbounded        bool
	}{
		{`"brand_new":{"a":1}`, "openai", false},
		{`"brand_new":[{"a":1}]`, "anthropic", false},
		{`"brand_new":{}`, "openrouter", false},
		{`"brand_new":{"a":1}`, "openrouter", true},
		{`"brand_new":{"a":1}`, "perplexity", true},
		{`"brand_new":{"a":"https://example.com/a"}`, "openai", true},
		{`"brand_new":{"a":[{"source_url":"a"}]}`, "openai", true},
		{`"data_sources":[{"type":"azure_search"}]`, "azure", true},
		{`"mcp_servers":[{"url":"https://example.com"}]`, "anthropic", true},
		{`"search_options":{"a":1}`, "qwen", true},
		{`"extra_body":{"a":1}`, "openai", true},
	} {
		m := &catalog.Model{ID: "m", Provider: c.provider}
		m.Context = 1_000_000
		body := `{"messages":[],` + c.option + `}`
		d := Of(plugins.Chat, objectOf(body), nil)
		u := d.Usage(m, UpperBound, int64(len(body)), 1, 1)
		if (u.Input.N == 1_000_000) != c.unbounded {
			t.Errorf("%s at %s: %d tokens", c.option, c.provider, u.Input.N)
		}
		if !c.unbounded && c.option != `"brand_new":{}` && (u.Input.N < int64(len(body)) || fmt.Sprint(d.unknown) != "[brand_new]") {
			t.Errorf("%s at %s: %d tokens, unknown %v", c.option, c.provider, u.Input.N, d.unknown)
		}
	}
}

// A model that searches for each answer does so without a tool.
func TestModelsThatSearch(t *testing.T) {
	m := &catalog.Model{ID: "gpt-4o-search-preview", Provider: "openai"}
	m.Context = 100_000
	d := Of(plugins.Chat, objectOf(`{"messages":[]}`), nil)
	if u := d.Usage(m, UpperBound, 10, 1, 1); u.Input.N != 100_000 || u.WebSearches.N != hostedCalls {
		t.Errorf("%+v", u)
	}
}

// What lets a call run several agents is refused, and the error names the field.
func TestAgentsWithoutALimitAreRefused(t *testing.T) {
	for fields, refused := range map[string]bool{
		`"multi_agent":{"enabled":true}`:                              true,
		`"multi_agent":{"enabled":true,"max_concurrent_subagents":1}`: true,
		`"multi_agent":{}`:                                            true,
		`"multi_agent":{"enabled":false}`:                             false,
		`"multi_agent":{"enabled":false,"enabled":true}`:              true,
		`"multi_agent":{"enabled":true,"enabled":false}`:              true,
		`"multi_agent":{"enabled":false,"Enabled":true}`:              true,
		`"multi_agent":{"enabled":false,"enabled":false}`:             false,
		`"multi_agent":null`:                                          false,
		`"multi_agent":"auto"`:                                        true,
		`"multi_agent":true`:                                          true,
		`"multi_agent":2`:                                             true,
	} {
		err := JSON(plugins.Responses, objectOf(`{"input":"hi",`+fields+`}`)).Check()
		if (err != nil) != refused {
			t.Errorf("%s: %v", fields, err)
		}
		if e, ok := err.(*plugins.Error); refused && (!ok || e.Code != "model_not_priced" || !strings.Contains(fields, e.Param) || e.Param == "") { //nolint:errorlint // Check returns no other
			t.Errorf("%s: %+v", fields, err)
		}
	}
}

// No bound is known of a model that runs several agents for each answer.
func TestModelsThatRunAgents(t *testing.T) {
	for _, id := range []string{"grok-4.20-multi-agent-0309", "x-ai/grok-4.20-multi-agent", "grok-4.20-0309-reasoning"} {
		m := &catalog.Model{ID: id, Provider: "xai"}
		c := &Call{Request: JSON(plugins.Responses, objectOf(`{"input":"hi","max_output_tokens":10}`)), Model: m, Read: func() *Demand { return new(Demand) }}
		if known, agents := c.MaxUsage(0).Usage.Output.Valid, strings.Contains(id, "multi-agent"); known == agents || c.RunsAgents() != agents {
			t.Errorf("%s: a bound is known: %t", id, known)
		}
	}
}

// What has come of an answer shows in Responses and Messages whether a hosted tool was called.
func TestHostedCallsInAnswers(t *testing.T) {
	for _, c := range []struct {
		dialect plugins.Dialect
		answer  string
		called  bool
	}{
		{plugins.Responses, ``, true},
		{plugins.Responses, `data: {"type":"response.output_item.added","item":{"type":"message"}}`, false},
		{plugins.Responses, `data: {"type":"response.output_item.added","item":{"type":"function_call"}}`, false},
		{plugins.Responses, `data: {"type":"response.output_text.delta","delta":"\"type\":\"web_search_call\""}`, false},
		{plugins.Responses, `data: {"type":"response.output_item.added","item":{"id":"ws","type":"web_search_call"}}`, true},
		{plugins.Responses, `data: {"type": "response.web_search_call.in_progress"}`, true},
		{plugins.Responses, `data: {"item":{"type":"shell_call"}}`, true},
		{plugins.Messages, `data: {"content_block":{"type":"text"}}`, false},
		{plugins.Messages, `data: {"content_block":{"type":"server_tool_use"}}`, true},
		{plugins.Chat, `data: {"choices":[]}`, true},
	} {
		if got := MayHaveCalled(c.dialect, []byte(c.answer)); got != c.called {
			t.Errorf("%s %s: %t", c.dialect, c.answer, got)
		}
	}
}
