package gemini

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Targets as the catalogue describes them: 2.0 does not think, 2.5 counts its
// thoughts in tokens, 3 has levels, and of the last nothing is known.
var (
	flash2 = translate.Target{Model: "gemini-2.0-flash", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image"}, ToolCall: true, Temperature: true,
	}}
	flash25 = translate.Target{Model: "gemini-2.5-flash", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "audio", "video", "pdf"}, Reasoning: true, Budget: plugins.Budget{Max: 24576}, ToolCall: true, Temperature: true,
	}}
	lite25 = translate.Target{Model: "gemini-2.5-flash-lite", Capabilities: &plugins.Capabilities{
		Input: []string{"text"}, Reasoning: true, Budget: plugins.Budget{Min: 512, Max: 24576}, ToolCall: true, Temperature: true,
	}}
	pro25 = translate.Target{Model: "gemini-2.5-pro", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "audio", "video", "pdf"}, Reasoning: true, Budget: plugins.Budget{Min: 128, Max: 32768}, ToolCall: true, Temperature: true,
	}}
	pro3 = translate.Target{Model: "gemini-3-pro-preview", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image", "audio", "video", "pdf"}, Reasoning: true, Efforts: []string{"low", "high"}, ToolCall: true, Temperature: true,
	}}
	image25 = translate.Target{Model: "gemini-2.5-flash-image", Capabilities: &plugins.Capabilities{
		Input: []string{"text", "image"}, Reasoning: true,
	}}
	unknown = translate.Target{Model: "gemini-9", Capabilities: new(plugins.Capabilities)}
	gemma   = translate.Target{Model: "gemma-3-27b-it"}
)

var vertex = Vertex{}

const whole = `{
	"model": "gpt", "instructions": "Be brief.", "input": "<hi>", "temperature": 0.2, "top_p": 0.9, "max_output_tokens": 50,
	"presence_penalty": 0.1, "frequency_penalty": 0.2,
	"tools": [{"type": "function", "name": "f", "description": "does f", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}],
	"user": "u", "metadata": {"team": "a-1", "Team": "x", "note": "two words", "n": ""}, "store": false}`

func TestPrepare(t *testing.T) {
	req, body, p, err := plugintest.Prepare(t, Provider{}, pro3, whole, true)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"<hi>"}]}],` +
		`"tools":[{"functionDeclarations":[{"name":"f","description":"does f","parametersJsonSchema":{"type":"object","properties":{"b":{},"a":{}}}}]}],` +
		`"generationConfig":{"maxOutputTokens":50,"temperature":0.2,"topP":0.9,"presencePenalty":0.1,"frequencyPenalty":0.2}}`
	if body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
	if got := req.Method + " " + req.URL.String(); got != "POST https://example.com/v1beta/models/gemini-3-pro-preview:generateContent" {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "X-Goog-Api-Key": "secret", "Authorization": ""} {
		if got := req.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestPrepareVertex(t *testing.T) {
	req, body, p, err := plugintest.Prepare(t, vertex, pro3, strings.Replace(whole, `"store": false`, `"stream":true,"service_tier":"flex"`, 1), true)
	if err != nil {
		t.Fatal(err)
	}
	const url = "https://example.com/publishers/google/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
	if got := req.URL.String(); got != url {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer secret", "X-Goog-Api-Key": "", "X-Vertex-AI-LLM-Shared-Request-Type": "flex",
	} {
		if got := req.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got, want := gjson.Get(body, "labels").Raw, `{"team":"a-1","n":""}`; got != want {
		t.Errorf("got the labels %s, want %s", got, want)
	}
	if gjson.Get(body, "serviceTier").Exists() || p.ServiceTier != "flex" || len(p.Warnings) > 0 {
		t.Errorf("got %s with the warnings %q", body, p.Warnings)
	}
}

func TestModelNames(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-3":        "/models/gemini-3:generateContent",
		"models/gemini-3": "/models/gemini-3:generateContent",
		"../x?a=b#c":      "/models/..%2Fx%3Fa=b%23c:generateContent",
	} {
		for _, provider := range []translate.Provider{Provider{}, vertex} {
			req, _, _, err := plugintest.Prepare(t, provider, translate.Target{Model: model}, plugintest.Request(""), true)
			if err != nil {
				t.Fatal(err)
			}
			if got := req.URL.String(); !strings.HasSuffix(got, want) {
				t.Errorf("%s: got %s, want %s at the end", model, got, want)
			}
		}
	}
}

const (
	function = `{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}`
	other    = `{"type":"function","name":"g"}`
	format   = `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"z":{"type":"integer"},"a":{}},"required":["a"]}}}`
	calls    = `{"role":"user","content":"hi"},{"type":"function_call","call_id":"1","name":"f","arguments":"{\"b\": 1, \"a\": 12345678901234567890}"}`
)

// mapped are the rows of the mapping: what a field of the request becomes, by
// its path in the body, "" for nothing, and how the client is warned.
var mapped = []struct {
	name     string
	provider translate.Provider // Provider{} by default
	target   translate.Target
	fields   string // of the request; input is "hi" unless given
	path     string
	want     string
	warnings []string
}{
	{name: "leading system messages join the instructions", target: pro3,
		fields: `"instructions":"A","input":[{"role":"system","content":"B"},{"role":"developer","content":"C"},{"role":"user","content":"hi"}]`,
		path:   "systemInstruction.parts.#.text", want: `["A","B","C"]`},
	{name: "later system messages keep their place", target: pro3,
		fields: `"input":[{"role":"user","content":"hi"},{"role":"developer","content":"Be brief."}]`,
		path:   "contents", want: `[{"role":"user","parts":[{"text":"hi"},{"text":"<system>\nBe brief.\n</system>"}]}]`},
	{name: "the user begins", target: pro3, fields: `"input":[{"role":"assistant","content":"Hello!"},{"role":"user","content":"hi"}]`,
		path: "contents.#.role", want: `["user","model","user"]`},
	{name: "a system message alone", target: pro3, fields: `"input":[{"role":"system","content":"S"}]`,
		path: "contents", want: `[{"role":"user","parts":[{"text":"(The conversation begins.)"}]}]`},
	{name: "empty texts are left out", target: pro3,
		fields: `"instructions":"","input":[{"role":"user","content":[{"type":"input_text","text":""},{"type":"input_text","text":"hi"}]},{"role":"assistant","content":""},{"role":"user","content":"?"}]`,
		path:   "contents", want: `[{"role":"user","parts":[{"text":"hi"},{"text":"?"}]}]`},
	{name: "no system", target: pro3, path: "systemInstruction"},
	{name: "no settings", target: pro3, path: "generationConfig"},
	{name: "refusals are text", target: pro3,
		fields: `"input":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"user","content":"?"}]`,
		path:   "contents.1", want: `{"role":"model","parts":[{"text":"No."}]}`},

	{name: "an inline image", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}]`,
		path:   "contents.0.parts", want: `[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]`},
	{name: "an image by URL", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.PNG?x=y","detail":"auto"}]}]`,
		path:   "contents.0.parts", want: `[{"fileData":{"mimeType":"image/png","fileUri":"https://example.com/a.PNG?x=y"}}]`},
	{name: "a URL that does not tell its type", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a"}]}]`,
		path:   "contents.0.parts", want: `[{"fileData":{"fileUri":"https://example.com/a"}}]`},
	{name: "detail", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"low"}]}]`,
		path:   "contents.0.parts.#", want: `1`,
		warnings: []string{"input[0].content[0].detail: not supported by the provider, left out"}},
	{name: "audio", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}]`,
		path:   "contents.0.parts", want: `[{"inlineData":{"mimeType":"audio/wav","data":"aGk="}}]`},
	{name: "a PDF", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,JVBERi0="}]}]`,
		path:   "contents.0.parts", want: `[{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}}]`},
	{name: "a file of no type", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","file_data":"JVBERi0xLjQK"}]}]`,
		path:   "contents.0.parts.0.inlineData.mimeType", want: `"application/pdf"`},
	{name: "a text of no type", target: flash2,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","file_data":"aGk="}]}]`,
		path:   "contents.0.parts.0.inlineData.mimeType", want: `"text/plain"`},
	{name: "a file by its name", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","filename":"talk.mp4","file_data":"aGk="}]}]`,
		path:   "contents.0.parts.0.inlineData.mimeType", want: `"video/mp4"`},
	{name: "a file of the Gemini API", target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","file_id":"files/abc"}]}]`,
		path:   "contents.0.parts", want: `[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc"}}]`},
	{name: "a file of Vertex AI", provider: vertex, target: pro3,
		fields: `"input":[{"role":"user","content":[{"type":"input_file","file_id":"gs://b/a.pdf"}]}]`,
		path:   "contents.0.parts", want: `[{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/a.pdf"}}]`},

	{name: "calls and outputs", target: flash25, fields: `"input":[` + calls + `,{"type":"function_call_output","call_id":"1","output":"4"}]`,
		path: "contents.#.parts", want: `[[{"text":"hi"}],[{"functionCall":{"id":"1","name":"f","args":{"b":1,"a":12345678901234567890}}}],` +
			`[{"functionResponse":{"id":"1","name":"f","response":{"output":"4"}}}]]`},
	{name: "an output that failed", target: flash25, fields: `"input":[` + calls + `,{"type":"function_call_output","call_id":"1","output":"no","status":"incomplete"}]`,
		path: "contents.2.parts.0.functionResponse.response", want: `{"error":"no"}`},
	{name: "an output in parts", target: flash25, fields: `"input":[` + calls + `,{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,aGk="},{"type":"input_text","text":"b"}]}]`,
		path: "contents.2.parts", want: `[{"functionResponse":{"id":"1","name":"f","response":{"output":"a\nb"}}},{"text":"Output of f, call 1:"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]`},
	{name: "the user speaks after an output", target: flash25, fields: `"input":[` + calls + `,{"type":"function_call_output","call_id":"1","output":"4"},{"role":"user","content":"?"}]`,
		path: "contents.#.role", want: `["user","model","user"]`},
	{name: "the call of a custom tool", target: flash25,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"custom_tool_call","call_id":"1","name":"patch","input":"a\nb"},{"type":"custom_tool_call_output","call_id":"1","output":"ok"}]`,
		path:   "contents.1.parts.0.functionCall.args", want: `{"input":"a\nb"}`},
	{name: "calls before levels need no signature", target: flash25, fields: `"input":[` + calls + `,{"type":"function_call_output","call_id":"1","output":"4"}]`,
		path: "contents.1.parts.0.thoughtSignature"},
	{name: "calls of others", target: pro3, fields: `"input":[` + calls + `,{"type":"function_call","call_id":"2","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"4"},{"type":"function_call_output","call_id":"2","output":"4"}]`,
		path: "contents.1.parts.#.thoughtSignature", want: `["skip_thought_signature_validator"]`},
	{name: "reasoning without state", target: pro3,
		fields: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"secret"}]},{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`,
		path:   "contents.1.parts", want: `[{"text":"4"}]`},

	{name: "a function without parameters", target: pro3, fields: `"tools":[{"type":"function","name":"f","parameters":{}}]`,
		path: "tools", want: `[{"functionDeclarations":[{"name":"f"}]}]`},
	{name: "functions", target: pro3, fields: `"tools":[` + function + `,` + other + `]`,
		path: "tools.#.functionDeclarations.#.name", want: `[["f","g"]]`},
	{name: "a custom tool", target: pro3,
		fields: `"tools":[{"type":"custom","name":"patch","description":"Patches.","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}}]`,
		path:   "tools.0.functionDeclarations.0", want: `{"name":"patch","description":"Patches.\n\nThe input matches this lark grammar:\nstart: \"x\"",` +
			`"parametersJsonSchema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}`},
	{name: "web search", target: flash25, fields: `"max_tool_calls":3,"tools":[{"type":"web_search"}]`, path: "tools", want: `[{"googleSearch":{}}]`},
	{name: "hints to web search", target: flash25, fields: `"tools":[{"type":"web_search","search_context_size":"high","user_location":{"type":"approximate","city":"Oslo"}}]`,
		path: "tools", want: `[{"googleSearch":{}}]`,
		warnings: []string{"tools[0].user_location: not supported by the provider, left out", "tools[0].search_context_size: not supported by the provider, left out"}},
	{name: "domains to leave out", provider: vertex, target: flash25, fields: `"tools":[{"type":"web_search","filters":{"blocked_domains":["a.com"]}}]`,
		path: "tools", want: `[{"googleSearch":{"excludeDomains":["a.com"]}}]`},
	{name: "code interpreter", target: flash25, fields: `"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`, path: "tools", want: `[{"codeExecution":{}}]`},
	{name: "hosted tools beside functions", target: pro3, fields: `"tools":[{"type":"web_search"},` + other + `]`, path: "toolConfig",
		want: `{"includeServerSideToolInvocations":true}`},

	{name: "no choice", target: pro3, fields: `"tools":[` + function + `]`, path: "toolConfig"},
	{name: "auto", target: pro3, fields: `"tools":[` + function + `],"tool_choice":"auto"`, path: "toolConfig", want: `{"functionCallingConfig":{"mode":"AUTO"}}`},
	{name: "none", target: pro3, fields: `"tools":[` + function + `,{"type":"web_search"}],"tool_choice":"none"`, path: "toolConfig", want: `{"functionCallingConfig":{"mode":"NONE"}}`},
	{name: "none of hosted tools", target: pro3, fields: `"tools":[{"type":"web_search"}],"tool_choice":"none"`, path: "tools"},
	{name: "required", target: pro3, fields: `"tools":[` + function + `],"tool_choice":"required"`, path: "toolConfig", want: `{"functionCallingConfig":{"mode":"ANY"}}`},
	{name: "one function", target: pro3, fields: `"tools":[` + function + `,` + other + `],"tool_choice":{"type":"function","name":"f"}`,
		path: "toolConfig", want: `{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`},
	{name: "a strict function", target: pro3, fields: `"tools":[{"type":"function","name":"f","strict":true}]`,
		path: "toolConfig", want: `{"functionCallingConfig":{"mode":"VALIDATED"}}`},
	{name: "a function that is not strict", target: pro3, fields: `"tools":[{"type":"function","name":"f","strict":false}]`, path: "toolConfig"},
	{name: "parallel calls", target: pro3, fields: `"tools":[` + function + `],"parallel_tool_calls":false`, path: "toolConfig",
		warnings: []string{"parallel_tool_calls: not supported by the provider, left out"}},

	{name: "a schema", target: flash25, fields: format, path: "generationConfig",
		want: `{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"z":{"type":"integer"},"a":{}},"required":["a"]}}`},
	{name: "a schema beside tools", target: pro3, fields: format + `,"tools":[` + other + `]`, path: "generationConfig.responseMimeType", want: `"application/json"`},
	{name: "a schema beside tools of a model that has either", target: flash25, fields: format + `,"tools":[` + other + `]`,
		path: "[tools.0.functionDeclarations.#.name,toolConfig,generationConfig]", want: `[["g","structured_answer"],{"functionCallingConfig":{"mode":"ANY"}}]`},
	{name: "a schema beside some of the tools", target: flash25,
		fields: format + `,"tools":[` + function + `,` + other + `],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`,
		path:   "toolConfig.functionCallingConfig.allowedFunctionNames", want: `["g","structured_answer"]`},
	{name: "a schema beside tools that must not be called", target: flash25, fields: format + `,"tools":[` + other + `],"tool_choice":"none"`,
		path: "tools.0.functionDeclarations.#.name", want: `["structured_answer"]`},
	{name: "a schema beside tools that must be called", target: flash25, fields: format + `,"tools":[` + other + `],"tool_choice":"required"`,
		path: "tools.0.functionDeclarations.#.name", want: `["g"]`},
	{name: "hosted tools beside functions of a model that has either", target: flash25, fields: `"tools":[{"type":"web_search"},` + other + `]`,
		path: "tools.#.functionDeclarations.#.name", want: `[["g"]]`, warnings: []string{"tools[0]"}},
	{name: "JSON", target: flash25, fields: `"text":{"format":{"type":"json_object"}}`, path: "generationConfig", want: `{"responseMimeType":"application/json"}`},
	{name: "text", target: flash25, fields: `"text":{"format":{"type":"text"}}`, path: "generationConfig"},

	{name: "effort", target: pro3, fields: `"reasoning":{"effort":"high"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingLevel":"HIGH"}}`},
	{name: "a summary", target: pro3, fields: `"reasoning":{"effort":"low","summary":"auto"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true}}`},
	{name: "a summary without effort", target: flash25, fields: `"reasoning":{"summary":"auto"}`, path: "generationConfig", want: `{"thinkingConfig":{"includeThoughts":true}}`},
	{name: "effort between levels", target: pro3, fields: `"reasoning":{"effort":"medium"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingLevel":"LOW"}}`,
		warnings: []string{"reasoning.effort: not a level of the model, 'low' in its place"}},
	{name: "effort below the levels", target: pro3, fields: `"reasoning":{"effort":"none"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingLevel":"LOW"}}`,
		warnings: []string{"reasoning.effort: not a level of the model, 'low' in its place"}},
	{name: "effort above the levels", target: unknown, fields: `"reasoning":{"effort":"max"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingLevel":"HIGH"}}`,
		warnings: []string{"reasoning.effort: not a level of the model, 'high' in its place"}},
	{name: "effort of an unknown model", target: unknown, fields: `"reasoning":{"effort":"minimal"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}`},
	{name: "a budget", target: flash25, fields: `"reasoning":{"effort":"medium"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingBudget":8192}}`},
	{name: "the largest budget", target: pro25, fields: `"reasoning":{"effort":"max"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingBudget":32768}}`},
	{name: "no thinking", target: flash25, fields: `"reasoning":{"effort":"none","summary":"auto"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingBudget":0}}`},
	{name: "no thinking of a model that need not think", target: lite25, fields: `"reasoning":{"effort":"none"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingBudget":0}}`},
	{name: "thinking cannot be disabled", target: pro25, fields: `"reasoning":{"effort":"none"}`, path: "generationConfig", want: `{"thinkingConfig":{"thinkingBudget":128}}`,
		warnings: []string{"reasoning.effort: not possible with a model that always thinks, the least in its place"}},
	{name: "a model that cannot think", target: flash2, fields: `"reasoning":{"effort":"low","summary":"auto"}`, path: "generationConfig",
		warnings: []string{"reasoning.effort: not supported by the model, left out", "reasoning.summary: not supported by the model, left out"}},
	{name: "a model that cannot be told to think", target: image25, fields: `"reasoning":{"effort":"low"}`, path: "generationConfig",
		warnings: []string{"reasoning.effort: not supported by the model, left out"}},
	{name: "an old model that nobody describes", target: gemma, fields: `"reasoning":{"effort":"low"}`, path: "generationConfig",
		warnings: []string{"reasoning.effort: not supported by the model, left out"}},

	{name: "a seed", target: pro3, fields: `"seed":7`, path: "generationConfig", want: `{"seed":7}`},
	{name: "a stop sequence", target: pro3, fields: `"stop":"END"`, path: "generationConfig", want: `{"stopSequences":["END"]}`},
	{name: "stop sequences", target: pro3, fields: `"stop":["a","b"]`, path: "generationConfig", want: `{"stopSequences":["a","b"]}`},
	{name: "logprobs", target: pro3, fields: `"include":["message.output_text.logprobs"]`, path: "generationConfig", want: `{"responseLogprobs":true}`},
	{name: "top logprobs", target: pro3, fields: `"top_logprobs":3`, path: "generationConfig", want: `{"responseLogprobs":true,"logprobs":3}`},
	{name: "temperature", target: pro3, fields: `"temperature":2`, path: "generationConfig", want: `{"temperature":2}`},
	{name: "temperature of a model that has none", target: image25, fields: `"temperature":0.5`, path: "generationConfig",
		warnings: []string{"temperature: not supported by the model, left out"}},

	{name: "tier flex", target: pro3, fields: `"service_tier":"flex"`, path: "serviceTier", want: `"flex"`},
	{name: "tier default", target: pro3, fields: `"service_tier":"default"`, path: "serviceTier"},
	{name: "tier scale", target: pro3, fields: `"service_tier":"scale"`, path: "serviceTier",
		warnings: []string{"service_tier: not supported by the provider, left out"}},
	{name: "verbosity", target: pro3, fields: `"text":{"verbosity":"low"}`, path: "generationConfig",
		warnings: []string{"text.verbosity: not supported by the provider, left out"}},
	{name: "hints to accounting", target: pro3, fields: `"metadata":{"a":"b"},"store":true,"prompt_cache_key":"k","safety_identifier":"s"`, path: "labels"},
	{name: "metadata that fits no label", provider: vertex, target: pro3, fields: `"metadata":{"A":"b","c":"D"}`, path: "labels"},
}

func TestMapping(t *testing.T) {
	for _, test := range mapped {
		t.Run(test.name, func(t *testing.T) {
			if test.provider == nil {
				test.provider = Provider{}
			}
			plugintest.Maps(t, test.provider, test.target, test.fields, test.path, test.want, test.warnings...)
		})
	}
}

func TestRejected(t *testing.T) {
	for name, test := range map[string]struct {
		provider      translate.Provider
		target        translate.Target
		fields, param string
	}{
		"audio of a model of images": {Provider{}, flash2, `"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}]`, "input[0].content[0]"},
		"PDF of a model of images":   {Provider{}, flash2, `"input":[{"role":"user","content":[{"type":"input_file","file_data":"JVBERi0xLjQK"}]}]`, "input[0].content[0]"},
		"image of a model of text":   {Provider{}, lite25, `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a"}]}]`, "input[0].content[0]"},
		"file of OpenAI":             {Provider{}, pro3, `"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]`, "input[0].content[0]"},
		"file of another service":    {vertex, pro3, `"input":[{"role":"user","content":[{"type":"input_file","file_id":"files/1"}]}]`, "input[0].content[0]"},
		"image of the system":        {Provider{}, pro3, `"input":[{"role":"system","content":[{"type":"input_image","image_url":"https://example.com/a"}]}]`, "input[0].content[0]"},
		"search of domains":          {Provider{}, pro3, `"tools":[{"type":"web_search","filters":{"allowed_domains":["a.com"]}}]`, "tools[0].filters.allowed_domains"},
		"search without domains":     {Provider{}, pro3, `"tools":[{"type":"web_search","filters":{"blocked_domains":["a.com"]}}]`, "tools[0].filters.blocked_domains"},
		"search beside functions":    {vertex, pro3, `"tools":[` + other + `,{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, "tool_choice"},
		"forced without":             {Provider{}, pro3, `"tool_choice":"required"`, "tool_choice"},
		"forced search":              {Provider{}, pro3, `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, "tool_choice"},
		"allowed none":               {Provider{}, pro3, `"tools":[` + function + `],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[]}`, "tool_choice"},
		"JSON beside tools":          {Provider{}, flash25, `"text":{"format":{"type":"json_object"}},"tools":[` + other + `]`, "text.format"},
		"effort":                     {Provider{}, pro3, `"reasoning":{"effort":"huge"}`, "reasoning.effort"},
		"state":                      {Provider{}, pro3, `"previous_response_id":"resp_1"`, "previous_response_id"},
	} {
		t.Run(name, func(t *testing.T) {
			plugintest.Refuses(t, test.provider, test.target, test.fields, test.param)
		})
	}
}

func TestDocumentedValues(t *testing.T) { plugintest.Documented(t, Provider{}, pro3) }

func TestFormatIsSent(t *testing.T) {
	_, body, _, err := plugintest.Prepare(t, Provider{}, pro3, plugintest.Request(format), true)
	if err != nil || gjson.Get(body, "generationConfig.responseJsonSchema.properties.z.type").Str != "integer" {
		t.Errorf("got %s, %v", body, err)
	}
}
