package bedrock

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Targets as the catalogue describes them: Claude 4.5 counts its thoughts in
// tokens, 4.8 decides by effort alone and has no output format, of 5.5 nothing is
// known; Nova 2 and gpt-oss have efforts of their own, DeepSeek has none, Llama
// does not think.
var (
	claude45 = translate.Target{Model: "us.anthropic.claude-haiku-4-5-20251001-v1:0", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "pdf"}, MaxOutput: 64000, Reasoning: true, Budget: plugins.Budget{Min: 1024}, ToolCall: true,
		StructuredOutput: true, Temperature: true,
	}}
	claude48 = translate.Target{Model: "anthropic.claude-opus-4-8", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "pdf"}, MaxOutput: 128000, Reasoning: true,
		Efforts: []string{"low", "medium", "high", "xhigh", "max"}, ToolCall: true,
	}}
	opus55 = translate.Target{Model: "global.anthropic.claude-opus-5-5", Capabilities: new(plugins.Capabilities)}
	nova2  = translate.Target{Model: "us.amazon.nova-2-lite-v1:0", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "video"}, Reasoning: true, Efforts: []string{"low", "medium", "high"}, ToolCall: true, Temperature: true,
	}}
	gptOSS = translate.Target{Model: "openai.gpt-oss-120b-1:0", Capabilities: &plugins.Capabilities{
		Input: []string{"text"}, Reasoning: true, Efforts: []string{"low", "medium", "high"}, ToolCall: true, StructuredOutput: true, Temperature: true,
	}}
	deepseek = translate.Target{Model: "us.deepseek.r1-v1:0", Capabilities: &plugins.Capabilities{
		Input: []string{"text"}, Reasoning: true, Temperature: true,
	}}
	llama = translate.Target{Model: "meta.llama3-3-70b-instruct-v1:0", Capabilities: &plugins.Capabilities{
		Input: []string{"text"}, ToolCall: true, Temperature: true,
	}}
	gpt5 = translate.Target{Model: "openai.gpt-5.5", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image"}, Reasoning: true, Efforts: []string{"none", "low", "medium", "high"}, StructuredOutput: true, ToolCall: true,
	}}
	unknown = translate.Target{Model: "acme.new-v1:0"}
)

// prepare returns the upstream request, its body and the request with its warnings.
func prepare(t *testing.T, target translate.Target, request string, strict bool) (*http.Request, string, *translate.Request, error) {
	t.Helper()
	return plugintest.Prepare(t, new(Provider), target, request, strict)
}

func TestPrepare(t *testing.T) {
	req, body, p, err := prepare(t, claude45, `{
		"model": "gpt", "instructions": "Be brief.", "input": "hi <b>", "stream": true, "temperature": 0.2, "max_output_tokens": 50,
		"tools": [{"type": "function", "name": "f", "description": "does f", "strict": true, "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}],
		"tool_choice": "auto", "service_tier": "flex", "user": "u", "metadata": {"k": "v"}, "store": false}`, true)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"hi <b>"}]}],` +
		`"inferenceConfig":{"maxTokens":50,"temperature":0.2},` +
		`"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"does f","inputSchema":{"json":{"type":"object","properties":{"b":{},"a":{}},"additionalProperties":false}},"strict":true}}],"toolChoice":{"auto":{}}},` +
		`"serviceTier":{"type":"flex"},"requestMetadata":{"k":"v"}}`
	if body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
	address := "POST https://example.com/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream"
	if got := req.Method + " " + req.URL.String(); got != address {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer secret"} {
		if got := req.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestModelInPath(t *testing.T) {
	profile := translate.Target{Model: "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-8"}
	req, _, _, err := prepare(t, profile, plugintest.Request(""), true)
	want := "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-opus-4-8/converse"
	if err != nil || req.URL.EscapedPath() != want {
		t.Errorf("got %s, %v", req.URL.EscapedPath(), err)
	}
}

const (
	function = `{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}`
	other    = `{"type":"function","name":"g"}`
	format   = `"text":{"format":{"type":"json_schema","name":"n","description":"d","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}`
	history  = `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},
		{"type":"function_call_output","call_id":"c1","output":"x"}]`
	pdf = `JVBERi0xLjQK`
)

func part(fields string) string {
	return `"input":[{"role":"user","content":[{"type":"input_text","text":"see"},{` + fields + `}]}]`
}

// mapped are the rows of the mapping: what a field of the request becomes, by
// its path in the body, "" for nothing, and the fields of which the client is
// warned.
var mapped = []struct {
	name     string
	target   translate.Target
	fields   string // of the request; input is "hi" unless given
	path     string
	want     string
	warnings []string
}{
	{name: "leading system messages join the instructions", target: claude45,
		fields: `"instructions":"A","input":[{"role":"system","content":"B"},{"role":"developer","content":"C"},{"role":"user","content":"hi"}]`,
		path:   "system", want: `[{"text":"A"},{"text":"B"},{"text":"C"}]`},
	{name: "later system messages keep their place", target: claude45,
		fields: `"input":[{"role":"user","content":"hi"},{"role":"developer","content":"Be brief."}]`,
		path:   "messages", want: `[{"role":"user","content":[{"text":"hi"},{"text":"<system>\nBe brief.\n</system>"}]}]`},
	{name: "the user begins", target: claude45, fields: `"input":[{"role":"assistant","content":"Hello!"},{"role":"user","content":"hi"}]`,
		path: "messages.#.role", want: `["user","assistant","user"]`},
	{name: "a system message alone", target: claude45, fields: `"input":[{"role":"system","content":"S"}]`,
		path: "messages.#.role", want: `["user"]`},
	{name: "blank texts are left out", target: claude45,
		fields: `"instructions":" ","input":[{"role":"user","content":[{"type":"input_text","text":""},{"type":"input_text","text":"hi"}]},{"role":"assistant","content":"\n"},{"role":"user","content":"?"}]`,
		path:   "messages", want: `[{"role":"user","content":[{"text":"hi"},{"text":"?"}]}]`},
	{name: "stop sequences", target: claude45, fields: `"stop":["a","b"]`, path: "[inferenceConfig,additionalModelResponseFieldPaths]", want: `[{"stopSequences":["a","b"]},["/stop_sequence"]]`},
	{name: "more stop sequences than Nova takes", target: nova2, fields: `"stop":["a","b","c","d","e"]`, path: "[inferenceConfig,additionalModelResponseFieldPaths]", want: `[{"stopSequences":["a","b","c","d"]}]`},
	{name: "a blank stop sequence", target: claude45, fields: `"stop":"\n"`, path: "inferenceConfig"},
	{name: "no system", target: claude45, fields: `"instructions":" "`, path: "system"},
	{name: "refusals are text", target: claude45,
		fields: `"input":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"user","content":"?"}]`,
		path:   "messages.1.content", want: `[{"text":"No."}]`},
	{name: "calls and their outputs", target: claude45, fields: history + `,"tools":[` + function + `]`, path: "messages.#.content",
		want: `[[{"text":"hi"}],[{"toolUse":{"toolUseId":"c1","name":"f","input":{"a":1}}}],[{"toolResult":{"toolUseId":"c1","content":[{"text":"x"}]}}]]`},
	{name: "failed and empty outputs", target: claude45,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":""},{"type":"function_call_output","call_id":"c1","output":"","status":"incomplete"},{"role":"user","content":"?"}],"tools":[` + function + `]`,
		path:   "messages.#.content", want: `[[{"text":"hi"}],[{"toolUse":{"toolUseId":"c1","name":"f","input":{}}}],[{"toolResult":{"toolUseId":"c1","content":[{"text":"(The call failed.)"}],"status":"error"}},{"text":"?"}]]`},
	{name: "custom calls", target: claude45,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"custom_tool_call","call_id":"c1","name":"p","input":"a\"b"},{"type":"custom_tool_call_output","call_id":"c1","output":"x"}],"tools":[{"type":"custom","name":"p"}]`,
		path:   "messages.1.content.0.toolUse.input", want: `{"input":"a\"b"}`},

	{name: "inline images", target: claude45, fields: part(`"type":"input_image","image_url":"data:image/jpg;base64,aGk="`),
		path: "messages.0.content.1", want: `{"image":{"format":"jpeg","source":{"bytes":"aGk="}}}`},
	{name: "images in S3", target: claude45, fields: part(`"type":"input_image","image_url":"s3://bucket/cat.png"`),
		path: "messages.0.content.1", want: `{"image":{"format":"png","source":{"s3Location":{"uri":"s3://bucket/cat.png"}}}}`},
	{name: "documents", target: claude45, fields: part(`"type":"input_file","filename":"Q1__report (v2).pdf","file_data":"` + pdf + `"`),
		path: "messages.0.content.1", want: `{"document":{"format":"pdf","name":"Q1 report (v2)","source":{"bytes":"` + pdf + `"}}}`},
	{name: "documents without a name", target: claude45, fields: part(`"type":"input_file","file_data":"` + pdf + `"`),
		path: "messages.0.content.1.document.name", want: `"document"`},
	{name: "documents that nothing describes", target: claude45, fields: part(`"type":"input_file","file_data":"aGVsbG8gd29ybGQ="`),
		path: "messages.0.content.1.document.format", want: `"txt"`},
	{name: "documents by media type", target: claude45, fields: part(`"type":"input_file","file_data":"data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,aGk="`),
		path: "messages.0.content.1.document.format", want: `"docx"`},
	{name: "documents stand beside text", target: claude45,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.csv","file_data":"aGk="},{"type":"input_file","filename":"a.csv","file_data":"aGk="}]}]`,
		path:   "messages.0.content", want: `[{"document":{"format":"csv","name":"a","source":{"bytes":"aGk="}}},{"document":{"format":"csv","name":"a 2","source":{"bytes":"aGk="}}},{"text":"(See the document.)"}]`},
	{name: "videos", target: nova2, fields: part(`"type":"input_file","file_data":"data:video/quicktime;base64,aGk="`),
		path: "messages.0.content.1", want: `{"video":{"format":"mov","source":{"bytes":"aGk="}}}`},
	{name: "sounds", target: unknown, fields: part(`"type":"input_audio","input_audio":{"format":"wav","data":"aGk="}`),
		path: "messages.0.content.1", want: `{"audio":{"format":"wav","source":{"bytes":"aGk="}}}`},
	{name: "images in outputs", target: claude45,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}],"tools":[` + function + `]`,
		path:   "messages.2.content.0.toolResult.content", want: `[{"image":{"format":"png","source":{"bytes":"aGk="}}}]`},

	{name: "cache points", target: claude45, fields: part(`"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit"}`),
		path: "messages.0.content.2", want: `{"cachePoint":{"type":"default"}}`},
	{name: "cache points for an hour", target: claude45, fields: `"prompt_cache_retention":"24h",` + part(`"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit"}`),
		path: "messages.0.content.2", want: `{"cachePoint":{"type":"default","ttl":"1h"}}`},
	{name: "a cache point for an hour", target: claude45, fields: part(`"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}`),
		path: "messages.0.content.2", want: `{"cachePoint":{"type":"default","ttl":"1h"}}`},
	{name: "Nova caches for five minutes", target: nova2, fields: `"prompt_cache_retention":"24h",` + part(`"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit"}`),
		path: "messages.0.content.2", want: `{"cachePoint":{"type":"default"}}`},
	{name: "a profile of a model in the catalogue", target: translate.Target{Model: "arn:aws:bedrock:us-east-1:1:application-inference-profile/p", Listed: claude45.Model, Capabilities: claude45.Capabilities},
		fields: part(`"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit"}`),
		path:   "messages.0.content.2", want: `{"cachePoint":{"type":"default"}}`},
	{name: "a cache point after a tool", target: claude45, fields: `"tools":[` + other + `,{"type":"function","name":"h","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}]`,
		path: "toolConfig.tools.2", want: `{"cachePoint":{"type":"default","ttl":"1h"}}`},
	{name: "Nova takes no cache point after a tool", target: nova2, fields: `"tools":[` + other + `,{"type":"function","name":"h","prompt_cache_breakpoint":{"mode":"explicit"}}]`,
		path: "toolConfig.tools.#", want: "2"},
	{name: "others do not cache tools", target: llama, fields: `"tools":[{"type":"function","name":"h","prompt_cache_breakpoint":{"mode":"explicit"}}]`,
		path: "toolConfig.tools.#", want: "1"},
	{name: "others do not cache", target: llama, fields: part(`"type":"input_text","text":"long","prompt_cache_breakpoint":{"mode":"explicit"}`),
		path: "messages.0.content.2"},

	{name: "tools without parameters", target: claude45, fields: `"tools":[` + other + `]`,
		path: "toolConfig", want: `{"tools":[{"toolSpec":{"name":"g","inputSchema":{"json":{"type":"object","properties":{}}}}}]}`},
	{name: "custom tools", target: claude45, fields: `"tools":[{"type":"custom","name":"p","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: A"}}]`,
		path: "toolConfig.tools.0.toolSpec", want: `{"name":"p","description":"d\n\nThe input matches this lark grammar:\nstart: A","inputSchema":{"json":` + string(translate.CustomParameters) + `}}`},
	{name: "strict is not everyone's", target: llama, fields: `"tools":[{"type":"function","name":"g","strict":true}]`,
		path: "toolConfig.tools.0.toolSpec.strict", warnings: []string{"tools[0].strict"}},
	{name: "the detail of an image", target: claude45,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"high"}]}]`,
		path:   "messages.0.content.0.image.format", want: `"png"`, warnings: []string{"input[0].content[0].detail"}},
	{name: "hints to web search", target: nova2, fields: `"tools":[{"type":"web_search","search_context_size":"high","user_location":{"type":"approximate","city":"Oslo"}}]`,
		path: "toolConfig.tools", want: `[{"systemTool":{"name":"nova_grounding"}}]`, warnings: []string{"tools[0].user_location", "tools[0].search_context_size"}},
	{name: "hosted tools of others", target: claude45, fields: `"tools":[{"type":"web_search"},` + function + `]`,
		path: "toolConfig.tools.#", want: "1", warnings: []string{"tools[0]"}},
	{name: "hosted code interpreter", target: nova2, fields: `"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`,
		path: "toolConfig.tools", want: `[{"systemTool":{"name":"nova_code_interpreter"}}]`},
	{name: "hosted web search", target: nova2, fields: `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`,
		path: "toolConfig", want: `{"tools":[{"systemTool":{"name":"nova_grounding"}}],"toolChoice":{"tool":{"name":"nova_grounding"}}}`},
	{name: "a call is required", target: claude45, fields: `"tools":[` + function + `],"tool_choice":"required"`,
		path: "toolConfig.toolChoice", want: `{"any":{}}`},
	{name: "one tool is required", target: claude45, fields: `"tools":[` + function + `],"tool_choice":{"type":"function","name":"f"}`,
		path: "toolConfig.toolChoice", want: `{"tool":{"name":"f"}}`},
	{name: "no calls: no tools", target: claude45, fields: `"tools":[` + function + `],"tool_choice":"none"`, path: "toolConfig"},
	{name: "no calls after calls: the tools stay", target: claude45, fields: history + `,"tools":[` + function + `,` + other + `],"tool_choice":"none"`,
		path: "toolConfig.tools.#", want: "2", warnings: []string{"tool_choice"}},
	{name: "no calls after calls: an instruction", target: claude45, fields: history + `,"tools":[` + function + `],"tool_choice":"none"`,
		path: "system", want: `[{"text":"Do not call any tool: answer in text."}]`, warnings: []string{"tool_choice"}},
	{name: "no tools after calls: those of the calls", target: claude45, fields: history,
		path: "toolConfig.tools", want: `[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{}}}}}]`, warnings: []string{"tool_choice"}},
	{name: "one call at a time: Claude", target: claude45, fields: `"tools":[` + function + `],"parallel_tool_calls":false`,
		path: "additionalModelRequestFields", want: `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
	{name: "one call at a time, required: Claude", target: claude45, fields: `"tools":[` + function + `],"parallel_tool_calls":false,"tool_choice":"required"`,
		path: "{toolConfig.toolChoice,additionalModelRequestFields}", want: `{"additionalModelRequestFields":{"tool_choice":{"type":"any","disable_parallel_tool_use":true}}}`},
	{name: "one call at a time: others", target: llama, fields: `"tools":[` + function + `],"parallel_tool_calls":false`,
		path: "additionalModelRequestFields", warnings: []string{"parallel_tool_calls"}},

	{name: "a schema", target: claude45, fields: format, path: "outputConfig",
		want: `{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"n","description":"d","schema":"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"],\"additionalProperties\":false}"}}}}`},
	{name: "a schema that is not enforced whole", target: claude45,
		fields: `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}}}`,
		path:   "outputConfig.textFormat.structure.jsonSchema.schema", want: `"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"additionalProperties\":false}"`,
		warnings: []string{"text.format.schema"}},
	{name: "a strict function that is not enforced whole", target: claude45,
		fields: `"tools":[{"type":"function","name":"g","strict":true,"parameters":{"type":"object","properties":{"a":{"maxLength":3}}}}]`,
		path:   "toolConfig.tools.0.toolSpec", want: `{"name":"g","inputSchema":{"json":{"type":"object","properties":{"a":{}},"additionalProperties":false}},"strict":true}`,
		warnings: []string{"tools[0].parameters"}},
	{name: "a schema by a call", target: nova2, fields: format, path: "toolConfig",
		want: `{"tools":[{"toolSpec":{"name":"structured_answer","description":"Gives the final answer. d","inputSchema":{"json":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}}],"toolChoice":{"any":{}}}`},
	{name: "a schema by a call, one at a time", target: claude48, fields: format + `,"tools":[` + function + `],"parallel_tool_calls":false`,
		path: "{toolConfig.toolChoice,additionalModelRequestFields}", want: `{"additionalModelRequestFields":{"thinking":{"type":"disabled"},"tool_choice":{"type":"any","disable_parallel_tool_use":true}}}`},
	{name: "a schema without calls after calls", target: nova2, fields: history + `,` + format, path: "toolConfig.tools.#.toolSpec.name", want: `["structured_answer"]`},
	{name: "a required call goes before the schema", target: nova2, fields: format + `,"tools":[` + function + `],"tool_choice":"required"`,
		path: "toolConfig.tools.#.toolSpec.name", want: `["f"]`},
	{name: "any JSON", target: claude45, fields: `"text":{"format":{"type":"json_object"}}`,
		path: "system.0.text", want: `"` + translate.JSONInstruction + `"`, warnings: []string{"text.format"}},

	{name: "effort by budget", target: claude45, fields: `"reasoning":{"effort":"low"},"max_output_tokens":20000`,
		path: "{inferenceConfig,additionalModelRequestFields}", want: `{"inferenceConfig":{"maxTokens":20000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000}}}`},
	{name: "effort by budget of the maximum", target: claude45, fields: `"reasoning":{"effort":"high"}`,
		path: "{inferenceConfig,additionalModelRequestFields}", want: `{"inferenceConfig":{"maxTokens":64000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":38400}}}`},
	{name: "no room to think", target: claude45, fields: `"reasoning":{"effort":"high"},"max_output_tokens":100`,
		path: "additionalModelRequestFields", warnings: []string{"reasoning.effort"}},
	{name: "calls without thoughts", target: claude45, fields: history + `,"tools":[` + function + `],"reasoning":{"effort":"high"}`,
		path: "additionalModelRequestFields", warnings: []string{"reasoning.effort"}},
	{name: "adaptive effort", target: claude48, fields: `"reasoning":{"effort":"xhigh","summary":"auto"}`,
		path: "additionalModelRequestFields", want: `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"}}`},
	{name: "adaptive effort, clamped", target: claude48, fields: `"reasoning":{"effort":"minimal"}`,
		path: "additionalModelRequestFields.output_config.effort", want: `"low"`, warnings: []string{"reasoning.effort"}},
	{name: "thinking is turned off", target: claude48, fields: `"reasoning":{"effort":"none"}`,
		path: "additionalModelRequestFields", want: `{"thinking":{"type":"disabled"}}`},
	{name: "thinking is off", target: claude45, fields: `"reasoning":{"effort":"none"}`, path: "additionalModelRequestFields"},
	{name: "thinking stays on", target: opus55, fields: `"reasoning":{"effort":"none"}`,
		path: "additionalModelRequestFields", warnings: []string{"reasoning.effort"}},
	{name: "no thinking where a call is forced", target: claude48, fields: `"reasoning":{"effort":"high"},"tools":[` + function + `],"tool_choice":"required"`,
		path: "additionalModelRequestFields", want: `{"thinking":{"type":"disabled"}}`, warnings: []string{"reasoning.effort"}},
	{name: "thoughts before the first call", target: claude45, fields: `"reasoning":{"effort":"high"},"tools":[` + function + `],"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{\"reasoningText\":{\"text\":\"t\",\"signature\":\"c2ln\"}}"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"},{"type":"function_call","call_id":"2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"x"}]`,
		path: "additionalModelRequestFields.thinking.type", want: `"enabled"`},
	{name: "calls without thoughts", target: claude45, fields: `"reasoning":{"effort":"high"},"tools":[` + function + `],"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{\"reasoningText\":{\"text\":\"t\",\"signature\":\"c2ln\"}}"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"},{"role":"user","content":"more"},{"type":"function_call","call_id":"2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"x"}]`,
		path: "additionalModelRequestFields.thinking.type", warnings: []string{"reasoning.effort"}},
	{name: "Nova's effort", target: nova2, fields: `"reasoning":{"effort":"high"},"temperature":0.5`,
		path: "{inferenceConfig,additionalModelRequestFields}", want: `{"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}}`, warnings: []string{"temperature"}},
	{name: "Nova's high effort has no limit", target: nova2, fields: `"reasoning":{"effort":"high"},"max_output_tokens":500`,
		path: "additionalModelRequestFields.reasoningConfig.maxReasoningEffort", want: `"medium"`, warnings: []string{"reasoning.effort"}},
	{name: "Nova is not thinking", target: nova2, fields: `"reasoning":{"effort":"none"}`, path: "additionalModelRequestFields"},
	{name: "gpt-oss's effort", target: gptOSS, fields: `"reasoning":{"effort":"medium","summary":"auto"}`,
		path: "additionalModelRequestFields", want: `{"reasoning_effort":"medium"}`},
	{name: "gpt-oss always thinks", target: gptOSS, fields: `"reasoning":{"effort":"none"}`,
		path: "additionalModelRequestFields", warnings: []string{"reasoning.effort"}},
	{name: "an effort of none", target: gpt5, fields: `"reasoning":{"effort":"none"}`,
		path: "additionalModelRequestFields", want: `{"reasoning_effort":"none"}`},
	{name: "no efforts", target: deepseek, fields: `"reasoning":{"effort":"high"}`,
		path: "additionalModelRequestFields", warnings: []string{"reasoning.effort"}},
	{name: "no reasoning", target: llama, fields: `"reasoning":{"effort":"high","summary":"auto"}`,
		path: "additionalModelRequestFields", warnings: []string{"reasoning.effort", "reasoning.summary"}},

	{name: "temperature and top_p", target: llama, fields: `"temperature":0,"top_p":0.5`, path: "inferenceConfig", want: `{"temperature":0,"topP":0.5}`},
	{name: "Claude takes one of them", target: claude45, fields: `"temperature":0.5,"top_p":0.5`,
		path: "inferenceConfig", want: `{"temperature":0.5}`, warnings: []string{"top_p"}},
	{name: "temperature above 1", target: llama, fields: `"temperature":1.5`, path: "inferenceConfig", warnings: []string{"temperature"}},
	{name: "no temperature beside thinking", target: claude45, fields: `"temperature":0.5,"reasoning":{"effort":"low"}`,
		path: "inferenceConfig.temperature", warnings: []string{"temperature"}},
	{name: "service tiers", target: llama, fields: `"service_tier":"priority"`, path: "serviceTier", want: `{"type":"priority"}`},
	{name: "the tier auto", target: llama, fields: `"service_tier":"auto"`, path: "serviceTier"},
	{name: "tiers of others", target: llama, fields: `"service_tier":"scale"`, path: "serviceTier", warnings: []string{"service_tier"}},
	{name: "metadata that does not fit", target: llama, fields: `"metadata":{"k":"{}"}`, path: "requestMetadata"},
	{name: "accounting is left out", target: llama, fields: `"user":"u","safety_identifier":"s","prompt_cache_key":"k","store":true,"max_tool_calls":3`,
		path: "@this", want: `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`},
	{name: "hints are left out", target: llama, fields: `"text":{"verbosity":"low"},"presence_penalty":1,"frequency_penalty":1`,
		path: "inferenceConfig", warnings: []string{"text.verbosity", "presence_penalty", "frequency_penalty"}},
}

func TestMapping(t *testing.T) {
	for _, test := range mapped {
		t.Run(test.name, func(t *testing.T) {
			plugintest.Maps(t, new(Provider), test.target, test.fields, test.path, test.want, test.warnings...)
		})
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		target translate.Target
		fields string
		param  string
	}{
		{"images at a URL", claude45, part(`"type":"input_image","image_url":"https://example.com/a.png"`), "input[0].content[1]"},
		{"images of the system", claude45, `"input":[{"role":"system","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}]`, "input[0].content[0]"},
		{"stored files", claude45, part(`"type":"input_file","file_id":"file_1"`), "input[0].content[1]"},
		{"other images", claude45, part(`"type":"input_image","image_url":"data:image/tiff;base64,aGk="`), "input[0].content[1]"},
		{"other documents", claude45, part(`"type":"input_file","file_data":"AAECAw=="`), "input[0].content[1]"},
		{"what is not base64", claude45, part(`"type":"input_file","file_data":"!"`), "input[0].content[1]"},
		{"images to a model of text", llama, part(`"type":"input_image","image_url":"data:image/png;base64,aGk="`), "input[0].content[1]"},
		{"sounds to a model of text", llama, part(`"type":"input_audio","input_audio":{"format":"wav","data":"aGk="}`), "input[0].content[1]"},
		{"a hosted tool of others that must be used", claude45, `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, "tool_choice"},
		{"a search confined to domains", nova2, `"tools":[{"type":"web_search","filters":{"allowed_domains":["a.com"]}}]`, "tools[0].filters.allowed_domains"},
		{"tools without calls", deepseek, `"tools":[` + function + `]`, "tools"},
		{"a forced call", opus55, `"tools":[` + function + `],"tool_choice":"required"`, "tool_choice"},
		{"a required call of nothing", claude45, `"tool_choice":"required"`, "tool_choice"},
		{"a schema that nothing enforces", deepseek, format, "text.format"},
		{"our tool", nova2, format + `,"tools":[{"type":"function","name":"structured_answer"}]`, "tools"},
		{"an effort of nobody's", claude45, `"reasoning":{"effort":"extreme"}`, "reasoning.effort"},
		{"stored conversations", claude45, `"previous_response_id":"resp_1"`, "previous_response_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugintest.Refuses(t, new(Provider), test.target, test.fields, test.param)
		})
	}
}

func TestDocumentedValues(t *testing.T) { plugintest.Documented(t, new(Provider), claude45) }

func TestSamplingOfModelsThatTakeNone(t *testing.T) {
	for _, target := range []translate.Target{claude48, opus55} {
		_, body, p, err := prepare(t, target, plugintest.Request(`"temperature":0.5,"top_p":0.5`), false)
		if err != nil {
			t.Fatal(err)
		}
		if gjson.Get(body, "inferenceConfig").Exists() || len(p.Warnings) != 2 || p.Temperature != nil {
			t.Errorf("%s: got %s with the warnings %q", target.Model, body, p.Warnings)
		}
		if _, _, _, err := prepare(t, target, plugintest.Request(`"temperature":1,"top_p":1`), true); err != nil {
			t.Errorf("%s: the defaults ask for nothing: %v", target.Model, err)
		}
	}
}
