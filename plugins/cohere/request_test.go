package cohere

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Targets as the catalogue describes them.
var (
	command = translate.Target{Model: "command-a-03-2025", Capabilities: &plugins.Capabilities{Input: []string{"text"}, MaxOutput: 8000, ToolCall: true}}
	thinks  = translate.Target{Model: "command-a-reasoning-08-2025", Capabilities: &plugins.Capabilities{Input: []string{"text"}, MaxOutput: 32000, Reasoning: true}}
	vision  = translate.Target{Model: "command-a-vision-07-2025", Capabilities: &plugins.Capabilities{Input: []string{"text", "image"}}}
	unknown = translate.Target{Model: "command-z"}
)

// prepare returns the upstream request, its body and the request with its warnings.
func prepare(t *testing.T, target translate.Target, request string, strict bool) (*http.Request, string, *translate.Request, error) {
	t.Helper()
	return plugintest.Prepare(t, Provider{}, target, request, strict)
}

func TestPrepare(t *testing.T) {
	req, body, p, err := prepare(t, command, `{
		"model": "c", "instructions": "Be <brief>.", "input": "hi", "stream": true, "temperature": 0.2, "top_p": 0.5, "max_output_tokens": 50,
		"frequency_penalty": 0.1, "presence_penalty": 0.2, "tool_choice": "auto",
		"tools": [{"type": "function", "name": "f", "description": "does f", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}],
		"user": "u", "metadata": {"k": "v"}, "store": false}`, true)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"command-a-03-2025","messages":[{"role":"system","content":[{"type":"text","text":"Be <brief>."}]},` +
		`{"role":"user","content":[{"type":"text","text":"hi"}]}],` +
		`"tools":[{"type":"function","function":{"name":"f","description":"does f","parameters":{"type":"object","properties":{"b":{},"a":{}}}}}],` +
		`"max_tokens":50,"temperature":0.2,"p":0.5,"frequency_penalty":0.1,"presence_penalty":0.2,"stream":true}`
	if body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
	if got := req.Method + " " + req.URL.String(); got != "POST https://example.com/v2/chat" {
		t.Errorf("got %s", got)
	}
	if req.Header.Get("Authorization") != "Bearer secret" || req.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the header is %v", req.Header)
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
}

const (
	functions = `"tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]`
	strict    = `{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{}},"required":["a"]}}`
	schema    = `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"b":{},"a":{}}}}}`
	image     = `"input":[{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"}]}]`
	calls     = `"input":[{"role":"user","content":"hi"},
		{"type":"reasoning","id":"1","summary":[],"encrypted_content":"{\"thinking\":\"Hm\"}"},
		{"type":"reasoning","id":"2","summary":[],"encrypted_content":"{\"tool_plan\":\"I will.\"}"},
		{"type":"function_call","call_id":"A","name":"f","arguments":""},
		{"type":"custom_tool_call","call_id":"B","name":"patch","input":"x\"y"},
		{"role":"assistant","content":"Wait."},
		{"type":"function_call_output","call_id":"A","output":"1"},
		{"type":"custom_tool_call_output","call_id":"B","output":[{"type":"input_text","text":"2"},{"type":"input_text","text":"3"}]}]`
)

// TestMapping: what a field of the request becomes, by its path in the body, ""
// for nothing, and of what the client is warned.
func TestMapping(t *testing.T) {
	for _, test := range []struct {
		name   string
		target translate.Target
		fields string // of the request; input is "hi" unless given
		path   string
		want   string
		warned []string // the fields
	}{
		{name: "system and developer", fields: `"input":[{"role":"developer","content":"A"},{"role":"user","content":"hi"},{"role":"system","content":"B"}]`,
			path: "messages.#.role", want: `["system","user","system"]`},
		{name: "blank texts are left out", fields: `"instructions":" ","input":[{"role":"assistant","content":"\n"},{"role":"user","content":[{"type":"input_text","text":""},{"type":"input_text","text":"hi"}]}]`,
			path: "messages", want: `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		{name: "refusals are text", fields: `"input":[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"user","content":"?"}]`,
			path: "messages.0", want: `{"role":"assistant","content":[{"type":"text","text":"No."}]}`},
		{name: "an image", target: vision, fields: image, path: "messages.0.content.1", want: `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}`},
		{name: "an image in full", target: unknown, fields: strings.Replace(image, "low", "original", 1), path: "messages.0.content.1.image_url.detail", want: `"high"`},
		{name: "an image by URL", target: vision, fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`,
			path: "messages.0.content.0.image_url", want: `{"url":"https://example.com/a.png"}`},

		{name: "calls are one message", fields: calls, path: "messages.1",
			want: `{"role":"assistant","content":[{"type":"thinking","thinking":"Hm"},{"type":"text","text":"Wait."}],"tool_plan":"I will.",` +
				`"tool_calls":[{"id":"A","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"B","type":"function","function":{"name":"patch","arguments":"{\"input\":\"x\\\"y\"}"}}]}`},
		{name: "outputs follow their calls", fields: calls, path: "[messages.2,messages.3]",
			want: `[{"role":"tool","tool_call_id":"A","content":[{"type":"text","text":"1"}]},{"role":"tool","tool_call_id":"B","content":[{"type":"text","text":"2"},{"type":"text","text":"3"}]}]`},
		{name: "an empty output", fields: `"input":[{"type":"function_call","call_id":"A","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"A","output":[]}]`,
			path: "messages.1.content", want: `[{"type":"text","text":""}]`},
		{name: "another's reasoning", fields: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"1","summary":[],"encrypted_content":"gAAA"}]`,
			path: "messages.#", want: "1", warned: []string{"input[1]"}},
		{name: "another's thinking", fields: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"1","summary":[],"encrypted_content":"{\"type\":\"thinking\",\"thinking\":\"Hm\"}"}]`,
			path: "messages.#", want: "1", warned: []string{"input[1]"}},
		{name: "a summary alone", fields: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"1","summary":[{"type":"summary_text","text":"Hm"}]}]`,
			path: "messages.#", want: "1", warned: []string{"input[1]"}},

		{name: "a function without parameters", fields: functions, path: "tools.0.function", want: `{"name":"f","parameters":{"type":"object","properties":{}}}`},
		{name: "a custom tool", fields: `"tools":[{"type":"custom","name":"patch","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: A"}}]`,
			path: "tools.0.function", want: `{"name":"patch","description":"d\n\nThe input matches this lark grammar:\nstart: A","parameters":` + string(translate.CustomParameters) + `}`},
		{name: "a tool in a namespace", fields: `"tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"f"}]}]`, path: "tools.0.function.name", want: `"crm__f"`},
		{name: "strict tools", fields: `"tools":[` + strict + `]`, path: "strict_tools", want: "true"},
		{name: "strict tools among others", fields: `"tools":[` + strict + `,{"type":"function","name":"g"}]`, path: "strict_tools", warned: []string{"tools[0].strict"}},
		{name: "a strict tool without required properties", fields: `"tools":[{"type":"function","name":"g","strict":true}]`, path: "strict_tools", warned: []string{"tools[0].strict"}},
		{name: "any tool", fields: functions + `,"tool_choice":"required"`, path: "[tool_choice,tools.#]", want: `["REQUIRED",2]`},
		{name: "no tool", fields: functions + `,"tool_choice":"none"`, path: "[tool_choice,tools.#]", want: `["NONE",2]`},
		{name: "no tool of none", fields: `"tool_choice":"none"`, path: "tool_choice"},
		{name: "one tool", fields: functions + `,"tool_choice":{"type":"function","name":"g"}`, path: "[tool_choice,tools.#.function.name]", want: `["REQUIRED",["g"]]`},
		{name: "some tools", fields: functions + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`,
			path: "[tool_choice,tools.#.function.name]", want: `[["g"]]`},
		{name: "calls one by one", fields: functions + `,"parallel_tool_calls":false`, path: "parallel_tool_calls", warned: []string{"parallel_tool_calls"}},

		{name: "a schema", fields: schema, path: "response_format", want: `{"type":"json_object","json_schema":{"type":"object","properties":{"b":{},"a":{}}}}`},
		{name: "a schema beside tools", fields: functions + `,` + schema, path: "[tool_choice,response_format,tools.#.function.name]", want: `["REQUIRED",["f","g","structured_answer"]]`},
		{name: "a schema beside tools that must be called", fields: functions + `,` + schema + `,"tool_choice":"required"`, path: "tools.#.function.name", want: `["f","g"]`},
		{name: "an object", fields: `"text":{"format":{"type":"json_object"}}`, path: "response_format", want: `{"type":"json_object"}`},
		{name: "plain text", fields: functions + `,"text":{"format":{"type":"text"}}`, path: "response_format"},

		{name: "no effort asked for", target: thinks, path: "thinking"},
		{name: "no thinking", target: thinks, fields: `"reasoning":{"effort":"none"}`, path: "thinking", want: `{"type":"disabled"}`},
		{name: "some thinking", target: thinks, fields: `"reasoning":{"effort":"low"}`, path: "thinking", want: `{"type":"enabled","token_budget":3200}`},
		{name: "some thinking within a limit", target: thinks, fields: `"reasoning":{"effort":"high"},"max_output_tokens":1000`, path: "thinking", want: `{"type":"enabled","token_budget":600}`},
		{name: "most thinking", target: unknown, fields: `"reasoning":{"effort":"max"}`, path: "thinking", want: `{"type":"enabled"}`},
		{name: "thinking of a model that does not", target: command, fields: `"reasoning":{"effort":"low"}`, path: "thinking", warned: []string{"reasoning.effort"}},
		{name: "no thinking of a model that does not", target: command, fields: `"reasoning":{"effort":"none"}`, path: "thinking"},
		{name: "a summary", target: thinks, fields: `"reasoning":{"summary":"auto"}`, path: "thinking", warned: []string{"reasoning.summary"}},

		{name: "the default temperature", fields: `"temperature":1`, path: "temperature", want: "1"},
		{name: "a high temperature", fields: `"temperature":1.7`, path: "temperature", want: "1", warned: []string{"temperature"}},
		{name: "the default top_p", fields: `"top_p":1`, path: "p"},
		{name: "a low top_p", fields: `"top_p":0`, path: "p", want: "0.01", warned: []string{"top_p"}},
		{name: "a negative penalty", fields: `"presence_penalty":-1`, path: "presence_penalty", want: "0", warned: []string{"presence_penalty"}},
		{name: "a high penalty", fields: `"frequency_penalty":2`, path: "frequency_penalty", want: "1", warned: []string{"frequency_penalty"}},
		{name: "a tier", fields: `"service_tier":"flex"`, path: "priority", warned: []string{"service_tier"}},
		{name: "hints to accounting", fields: `"user":"u","safety_identifier":"s","prompt_cache_key":"k","metadata":{"a":"b"},"store":true`, path: "user"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.target.Model == "" {
				test.target = command
			}
			plugintest.Maps(t, Provider{}, test.target, test.fields, test.path, test.want, test.warned...)
		})
	}
}

func TestRejected(t *testing.T) {
	file := `"input":[{"role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,AAAA"}]}]`
	for _, test := range []struct{ name, fields, param string }{
		{"a PDF", file, "input[0].content[0]"},
		{"an image for a model that sees none", image, "input[0].content[1]"},
		{"an image by its id", `"input":[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]`, "input[0].content[0]"},
		{"an image that a tool puts out", `"input":[{"type":"function_call","call_id":"A","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"A","output":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`, "input[1].output[0]"},
		{"JSON beside tools", functions + `,"text":{"format":{"type":"json_object"}}`, "text.format"},
		{"a call without tools", `"tool_choice":"required"`, "tool_choice"},
		{"a hosted tool that must be used", `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, "tool_choice"},
		{"an effort that is none", `"reasoning":{"effort":"huge"}`, "reasoning.effort"},
		{"nothing", `"input":" "`, "input"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugintest.Refuses(t, Provider{}, command, test.fields, test.param)
		})
	}
}

func TestCalls(t *testing.T) {
	plugintest.Calls(t, Provider{}, command, "messages.#.tool_calls.#.id", "", nil)
}

func TestReasoningComesBack(t *testing.T) {
	a := translate.NewAssembler(&translate.Request{Model: "m"}, nil, translate.Options{})
	answer := `{"finish_reason":"TOOL_CALL","message":{"content":[{"type":"thinking","thinking":"Hm \u00e9<"}],"tool_plan":"I will.",` +
		`"tool_calls":[{"id":"A","type":"function","function":{"name":"f","arguments":"{}"}}]}}`
	if err := (Provider{}).Decode(plugintest.Response(http.StatusOK, answer), a); err != nil {
		t.Fatal(err)
	}
	a.End()
	output := gjson.GetBytes(a.Response(), "output").Raw
	_, body, p, err := prepare(t, thinks, `{"model":"m","input":[{"role":"user","content":"hi"},`+strings.Trim(output, "[]")+
		`,{"type":"function_call_output","call_id":"A","output":"1"}]}`, true)
	if err != nil {
		t.Fatal(err, p.Warnings)
	}
	got := gjson.Get(body, "messages.1")
	if got.Get("content.0.thinking").Str != "Hm é<" || got.Get("tool_plan").Str != "I will." || got.Get("tool_calls.0.id").Str != "A" {
		t.Errorf("the assistant's message is %s", got)
	}
}

func TestDocumentedValues(t *testing.T) { plugintest.Documented(t, Provider{}, command) }
