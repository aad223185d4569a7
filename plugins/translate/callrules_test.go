package translate_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// A client gets its own name of a tool back, also where the provider has got another, and where
// two long names begin alike.
func TestClientsGetTheirNamesBack(t *testing.T) {
	long := strings.Repeat("mcp__server__", 5)
	const body = `{"model":"m","input":"hi","tools":[{"type":"function","name":"L1"},{"type":"function","name":"L2"},
		{"type":"namespace","name":"N","tools":[{"type":"function","name":"f"}]}],"tool_choice":{"type":"function","name":"L1"}}`
	p, err := translate.ParseRequest([]byte(strings.NewReplacer("L1", long+"1", "L2", long+"2", "N", long).Replace(body)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.FitCalls(translate.CallRules{}); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for i, want := range []string{long + "1", long + "2", "f"} {
		name := p.Tools[i].Name
		if len(name) > 64 || seen[name] {
			t.Errorf("the provider gets the name %q", name)
		}
		seen[name] = true
		a := translate.NewAssembler(p, nil, translate.Options{})
		a.Start("m", "r")
		a.Call(0, "call_1", name)
		a.Args(0, "{}")
		a.Finish(translate.ReasonStop)
		a.End()
		if outputs := a.Outputs(); len(outputs) != 1 || outputs[0].Name != want {
			t.Errorf("the client gets %+v, want the name %q", outputs, want)
		}
	}
	if p.ToolChoice.Name != p.Tools[0].Name {
		t.Errorf("the choice is of %q", p.ToolChoice.Name)
	}
}

// The mark of a tool that others take the place of, or that the provider does not have, is that of the
// last tool that is sent before the end of its prefix.
func TestMarksOfToolsThatAreNotSent(t *testing.T) {
	const mark = `,"prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}`
	for tools, marked := range map[string]string{
		`{"type":"mcp","server_label":"a"` + mark + `},{"type":"function","name":"f"}`:                                        "mcp_a_d",
		`{"type":"function","name":"f"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"g"}]` + mark + `}`: "n__g",
		`{"type":"function","name":"f"},{"type":"web_search"` + mark + `},{"type":"function","name":"g"}`:                     "f",
		`{"type":"web_search"` + mark + `},{"type":"function","name":"g"}`:                                                    "",
	} {
		p, err := translate.ParseMCP([]byte(`{"model":"m","input":"hi","tools":[`+tools+`]}`), map[string][]translate.Tool{
			"a": {{MCP: &translate.MCPTool{Server: "a", Name: "c"}}, {MCP: &translate.MCPTool{Server: "a", Name: "d"}}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Apply(translate.DefaultPolicy); err != nil {
			t.Fatal(err)
		}
		got := ""
		for i := range p.Tools {
			if tool := &p.Tools[i]; tool.CacheBreakpoint && tool.CachesLonger {
				got += tool.Name
			}
		}
		if got != marked {
			t.Errorf("%s: the mark is at %q, want %q", tools, got, marked)
		}
	}
}

// Functions of MCP servers, which are without Raw, have names of their own beside each other and beside
// a client's function.
func TestMCPNamesAreDistinct(t *testing.T) {
	function := func(server, name string) translate.Tool {
		return translate.Tool{MCP: &translate.MCPTool{Server: server, Name: name}}
	}
	const (
		client = `{"type":"function","name":"mcp_a_b_c"}`
		one    = `{"type":"mcp","server_label":"a"}`
		other  = `{"type":"mcp","server_label":"a_b"}`
	)
	for _, tools := range [][]string{{client, one, other}, {one, client, other}, {one, other, client}} {
		p, err := translate.ParseMCP([]byte(`{"model":"m","input":"hi","tools":[`+strings.Join(tools, ",")+`]}`),
			map[string][]translate.Tool{"a": {function("a", "b_c"), function("a", "b.c")}, "a_b": {function("a_b", "c")}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.FitCalls(translate.CallRules{}); err != nil {
			t.Fatal(err)
		}
		names := make(map[string]bool)
		for i := range p.Tools {
			names[p.Tools[i].Name] = true
		}
		if len(p.Tools) != 4 || len(names) != 4 || !names["mcp_a_b_c"] {
			t.Errorf("%s: the provider gets the names %v of %d tools", tools, names, len(p.Tools))
		}
	}
}

// Names of earlier calls are looked at as those of tools are: a client may have left the tools out.
func TestTakesNamesOfEarlierCalls(t *testing.T) {
	for name, takes := range map[string]bool{"f": true, strings.Repeat("f", 65): false, "a b": false} {
		body, _ := plugins.ParseObject([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"id":"` + strings.Repeat("i", 99) + `","function":{"name":"` + name + `"}}]}]}`))
		if got := (translate.CallRules{}).TakesChat(body); got != takes {
			t.Errorf("%s: %t", name, got)
		}
	}
}
