package translate

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// sketch tells turns in short: user[text], assistant[call c1], tool[c1].
func sketch(p *Request) string {
	var turns []string
	for _, t := range p.Turns {
		var items []string
		for _, item := range t.Items {
			switch item := item.(type) {
			case *Message:
				var text strings.Builder
				for _, part := range item.Content {
					text.WriteString(part.Text)
				}
				items = append(items, text.String())
			case *ToolCall:
				items = append(items, "call "+item.CallID)
			case *ToolOutput:
				items = append(items, item.CallID+" of "+item.Name)
			case *ReasoningItem:
				items = append(items, "reasoning")
			}
		}
		turns = append(turns, fmt.Sprintf("%s[%s]", t.Role, strings.Join(items, ", ")))
	}
	return strings.Join(turns, " ")
}

func parse(t *testing.T, fields string) *Request {
	t.Helper()
	p, err := ParseRequest([]byte(`{"model":"m",` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	user1  = `{"role":"user","content":"hi"}`
	said   = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"said"}]}`
	think  = `{"type":"reasoning","id":"rs","summary":[]}`
	c1     = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
	c2     = `{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}`
	o1     = `{"type":"function_call_output","call_id":"c1","output":"1"}`
	o2     = `{"type":"function_call_output","call_id":"c2","output":"2"}`
	custom = `{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"x"}`
	patch  = `{"type":"custom_tool_call_output","call_id":"c1","output":"done"}`
)

func TestTurns(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"text", `"hi"`, "user[hi]"},
		{"no type", "[" + user1 + "]", "user[hi]"},
		{"one role in a row", "[" + user1 + "," + user1 + "]", "user[hi, hi]"},
		{"system keeps its place", `[` + user1 + `,{"role":"system","content":"s"},` + user1 + `]`, "user[hi] system[s] user[hi]"},
		{"reasoning, text and call", "[" + think + "," + said + "," + c1 + "," + o1 + "]", "assistant[reasoning, said, call c1] tool[c1 of f]"},
		{"custom", "[" + custom + "," + patch + "]", "assistant[call c1] tool[c1 of patch]"},
		{"an id is used again", "[" + c1 + "," + o1 + "," + c1 + "," + o1 + "]",
			"assistant[call c1] tool[c1 of f] assistant[call c1] tool[c1 of f]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := sketch(parse(t, `"input":`+test.input)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestParallelCallsAreOneTurn(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"calls, outputs", c1 + "," + c2 + "," + o1 + "," + o2, "assistant[call c1, call c2] tool[c1 of f, c2 of f]"},
		{"one after the other", c1 + "," + o1 + "," + c2 + "," + o2,
			"assistant[call c1] tool[c1 of f] assistant[call c2] tool[c2 of f]"},
		{"a call among outputs", c1 + "," + c2 + "," + o2 + "," + said + "," + o1,
			"assistant[call c1, call c2, said] tool[c2 of f, c1 of f]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := sketch(parse(t, `"input":[`+test.input+`]`)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestMessageBetweenCallAndOutput(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"assistant's", c1 + "," + said + "," + o1, "assistant[call c1, said] tool[c1 of f]"},
		{"user's", c1 + "," + user1 + "," + o1, "assistant[call c1] tool[c1 of f] user[hi]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := sketch(parse(t, `"input":[`+test.input+`]`)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestHistoryOfHostedToolsIsLeftOut(t *testing.T) {
	p := parse(t, `"input":[`+user1+`,{"type":"web_search_call","id":"ws"},`+said+`]`)
	if got := sketch(p); got != "user[hi] assistant[said]" {
		t.Errorf("got %s", got)
	}
	if len(p.Warnings) != 1 || p.Warnings[0] != "input[1]: web_search_call left out" {
		t.Errorf("warnings %q", p.Warnings)
	}
	p.Strict = true
	if err := p.Apply(DefaultPolicy); err != nil {
		t.Errorf("a strict request cannot be gone on with: %v", err)
	}
	for i, kind := range []string{"compaction", "compaction_trigger", "configuration_update", "item_reference", "program"} {
		_, err := ParseRequest([]byte(`{"model":"m","input":[` + user1 + strings.Repeat(","+said, i) + `,{"type":"` + kind + `","id":"x"}]}`))
		e, ok := errors.AsType[*plugins.Error](err)
		if want := indexPath("input", i+1); !ok || e.Status != http.StatusBadRequest || e.Param != want || !strings.Contains(e.Message, kind) {
			t.Errorf("%s: got %v, want a 400 that names %s", kind, err, want)
		}
	}
}

func TestParseRequestRefuses(t *testing.T) {
	tests := []struct{ name, body, param, message string }{
		{"no JSON", `{`, "", "valid JSON"},
		{"no UTF-8", "{\"model\":\"\xff\"}", "", "UTF-8"},
		{"no object", `[]`, "", "not a JSON object"},
		{"no model", `{"input":"x"}`, "model", "Missing required parameter: 'model'."},
		{"no input", `{"model":"m"}`, "input", "Missing required parameter: 'input'."},
		{"type of a field", `{"model":"m","input":"x","temperature":"hot"}`, "temperature", "expected a number, but got a string"},
		{"type of input", `{"model":"m","input":1}`, "input", "expected a string or an array"},
		{"item", `{"model":"m","input":[1]}`, "input[0]", "expected an object"},
		{"role", `{"model":"m","input":[{"role":"tool","content":"x"}]}`, "input[0].role", "'tool'"},
		{"content", `{"model":"m","input":[{"role":"user"}]}`, "input[0].content", "Missing"},
		{"part", `{"model":"m","input":[{"role":"user","content":[{"type":"x"}]}]}`, "input[0].content[0].type", "'x'"},
		{"empty image", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image"}]}]}`, "input[0].content[0]", "no content"},
		{"data URL", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,x"}]}]}`,
			"input[0].content[0].image_url", "base64"},
		{"orphan output", `{"model":"m","input":[` + user1 + `,` + o1 + `]}`, "input[1].call_id",
			"No tool call found for function call output with call_id c1."},
		{"output before call", `{"model":"m","input":[` + o1 + `,` + c1 + `]}`, "input[0].call_id", "No tool call found"},
		{"second output", `{"model":"m","input":[` + c1 + `,` + o1 + `,` + o1 + `]}`, "input[2].call_id", "No tool call found"},
		{"output of another type", `{"model":"m","input":[` + custom + `,` + o1 + `]}`, "input[1].call_id", "No tool call found"},
		{"missing output", `{"model":"m","input":[` + c1 + `,` + c2 + `,` + o2 + `]}`, "input[0].call_id",
			"No tool output found for function call c1."},
		{"duplicate call", `{"model":"m","input":[` + c1 + `,` + c1 + `]}`, "input[1].call_id", "Duplicate"},
		{"duplicate call in a turn", `{"model":"m","input":[` + c1 + `,` + c2 + `,` + o1 + `,` + c1 + `]}`, "input[3].call_id", "Duplicate"},
		{"call without name", `{"model":"m","input":[{"type":"function_call","call_id":"c"}]}`, "input[0].name", "Missing"},
		{"item reference", `{"model":"m","input":[{"type":"item_reference","id":"x"}]}`, "input[0]", "item_reference"},
		{"compaction", `{"model":"m","input":[` + user1 + `,{"type":"compaction","id":"x"}]}`, "input[1]", "compaction"},
		{"tool without name", `{"model":"m","input":"x","tools":[{"type":"function"}]}`, "tools[0].name", "Missing"},
		{"tool of no type", `{"model":"m","input":"x","tools":[{}]}`, "tools[0].type", "Missing"},
		{"tool is no object", `{"model":"m","input":"x","tools":["f"]}`, "tools[0]", "expected an object"},
		{"choice", `{"model":"m","input":"x","tool_choice":"any"}`, "tool_choice", "'any'"},
		{"choice of no tool", `{"model":"m","input":"x","tool_choice":{"type":"function","name":"f"}}`, "tool_choice", "'f' not found"},
		{"format", `{"model":"m","input":"x","text":{"format":{"type":"xml"}}}`, "text.format.type", "'xml'"},
		{"format without schema", `{"model":"m","input":"x","text":{"format":{"type":"json_schema"}}}`, "text.format.schema", "Missing"},
		{"arguments that are no string", `{"model":"m","input":[{"type":"function_call","call_id":"c1","name":"f","arguments":{"a":1}},` + o1 + `]}`,
			"input[0].arguments", "expected a string, but got an object"},
		{"input of a call that is no string", `{"model":"m","input":[{"type":"custom_tool_call","call_id":"c1","name":"f","input":["x"]},` + patch + `]}`,
			"input[0].input", "expected a string, but got an array"},
		{"a number beyond all", `{"model":"m","input":"x","temperature":1e999}`, "temperature", "out of range"},
		{"a negative number beyond all", `{"model":"m","input":"x","presence_penalty":-1e999}`, "presence_penalty", "out of range"},
		{"a limit beyond 64 bits", `{"model":"m","input":"x","max_output_tokens":10000000000000000000}`, "max_output_tokens", "above maximum"},
		{"no calls of hosted tools", `{"model":"m","input":"x","max_tool_calls":0}`, "max_tool_calls", "below minimum"},
		{"negative limit", `{"model":"m","input":"x","max_output_tokens":-1}`, "max_output_tokens", "below minimum"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseRequest([]byte(test.body))
			var e *plugins.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Status != 400 || e.Param != test.param || !strings.Contains(e.Message, test.message) {
				t.Errorf("got %d, param %q, %q; want 400, %q, %q", e.Status, e.Param, e.Message, test.param, test.message)
			}
		})
	}
}

func TestToolsOfEveryKind(t *testing.T) {
	p := parse(t, `"input":"x","tools":[
		{"type":"function","name":"f","parameters":{"b":1, "a":12345678901234567890},"strict":true},
		{"type":"custom","name":"patch","format":{"type":"grammar"}},
		{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find"}]},
		{"type":"web_search"}],
		"tool_choice":{"type":"function","name":"find","namespace":"crm"}`)
	var got []string
	for _, tool := range p.Tools {
		got = append(got, tool.Type+" "+tool.Name)
	}
	if s := strings.Join(got, ", "); s != "function f, custom patch, function crm__find, web_search " {
		t.Errorf("tools %q", s)
	}
	if s := string(p.Tools[0].Parameters); s != `{"b":1, "a":12345678901234567890}` {
		t.Errorf("a schema must stay as it is, got %s", s)
	}
	if p.ToolChoice.Name != "crm__find" || p.ToolChoice.Mode != "required" {
		t.Errorf("choice %+v", p.ToolChoice)
	}
}

// Tools that the model found later are tools like those that it had.
func TestToolsOfTheConversation(t *testing.T) {
	p := parse(t, `"tools":[{"type":"function","name":"f","description":"first"}],"input":[`+user1+`,
		{"type":"tool_search_output","tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"g"}]}]},
		{"type":"additional_tools","tools":[{"type":"function","name":"f","description":"second"},{"type":"custom","name":"patch"}]}]`)
	var names []string
	for _, tool := range p.Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "f crm__g patch" || p.Tool("f").Description != "first" || len(p.Warnings) > 0 {
		t.Errorf("got %s, %q", got, p.Warnings)
	}
}

func TestFormatIsRead(t *testing.T) {
	p := parse(t, `"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"z":1,"a":2},"strict":true},"verbosity":"low"}`)
	if p.Format.Type != "json_schema" || string(p.Format.Schema) != `{"z":1,"a":2}` || !*p.Format.Strict || p.Verbosity != "low" {
		t.Errorf("got %+v", p.Format)
	}
}

func TestAllowedToolsLeaveOutTheOthers(t *testing.T) {
	p := parse(t, `"input":"x","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}],"parallel_tool_calls":false,
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}`)
	if p.ToolChoice.Mode != "required" || len(p.ToolChoice.Allowed) != 1 || p.ToolChoice.Allowed[0] != "g" {
		t.Errorf("got %+v", p.ToolChoice)
	}
	if p.ParallelToolCalls == nil || *p.ParallelToolCalls {
		t.Error("parallel_tool_calls is lost")
	}
}

func TestParts(t *testing.T) {
	p := parse(t, `"input":[{"role":"user","content":[
		{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"low"},
		{"type":"input_image","image_url":"data:image/jpg;base64,aGk="},
		{"type":"input_image","image_url":"https://example.com/x.png"},
		{"type":"input_file","file_data":"data:application/pdf;name=x;base64,aGk=","filename":"x.pdf"},
		{"type":"input_file","file_id":"file_1"},
		{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}]`)
	var got []string
	for part := range p.Parts {
		b, err := part.Bytes()
		if err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%s %s %q %s%s", part.Type, part.MediaType, b, part.URL, part.FileID))
	}
	want := `input_image image/png "hi" ; input_image image/jpeg "hi" ; input_image  "" https://example.com/x.png; input_file application/pdf "hi" ; ` +
		`input_file  "" file_1; input_audio audio/wav "hi" `
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if url := p.Turns[0].Items[0].(*Message).Content[0].DataURL(); url != "data:image/png;base64,aGk=" {
		t.Errorf("got %s", url)
	}
}

func TestObject(t *testing.T) {
	tests := []struct {
		call ToolCall
		want string
	}{
		{ToolCall{Arguments: `{"b":1,"a":2}`}, `{"b":1,"a":2}`},
		{ToolCall{}, `{}`},
		{ToolCall{Custom: true, Arguments: "a\"\n"}, `{"input":"a\"\n"}`},
		{ToolCall{Arguments: `{"b":`}, `{"INVALID_JSON":"{\"b\":"}`},
		{ToolCall{Arguments: `[]`}, `{"INVALID_JSON":"[]"}`},
	}
	for _, test := range tests {
		if got := test.call.Object(); string(got) != test.want {
			t.Errorf("%+v: got %s, want %s", test.call, got, test.want)
		}
	}
}

func TestValidate(t *testing.T) {
	tests := []struct{ body, param string }{
		{`{"model":"m","input":"x","top_logprobs":20,"service_tier":"flex","include":["a"],"anything":[1],"user":null}`, "ok"},
		{`{"tool_choice":{"type":"function"}}`, "ok"},
		{`{"temperature":1}`, "ok"},
		{`{"top_logprobs":21}`, "top_logprobs"},
		{`{"top_logprobs":1.5}`, "top_logprobs"},
		{`{"top_logprobs":-1}`, "top_logprobs"},
		{`{"service_tier":"fast"}`, "service_tier"},
		{`{"truncation":"on"}`, "truncation"},
		{`{"tool_choice":"any"}`, "tool_choice"},
		{`{"include":[1]}`, "include[0]"},
		{`{"include":"x"}`, "include"},
		{`{"tools":{}}`, "tools"},
		{`{"text":"x"}`, "text"},
		{`{"stream":"true"}`, "stream"},
		{`{"user":1}`, "user"},
		{`{"max_output_tokens":"1"}`, "max_output_tokens"},
	}
	for _, test := range tests {
		got := "ok"
		var e *plugins.Error
		if errors.As(Validate([]byte(test.body)), &e) {
			got = e.Param
		}
		if got != test.param {
			t.Errorf("%s: got %s, want %s", test.body, got, test.param)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":[` + user1 + `,` + c1 + `,` + o1 + `,` + custom + `,` + patch + `]}`))
	f.Add([]byte(`{"model":"m","input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := ParseRequest(body)
		var e *plugins.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v is no *Error", err)
		}
		if err != nil {
			return
		}
		// In every turn of the assistant, calls and the outputs that follow pair up.
		for i, turn := range p.Turns {
			calls := make(map[string]int)
			for _, item := range turn.Items {
				if c, ok := item.(*ToolCall); ok {
					calls[c.CallID]++
				}
			}
			if len(calls) > 0 {
				if i+1 == len(p.Turns) || p.Turns[i+1].Role != RoleTool {
					t.Fatal("calls without outputs")
				}
				for _, item := range p.Turns[i+1].Items {
					calls[item.(*ToolOutput).CallID]--
				}
			}
			for id, n := range calls {
				if n != 0 {
					t.Fatalf("call %q has %d outputs too few", id, n)
				}
			}
		}
	})
}
