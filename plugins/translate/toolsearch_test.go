package translate_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	. "github.com/weirhq/weir/plugins/translate"
)

// searching is a request of Codex, which searches the tools of its MCP servers itself.
const searching = `{"model":"m","stream":true,"tools":[{"type":"function","name":"f"},
	{"type":"tool_search","execution":"client","description":"Finds tools.","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}],
	"input":[{"role":"user","content":"hi"}`

func offered(t *testing.T, request string) *Request {
	t.Helper()
	p, err := ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DropTools(func(*Tool) bool { return true }); err != nil {
		t.Fatal(err)
	}
	return p
}

// The client gets a tool_search_call, whose arguments are an object.
func TestToolSearchOfTheClient(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"query":"crm"}`: `{"query":"crm"} completed`,
		``:                `{} completed`,
		`[1]`:             `{"INVALID_JSON":"[1]"} completed`,
		`{"query":"cr`:    `{"INVALID_JSON":"{\"query\":\"cr"} incomplete`,
	} {
		p := offered(t, searching+"]}")
		if got := p.Tools[1]; len(p.Warnings) > 0 || got.Type != "function" || got.Name != "tool_search" || got.Description != "Finds tools." || !gjson.GetBytes(got.Parameters, "properties.query").Exists() {
			t.Errorf("%+v, %q", got, p.Warnings)
		}
		var sink strings.Builder
		a := NewAssembler(p, &sink, options())
		a.Call(0, "c", "tool_search")
		for _, piece := range strings.SplitAfter(arguments, ":") {
			a.Args(0, piece)
		}
		a.Finish(ReasonStop)
		sink.Write(a.End())
		if _, err := plugintest.Check([]byte(sink.String())); err != nil {
			t.Errorf("%v in\n%s", err, sink.String())
		}
		v := gjson.GetBytes(a.Response(), "output.0")
		if got := v.Get("arguments").Raw + " " + v.Get("status").Str; got != want || v.Get("type").Str != "tool_search_call" || v.Get("call_id").Str != "c" || v.Get("execution").Str != "client" || v.Get("name").Exists() {
			t.Errorf("%s: %s", arguments, v.Raw)
		}
	}
}

// A search that the client has run stands in the conversation, and the model has the tools that it found.
func TestToolSearchComesBack(t *testing.T) {
	const (
		call   = `,{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{"query":"crm"},"status":"completed"}`
		output = `,{"type":"tool_search_output","call_id":"c","execution":"client","status":"completed","tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find"}]}]}`
		empty  = `,{"type":"tool_search_output","call_id":"c","execution":"client","status":"completed","tools":[]}`
		hosted = `,{"type":"tool_search_call","call_id":null,"execution":"server","arguments":{}},{"type":"tool_search_output","call_id":null,"execution":"server","tools":[]}`
		left   = "input[1]: tool_search_call left out"
	)
	for items, want := range map[string]string{
		call + output:         "tool_search {\"query\":\"crm\"} -> These tools were found, and can be called now:\n- crm__find; f tool_search crm__find; ",
		call + empty:          "tool_search {\"query\":\"crm\"} -> No tools were found.; f tool_search; ",
		call:                  "; f tool_search; " + left,
		output:                "; f tool_search crm__find; ",
		output + call:         "; f tool_search crm__find; input[2]: tool_search_call left out",
		call + output + call:  "; f tool_search crm__find; " + left + " input[3]: tool_search_call left out",
		call + output + empty: "; f tool_search crm__find; " + left,
		hosted:                "; f tool_search; " + left,
	} {
		p := offered(t, searching+items+"]}")
		var turns, names []string
		for _, turn := range p.Turns {
			for _, item := range turn.Items {
				switch i := item.(type) {
				case *ToolCall:
					turns = append(turns, i.Name+" "+i.Arguments)
				case *ToolOutput:
					turns = append(turns, i.Content[0].Text)
				}
			}
		}
		for _, tool := range p.Tools {
			names = append(names, tool.Name)
		}
		if got := strings.Join(turns, " -> ") + "; " + strings.Join(names, " ") + "; " + strings.Join(p.Warnings, " "); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", items, got, want)
		}
	}
}

func TestToolSearchThatIsChosen(t *testing.T) {
	p := offered(t, searching+`],"tool_choice":{"type":"tool_search"}}`)
	if c := p.ToolChoice; c.Type != "function" || c.Name != "tool_search" || c.Mode != "required" {
		t.Errorf("%+v", c)
	}
}

// Nor is it lost to a client of Responses who goes on with an earlier response.
func TestToolSearchOfAnEarlierResponse(t *testing.T) {
	p, err := ParseRequest([]byte(searching + "]}"))
	if err != nil {
		t.Fatal(err)
	}
	p.Names = &Names{Items: []ItemName{{Path: "previous_response_id"}}}
	if err := p.DropTools(func(*Tool) bool { return true }); err != nil || len(p.Tools) != 2 || len(p.Warnings) > 0 {
		t.Errorf("%v, %+v", err, p.Tools)
	}
}

// Searches that the provider would run, and those beside a function of the name, are left out; so are
// those of clients of other APIs, who could not answer.
func TestToolSearchThatIsLeftOut(t *testing.T) {
	for _, request := range []string{
		`{"model":"m","input":"hi","tools":[{"type":"tool_search"}]}`,
		`{"model":"m","input":"hi","tools":[{"type":"tool_search","execution":"server"}]}`,
		`{"model":"m","input":"hi","tools":[{"type":"tool_search","execution":"client"},{"type":"function","name":"tool_search"}]}`,
	} {
		if p := offered(t, request); len(p.Warnings) != 1 {
			t.Errorf("%s: %q", request, p.Warnings)
		}
	}
	p, err := ParseRequest([]byte(searching + "]}"))
	if err != nil {
		t.Fatal(err)
	}
	p.Names = &Names{Fields: map[string]string{}}
	if err := p.DropTools(func(*Tool) bool { return true }); err != nil || len(p.Tools) != 1 || len(p.Warnings) != 1 {
		t.Errorf("%v, %+v", err, p.Tools)
	}
}
