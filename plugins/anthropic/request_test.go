package anthropic

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Targets as the catalogue describes them: Claude 3.7 counts its thoughts in
// tokens and has no output format, 4.5 counts and has levels of effort, 5
// decides by effort alone, and of 5.5 nothing is known.
var (
	claude37 = translate.Target{Model: "claude-3-7-sonnet-latest", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image"}, MaxOutput: 64000, Reasoning: true, Budget: plugins.Budget{Min: 1024}, ToolCall: true, Temperature: true,
	}}
	claude45 = translate.Target{Model: "claude-opus-4-5", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "pdf"}, MaxOutput: 64000, Reasoning: true, Efforts: []string{"low", "medium", "high"},
		Budget: plugins.Budget{Min: 1024}, ToolCall: true, Temperature: true,
	}}
	claude5 = translate.Target{Model: "claude-sonnet-5", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "pdf"}, MaxOutput: 128000, Reasoning: true,
		Efforts: []string{"low", "medium", "high", "xhigh", "max"}, ToolCall: true,
	}}
	haiku3 = translate.Target{Model: "claude-3-haiku-20240307", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image"}, MaxOutput: 4096, ToolCall: true, Temperature: true,
	}}
	opus55   = translate.Target{Model: "claude-opus-5-5", Capabilities: new(plugins.Capabilities)}
	sonnet55 = translate.Target{Model: "claude-sonnet-5-5"}
)

// prepare returns the upstream request, its body and the request with its warnings.
func prepare(t *testing.T, target translate.Target, request string, strict bool) (*http.Request, string, *translate.Request, error) {
	t.Helper()
	return plugintest.Prepare(t, Provider{}, target, request, strict)
}

func TestPrepareNative(t *testing.T) {
	at := translate.Target{Model: "claude", BaseURL: "https://example.com", Key: "secret"}
	body := `{"model":"label/claude", "max_tokens":1e2}`
	req, err := Provider{}.PrepareNative(t.Context(), plugins.Messages, plugintest.Object(t, body), at)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := io.ReadAll(req.Body)
	if err != nil || string(sent) != `{"model":"claude", "max_tokens":1e2}` {
		t.Errorf("it sends %s, %v", sent, err)
	}
	if req.URL.Path != "/v1/messages" || req.Header.Get("X-Api-Key") != "secret" || req.Header.Get("Anthropic-Version") == "" {
		t.Errorf("got %s with %v", req.URL, req.Header)
	}
	req, err = Provider{}.PrepareNative(t.Context(), plugins.CountTokens, plugintest.Object(t, body), at)
	if err != nil || req.URL.Path != "/v1/messages/count_tokens" {
		t.Errorf("a count: %v, %v", req, err)
	}
	if _, err := (Provider{}).PrepareNative(t.Context(), plugins.Responses, plugintest.Object(t, body), at); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Responses: got error %v", err)
	}
}

func TestPrepare(t *testing.T) {
	req, body, p, err := prepare(t, claude45, `{
		"model": "gpt", "instructions": "Be brief.", "input": "hi", "stream": true, "temperature": 0.2, "max_output_tokens": 50,
		"tools": [{"type": "function", "name": "f", "description": "does f", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}],
		"user": "u", "metadata": {"k": "v"}, "store": false}`, true)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"claude-opus-4-5","system":[{"type":"text","text":"Be brief."}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],` +
		`"tools":[{"name":"f","description":"does f","input_schema":{"type":"object","properties":{"b":{},"a":{}}}}],` +
		`"max_tokens":50,"temperature":0.2,"metadata":{"user_id":"u"},"stream":true}`
	if body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
	if got := req.Method + " " + req.URL.String(); got != "POST https://example.com/v1/messages" {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Api-Key": "secret", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "",
	} {
		if got := req.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
}

const (
	function = `{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}`
	other    = `{"type":"function","name":"g"}`
	format   = `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"],"additionalProperties":false}}}`
)

// mapped are the rows of the mapping: what a field of the request becomes, by
// its path in the body, "" for nothing, and how the client is warned.
var mapped = []struct {
	name     string
	target   translate.Target
	fields   string // of the request; input is "hi" unless given
	path     string
	want     string
	warnings []string
}{
	{name: "leading system messages join the instructions", target: claude5,
		fields: `"instructions":"A","input":[{"role":"system","content":"B"},{"role":"developer","content":"C"},{"role":"user","content":"hi"}]`,
		path:   "system.#.text", want: `["A","B","C"]`},
	{name: "later system messages keep their place", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"role":"developer","content":"Be brief."}]`,
		path:   "messages", want: `[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"<system>\nBe brief.\n</system>"}]}]`},
	{name: "the user begins", target: claude5, fields: `"input":[{"role":"assistant","content":"Hello!"},{"role":"user","content":"hi"}]`,
		path: "messages.#.role", want: `["user","assistant","user"]`},
	{name: "stop sequences of white space", target: claude5, fields: `"stop":["a"," ","","\n\n"]`, path: "stop_sequences", want: `["a"]`},
	{name: "a system message alone", target: claude5, fields: `"input":[{"role":"system","content":"S"}]`,
		path: "messages.#.role", want: `["user"]`},
	{name: "blank texts are left out", target: claude5,
		fields: `"instructions":" ","input":[{"role":"user","content":[{"type":"input_text","text":""},{"type":"input_text","text":"hi"}]},{"role":"assistant","content":"\n"},{"role":"user","content":"?"}]`,
		path:   "messages", want: `[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"?"}]}]`},
	{name: "no system", target: claude5, fields: `"instructions":" "`, path: "system"},
	{name: "refusals are text", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"user","content":"?"}]`,
		path:   "messages.1.content", want: `[{"type":"text","text":"No."}]`},

	{name: "an inline image", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}]`,
		path:   "messages.0.content", want: `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]`},
	{name: "an image by URL", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`,
		path:   "messages.0.content", want: `[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]`},
	{name: "the detail of an image", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png","detail":"low"},{"type":"input_image","image_url":"https://example.com/a.png","detail":"auto"}]}]`,
		path:   "messages.0.content.0.source.type", want: `"url"`,
		warnings: []string{"input[0].content[0].detail: not supported by the provider, left out"}},
	{name: "an uploaded image", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]`,
		path:   "messages.0.content", want: `[{"type":"image","source":{"type":"file","file_id":"file_1"}}]`},
	{name: "an inline PDF", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}]}]`,
		path:   "messages.0.content", want: `[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf"}]`},
	{name: "a PDF as bare base64", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","file_data":"JVBERi0="}]}]`,
		path:   "messages.0.content.0.source.media_type", want: `"application/pdf"`},
	{name: "an inline text", target: claude37,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.csv","file_data":"data:text/csv;base64,YSxi"}]}]`,
		path:   "messages.0.content", want: `[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b"},"title":"a.csv"}]`},
	{name: "a document by URL", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]`,
		path:   "messages.0.content", want: `[{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}]`},

	{name: "calls and outputs", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"b\":1, \"a\":9007199254740993}"},
			{"type":"function_call_output","call_id":"c1","output":"42"}]`,
		path: "messages.#.content|@flatten",
		want: `[{"type":"text","text":"hi"},{"type":"tool_use","id":"c1","name":"f","input":{"b":1,"a":9007199254740993}},` +
			`{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"42"}]}]`},
	{name: "no arguments, no output", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":""},{"type":"function_call_output","call_id":"c1","output":""}]`,
		path:   "messages.#.content|@flatten",
		want:   `[{"type":"text","text":"hi"},{"type":"tool_use","id":"c1","name":"f","input":{}},{"type":"tool_result","tool_use_id":"c1"}]`},
	{name: "an incomplete output is an error", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x","status":"incomplete"}]`,
		path:   "messages.2.content.0.is_error", want: `true`},
	{name: "an error says something", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":" ","status":"incomplete"}]`,
		path:   "messages.2.content.0.content", want: `[{"type":"text","text":"(The call failed.)"}]`},
	{name: "images in outputs", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:image/webp;base64,aGk="}]}]`,
		path: "messages.2.content.0.content", want: `[{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"aGk="}}]`},
	{name: "outputs come before what the user says", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"role":"user","content":"well?"},{"type":"function_call_output","call_id":"c1","output":"x"}]`,
		path:   "messages.2.content.#.type", want: `["tool_result","text"]`},
	{name: "a custom call", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"a\"b"},{"type":"custom_tool_call_output","call_id":"c1","output":"x"}]`,
		path:   "messages.1.content.0.input", want: `{"input":"a\"b"}`},

	{name: "thoughts come back as they were", target: claude5,
		fields: `"input":[{"role":"user","content":"hi"},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"changed"}],"encrypted_content":"{\"type\":\"thinking\",\"thinking\":\"<a & b>\",\"signature\":\"c2ln\"}"},
			{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"{\"type\":\"redacted_thinking\",\"data\":\"cg==\"}"},
			{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`,
		path: "messages.1.content",
		want: `[{"type":"thinking","thinking":"<a & b>","signature":"c2ln"},{"type":"redacted_thinking","data":"cg=="},{"type":"text","text":"4"}]`},

	{name: "a function without parameters", target: claude5, fields: `"tools":[` + other + `]`,
		path: "tools", want: `[{"name":"g","input_schema":{"type":"object","properties":{}}}]`},
	{name: "a schema without a type", target: claude5, fields: `"tools":[{"type":"function","name":"f","parameters":{"properties":{"z":{},"a":{}}}}]`,
		path: "tools.0.input_schema", want: `{"type":"object","properties":{"z":{},"a":{}}}`},
	{name: "a strict function", target: claude5,
		fields: `"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"required":["a"]}}]`,
		path:   "tools.0", want: `{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"required":["a"]},"strict":true}`},
	{name: "a mark of a prefix for five minutes", target: claude5, fields: `"tools":[{"type":"function","name":"h","prompt_cache_breakpoint":{"mode":"explicit","ttl":"5m"}}]`,
		path: "tools.0.cache_control", want: `{"type":"ephemeral"}`},
	{name: "a mark of a prefix at a tool", target: claude5, fields: `"tools":[` + other + `,{"type":"function","name":"h","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}]`,
		path: "tools.#.cache_control", want: `[{"type":"ephemeral","ttl":"1h"}]`},
	{name: "a strict function of an old model", target: claude37, fields: `"tools":[{"type":"function","name":"f","strict":true}]`,
		path: "tools.0.strict", warnings: []string{"tools[0].strict: not supported by the model, left out"}},
	{name: "a custom tool", target: claude5,
		fields: `"tools":[{"type":"custom","name":"patch","description":"Patches.","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}}]`,
		path:   "tools.0", want: `{"name":"patch","description":"Patches.\n\nThe input matches this lark grammar:\nstart: \"x\"",` +
			`"input_schema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}`},
	{name: "web search", target: claude5, fields: `"max_tool_calls":3,"tools":[{"type":"web_search","filters":{"allowed_domains":["a.com"]},"user_location":{"type":"approximate","city":"Oslo"}}]`,
		path: "tools", want: `[{"type":"web_search_20250305","name":"web_search","max_uses":3,"allowed_domains":["a.com"],"user_location":{"type":"approximate","city":"Oslo"}}]`},
	{name: "hints to web search", target: claude5, fields: `"tools":[{"type":"web_search","search_context_size":"high"}]`,
		path: "tools", want: `[{"type":"web_search_20250305","name":"web_search"}]`,
		warnings: []string{"tools[0].search_context_size: not supported by the provider, left out"}},
	{name: "code interpreter", target: claude5, fields: `"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`,
		path: "tools", want: `[{"type":"code_execution_20250825","name":"code_execution"}]`},

	{name: "no choice", target: claude5, fields: `"tools":[` + function + `]`, path: "tool_choice"},
	{name: "auto", target: claude5, fields: `"tools":[` + function + `],"tool_choice":"auto"`, path: "tool_choice", want: `{"type":"auto"}`},
	{name: "none", target: claude5, fields: `"tools":[` + function + `],"tool_choice":"none","parallel_tool_calls":false`, path: "tool_choice", want: `{"type":"none"}`},
	{name: "required", target: claude5, fields: `"tools":[` + function + `],"tool_choice":"required"`, path: "tool_choice", want: `{"type":"any"}`},
	{name: "one function", target: claude5, fields: `"tools":[` + function + `],"tool_choice":{"type":"function","name":"f"}`,
		path: "tool_choice", want: `{"type":"tool","name":"f"}`},
	{name: "the search", target: claude5, fields: `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`,
		path: "tool_choice", want: `{"type":"tool","name":"web_search"}`},
	{name: "none without tools", target: claude5, fields: `"tool_choice":"none"`, path: "tool_choice"},

	{name: "a schema", target: claude5, fields: format, path: "output_config",
		want:     `{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}`,
		warnings: []string{"text.format.schema: sent without minimum, which the provider does not enforce"}},
	{name: "a schema for an old model", target: claude37, fields: format + `,"tools":[` + other + `]`,
		path: "tools.#.name", want: `["g","structured_answer"]`},
	{name: "the answer is a call", target: claude37, fields: format, path: "tool_choice", want: `{"type":"any","disable_parallel_tool_use":true}`},
	{name: "the answer is the only call", target: claude37, fields: format + `,"tools":[` + other + `],"tool_choice":"none"`,
		path: "tools.#.name", want: `["structured_answer"]`},
	{name: "a call comes before the answer", target: claude37, fields: format + `,"tools":[` + other + `],"tool_choice":"required"`,
		path: "tools.#.name", want: `["g"]`},
	{name: "JSON", target: claude5, fields: `"instructions":"A","text":{"format":{"type":"json_object"}}`, path: "system.#", want: `2`,
		warnings: []string{"text.format: not enforced by the provider, an instruction in its place"}},

	{name: "effort", target: claude5, fields: `"reasoning":{"effort":"high"}`, path: "thinking", want: `{"type":"adaptive","display":"omitted"}`},
	{name: "effort is a level", target: claude5, fields: `"reasoning":{"effort":"high"}`, path: "output_config", want: `{"effort":"high"}`},
	{name: "a summary", target: claude5, fields: `"reasoning":{"effort":"low","summary":"auto"}`, path: "thinking", want: `{"type":"adaptive","display":"summarized"}`},
	{name: "a summary without effort", target: claude5, fields: `"reasoning":{"summary":"auto"}`, path: "thinking", want: `{"type":"adaptive","display":"summarized"}`},
	{name: "minimal effort", target: claude5, fields: `"reasoning":{"effort":"minimal"}`, path: "output_config", want: `{"effort":"low"}`,
		warnings: []string{"reasoning.effort: not a level of the model, 'low' in its place"}},
	{name: "effort beyond the model's", target: claude45, fields: `"reasoning":{"effort":"max"}`, path: "output_config", want: `{"effort":"high"}`,
		warnings: []string{"reasoning.effort: not a level of the model, 'high' in its place"}},
	{name: "effort of an unknown model", target: sonnet55, fields: `"reasoning":{"effort":"max"}`, path: "output_config", want: `{"effort":"max"}`},
	{name: "a budget", target: claude37, fields: `"reasoning":{"effort":"medium"}`, path: "thinking", want: `{"type":"enabled","budget_tokens":19200}`},
	{name: "a budget within the limit", target: claude37, fields: `"reasoning":{"effort":"max"},"max_output_tokens":2000`, path: "thinking", want: `{"type":"enabled","budget_tokens":1800}`},
	{name: "a budget of the least", target: claude37, fields: `"reasoning":{"effort":"low"},"max_output_tokens":2000`, path: "thinking", want: `{"type":"enabled","budget_tokens":1024}`},
	{name: "no room for a budget", target: claude37, fields: `"reasoning":{"effort":"low"},"max_output_tokens":1024`, path: "thinking",
		warnings: []string{"reasoning.effort: not possible within max_output_tokens, left out"}},
	{name: "a budget and a level", target: claude45, fields: `"reasoning":{"effort":"low"}`, path: "output_config", want: `{"effort":"low"}`},
	{name: "no thinking", target: claude5, fields: `"reasoning":{"effort":"none"}`, path: "thinking", want: `{"type":"disabled"}`},
	{name: "no thinking, by default", target: claude45, fields: `"reasoning":{"effort":"none"}`, path: "thinking"},
	{name: "thinking cannot be disabled", target: opus55, fields: `"reasoning":{"effort":"none"}`, path: "thinking",
		warnings: []string{"reasoning.effort: not possible with a model that always thinks, left out"}},
	{name: "thinking can be confined", target: sonnet55, fields: `"reasoning":{"effort":"none"}`, path: "thinking", want: `{"type":"between_tools"}`},
	{name: "a model that cannot think", target: haiku3, fields: `"reasoning":{"effort":"low","summary":"auto"}`, path: "thinking",
		warnings: []string{"reasoning.effort: not supported by the model, left out", "reasoning.summary: not supported by the model, left out"}},
	{name: "forced calls come without thinking", target: claude45, fields: `"reasoning":{"effort":"low"},"tools":[` + other + `],"tool_choice":"required"`, path: "thinking",
		warnings: []string{"reasoning.effort: not possible where a call is forced, left out"}},
	{name: "forced calls of a model that thinks by itself", target: claude5, fields: `"tools":[` + other + `],"tool_choice":"required"`, path: "thinking", want: `{"type":"disabled"}`},

	{name: "a limit", target: claude5, fields: `"max_output_tokens":7`, path: "max_tokens", want: `7`},
	{name: "the model's limit", target: claude5, path: "max_tokens", want: `128000`},
	{name: "no known limit", target: sonnet55, path: "max_tokens", want: `4096`},

	{name: "top_p", target: claude45, fields: `"top_p":0.5`, path: "top_p", want: `0.5`},
	{name: "a temperature above 1", target: claude45, fields: `"temperature":1.5`, path: "temperature",
		warnings: []string{"temperature: above the provider's limit, 1 in its place"}},
	{name: "top_p beside temperature", target: claude45, fields: `"temperature":0,"top_p":0.5`, path: "top_p",
		warnings: []string{"top_p: not supported beside temperature, left out"}},
	{name: "top_p beside the default temperature", target: claude45, fields: `"temperature":1,"top_p":0.5`, path: "top_p", want: `0.5`},
	{name: "temperature while thinking", target: claude45, fields: `"temperature":0,"reasoning":{"effort":"low"}`, path: "temperature",
		warnings: []string{"temperature: not supported while the model thinks, left out"}},

	{name: "safety_identifier", target: claude5, fields: `"safety_identifier":"s","user":"u"`, path: "metadata", want: `{"user_id":"s"}`},
	{name: "prompt_cache_key", target: claude5, fields: `"prompt_cache_key":"k"`, path: "cache_control", want: `{"type":"ephemeral"}`},
	{name: "prompt_cache_retention", target: claude5, fields: `"prompt_cache_key":"k","prompt_cache_retention":"24h"`, path: "cache_control", want: `{"type":"ephemeral","ttl":"1h"}`},
	{name: "explicit caching", target: claude5, fields: `"prompt_cache_key":"k","prompt_cache_options":{"mode":"explicit"}`, path: "cache_control"},
	{name: "a breakpoint", target: claude5,
		fields: `"prompt_cache_options":{"ttl":"12h"},"input":[{"role":"user","content":[{"type":"input_text","text":"long","prompt_cache_breakpoint":{}},{"type":"input_text","text":"hi"}]}]`,
		path:   "messages.0.content", want: `[{"type":"text","text":"long","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"hi"}]`},
	{name: "a breakpoint for longer", target: claude5,
		fields: `"input":[{"role":"user","content":[{"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}},{"type":"input_text","text":"hi","prompt_cache_breakpoint":{"mode":"explicit"}}]}]`,
		path:   "messages.0.content.#.cache_control", want: `[{"type":"ephemeral","ttl":"1h"},{"type":"ephemeral"}]`},
	{name: "tier auto", target: claude5, fields: `"service_tier":"auto"`, path: "service_tier"},
	{name: "tier default", target: claude5, fields: `"service_tier":"default"`, path: "service_tier", want: `"standard_only"`},
	{name: "tier priority", target: claude5, fields: `"service_tier":"priority"`, path: "service_tier", want: `"auto"`},
	{name: "tier fast", target: claude5, fields: `"service_tier":"fast"`, path: "speed", want: `"fast"`},
	{name: "tier flex", target: claude5, fields: `"service_tier":"flex"`, path: "service_tier",
		warnings: []string{"service_tier: not supported by the provider, left out"}},

	{name: "verbosity", target: claude5, fields: `"text":{"verbosity":"low"}`, path: "output_config",
		warnings: []string{"text.verbosity: not supported by the provider, left out"}},
	{name: "hints to accounting", target: claude5, fields: `"metadata":{"a":"b"},"store":true,"stream_options":{"include_obfuscation":false}`, path: "metadata"},
}

func TestMapping(t *testing.T) {
	for _, test := range mapped {
		t.Run(test.name, func(t *testing.T) {
			plugintest.Maps(t, Provider{}, test.target, test.fields, test.path, test.want, test.warnings...)
		})
	}
}

func TestRejected(t *testing.T) {
	for name, test := range map[string]struct {
		target        translate.Target
		fields, param string
	}{
		"audio":             {claude5, `"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}]`, "input[0].content[0]"},
		"image type":        {claude5, `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/tiff;base64,aGk="}]}]`, "input[0].content[0]"},
		"PDF of old model":  {claude37, `"input":[{"role":"user","content":[{"type":"input_file","file_data":"JVBERi0="}]}]`, "input[0].content[0]"},
		"file type":         {claude5, `"input":[{"role":"user","content":[{"type":"input_file","file_data":"iVBORw0KGgo="}]}]`, "input[0].content[0]"},
		"image of system":   {claude5, `"input":[{"role":"system","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]},{"role":"user","content":"hi"}]`, "input[0].content[0]"},
		"base64":            {claude5, `"input":[{"role":"user","content":[{"type":"input_file","file_data":"%"}]}]`, "input[0].content[0]"},
		"forced without":    {claude5, `"tool_choice":"required"`, "tool_choice"},
		"forced impossible": {opus55, `"tools":[` + function + `],"tool_choice":"required"`, "tool_choice"},
		"forced another":    {claude5, `"tools":[{"type":"web_search"}],"tool_choice":{"type":"image_generation"}`, "tool_choice"},
		"forced nameless":   {claude5, `"tools":[` + function + `],"tool_choice":{"type":"function"}`, "tool_choice"},
		"allowed none":      {claude5, `"tools":[` + function + `],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[]}`, "tool_choice"},
		"effort":            {claude37, `"reasoning":{"effort":"huge"}`, "reasoning.effort"},
		"answer tool":       {claude37, format + `,"tools":[{"type":"function","name":"structured_answer"}]`, "tools"},
		"state":             {claude5, `"previous_response_id":"resp_1"`, "previous_response_id"},
	} {
		t.Run(name, func(t *testing.T) {
			plugintest.Refuses(t, Provider{}, test.target, test.fields, test.param)
		})
	}
}

func TestBetas(t *testing.T) {
	req, _, _, err := prepare(t, claude5, plugintest.Request(`"service_tier":"fast","input":[{"role":"user","content":[
		{"type":"input_file","file_id":"file_1"},{"type":"input_file","file_id":"file_2"}]}]`), false)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := req.Header.Get("Anthropic-Beta"), "files-api-2025-04-14,fast-mode-2026-02-01"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDocumentedValues(t *testing.T) { plugintest.Documented(t, Provider{}, claude5) }

func TestFormatIsSent(t *testing.T) {
	_, body, _, err := prepare(t, claude5, plugintest.Request(format), false)
	if err != nil || gjson.Get(body, "output_config.format.schema.properties.a.type").Str != "integer" {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestSamplingOfModelsThatTakeNone(t *testing.T) {
	for _, target := range []translate.Target{claude5, opus55, sonnet55} {
		_, body, p, err := prepare(t, target, plugintest.Request(`"temperature":0.5,"top_p":0.5`), false)
		if err != nil {
			t.Fatal(err)
		}
		if gjson.Get(body, "temperature").Exists() || gjson.Get(body, "top_p").Exists() || len(p.Warnings) != 2 || p.Temperature != nil {
			t.Errorf("%s: got %s with the warnings %q", target.Model, body, p.Warnings)
		}
		if _, _, _, err := prepare(t, target, plugintest.Request(`"temperature":1,"top_p":1`), true); err != nil {
			t.Errorf("%s: the defaults ask for nothing: %v", target.Model, err)
		}
	}
}

// Of the endpoints that are not translated, Anthropic has batches of Messages.
func TestPrepareEndpoint(t *testing.T) {
	at := translate.Target{BaseURL: "https://x", Key: "secret"}
	for path, has := range map[string]bool{
		"/v1/messages/batches": true, "/v1/messages/batches/a/results": true, "/v1/messages/batchesx": false, "/v1/files": false, "/v1/batches": false,
	} {
		req, err := Provider{}.PrepareEndpoint(t.Context(), "GET", path, at)
		if has != (err == nil) || !has && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", path, err)
		}
		if has && (req.URL.String() != "https://x"+path || req.Header.Get("X-Api-Key") != "secret" || req.Header.Get("Anthropic-Version") != apiVersion) {
			t.Errorf("%s: %s %v", path, req.URL, req.Header)
		}
	}
}
