package chat

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Targets as the catalogue describes models.
var (
	thinker3   = translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text", "image"}, Reasoning: true, Efforts: []string{"low", "medium", "high"}}}
	hotThinker = translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}, Reasoning: true, Temperature: true}}
	twoLevels  = translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}, Reasoning: true, Temperature: true, Efforts: []string{"high", "max"}}}
	qwen       = translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}, Reasoning: true, Temperature: true, Efforts: []string{"none", "default"}}}
	plain      = translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}, Temperature: true, ToolCall: true}}
	remembers  = translate.Target{Capabilities: &plugins.Capabilities{Input: []string{"text"}, Reasoning: true, Temperature: true, Interleaved: "reasoning_content"}}
)

const (
	functions = `"tools":[{"type":"function","name":"f","strict":true},{"type":"function","name":"g","parameters":{"type":"object"}}]`
	freeform  = `"tools":[{"type":"custom","name":"patch","description":"Edits.","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}}]`
	schema    = `"text":{"format":{"type":"json_schema","name":"n","description":"d","strict":true,"schema":{"type":"object","properties":{"b":{},"a":{}}}}}`
	turns     = `"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{\"vendor\":\"deepseek\",\"reasoning_content\":\"Hm\"}"},` +
		`{"role":"assistant","content":"Wait."},{"type":"function_call","call_id":"call_1","name":"f","arguments":""},` +
		`{"type":"function_call_output","call_id":"call_1","output":"42"},{"role":"user","content":"so?"}]`
	forgotten = `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"42"}]`
	marked    = `"input":[{"role":"system","content":[{"type":"input_text","text":"s","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}]},{"role":"user","content":"hi"},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"42","prompt_cache_breakpoint":{"mode":"explicit"}}]}]`
	image     = `{"type":"input_image","image_url":"data:image/png;base64,aGk="}`
	file64    = `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}]}]`
	fileAt    = `"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]`
	sound     = `"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}}]}]`
	system    = `"instructions":"A","input":[{"role":"developer","content":"B"},{"role":"user","content":"hi"},{"role":"system","content":"C"}]`
	late      = `"include":["message.output_text.logprobs"],"top_logprobs":`
)

// mapped are the rows of the mapping: what a field of the request becomes, by
// its path in the body, "" for nothing, and of what the client is warned.
var mapped = []struct {
	name, vendor string
	target       translate.Target
	fields       string // of the request; input is "hi" unless given
	path, want   string
	warned       string
}{
	{name: "a schema beside tools", vendor: "groq", fields: functions + `,` + schema, path: "[tool_choice,response_format,tools.#.function.name]", want: `["required",["f","g","structured_answer"]]`},
	{name: "a schema beside tools that must not be called", vendor: "cerebras", fields: functions + `,` + schema + `,"tool_choice":"none"`, path: "tools.#.function.name", want: `["structured_answer"]`},
	{name: "a schema without tools", vendor: "groq", fields: schema, path: "response_format.type", want: `"json_schema"`},
	{name: "tools of nobody's", vendor: "groq", fields: `"tools":[{"type":"local_shell"},{"type":"function","name":"f"}]`, path: "tools.#", want: "1", warned: "tools[0]"},
	{name: "system", vendor: "groq", fields: system, path: "messages", want: `[{"role":"system","content":"A"},{"role":"system","content":"B"},{"role":"user","content":"hi"},{"role":"system","content":"C"}]`},
	{name: "developer", vendor: "openai", target: thinker3, fields: system, path: "messages.#.role", want: `["developer","developer","user","system"]`},
	{name: "developer of models that do not think", vendor: "openai", target: plain, fields: system, path: "messages.#.role", want: `["system","system","user","system"]`},
	{name: "one system message", vendor: "vllm", fields: system, path: "messages", want: `[{"role":"system","content":"A\n\nB"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"<system>\nC\n</system>"}]}]`},
	{name: "a user who said nothing first", vendor: "vllm", fields: `"input":[{"role":"user","content":""},{"role":"user","content":"a"},{"role":"user","content":"b"}]`, path: "messages.#.content", want: `[[{"type":"text","text":"a"},{"type":"text","text":"b"}]]`},
	{name: "users in a row", vendor: "lmstudio", fields: `"input":[{"role":"user","content":"a"},{"role":"user","content":"b"}]`, path: "messages.#.role", want: `["user"]`},
	{name: "texts of one message", vendor: "groq", fields: `"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]`, path: "messages.0.content", want: `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
	{name: "texts of a system message", vendor: "groq", fields: `"input":[{"role":"system","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},{"role":"user","content":"u"}]`, path: "messages.0.content", want: `"a\n\nb"`},
	{name: "texts of an output", vendor: "groq", fields: `"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]`, path: "messages.1.content", want: `"a\n\nb"`},
	{name: "one text is a string", vendor: "groq", fields: `"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]`, path: "messages.0.content", want: `"a"`},
	{name: "texts of the assistant join", vendor: "groq", fields: `"input":[{"role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"},{"type":"refusal","refusal":"c"}]},{"role":"user","content":"?"}]`, path: "messages.0.content", want: `"abc"`},
	{name: "calls and outputs", vendor: "groq", fields: turns, path: "messages",
		want: `[{"role":"user","content":"hi"},{"role":"assistant","content":"Wait.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","content":"42","tool_call_id":"call_1"},{"role":"user","content":"so?"}]`, warned: "input[1]"},
	{name: "calls without text", vendor: "groq", fields: `"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":9007199254740993}"},{"type":"function_call_output","call_id":"c","output":""}]`,
		path: "messages", want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":9007199254740993}"}}]},{"role":"tool","content":"","tool_call_id":"c"}]`},
	{name: "an id that Mistral takes", vendor: "mistral", fields: strings.ReplaceAll(turns, "call_1", "aB3456789"), path: "messages.2.tool_call_id", want: `"aB3456789"`, warned: "input[1] input"},
	{name: "the user after outputs", vendor: "mistral", fields: turns, path: "messages.#.role", want: `["user","assistant","tool","assistant","user"]`, warned: "input[1] input"},
	{name: "the assistant at the end", vendor: "mistral", fields: `"input":[{"role":"user","content":"hi"},{"role":"assistant","content":"{"}]`, path: "messages.2", want: `{"role":"user","content":"Go on."}`, warned: "input"},
	{name: "the system at the end", vendor: "mistral", fields: `"input":[{"role":"user","content":"hi"},{"role":"assistant","content":"a"},{"role":"system","content":"C"}]`, path: "messages.2", want: `{"role":"user","content":"<system>\nC\n</system>"}`},
	{name: "media of an output", vendor: "groq", fields: `"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"see"},` + image + `]}]`,
		path: "messages.#(role!=\"assistant\")#", want: `[{"role":"tool","content":"see","tool_call_id":"c"},{"role":"user","content":[{"type":"text","text":"From the output of f (c):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]`},
	{name: "an image", vendor: "groq", fields: `"input":[{"role":"user","content":[` + image + `]}]`, path: "messages.0.content", want: `[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]`},
	{name: "detail of an image", vendor: "openai", fields: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png","detail":"original"}]}]`,
		path: "messages.0.content.0.image_url", want: `{"url":"https://example.com/a.png","detail":"high"}`, warned: "input[0].content[0].detail"},
	{name: "OpenAI's file", vendor: "openai", fields: file64, path: "messages.0.content", want: `[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]`},
	{name: "an uploaded file", vendor: "openai", fields: `"input":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]`, path: "messages.0.content.0.file", want: `{"file_id":"file_1"}`},
	{name: "a file by URL", vendor: "openrouter", fields: fileAt, path: "messages.0.content.0.file", want: `{"filename":"file","file_data":"https://example.com/a.pdf"}`},
	{name: "Mistral's file", vendor: "mistral", fields: file64, path: "messages.0.content", want: `[{"type":"document_url","document_url":"data:application/pdf;base64,JVBERi0="}]`},
	{name: "audio", vendor: "openai", fields: sound, path: "messages.0.content", want: `[{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}}]`},
	{name: "Mistral's audio", vendor: "mistral", fields: sound, path: "messages.0.content.0.input_audio", want: `"aGk="`},

	{name: "reasoning of the vendor that wants it", vendor: "deepseek", target: remembers, fields: turns, path: "messages.1.reasoning_content", want: `"Hm"`},
	{name: "reasoning of the vendor that does not", vendor: "deepseek", fields: turns, path: "messages.1.reasoning_content"},
	{name: "reasoning in the field it came in", vendor: "groq", fields: strings.NewReplacer("deepseek", "groq", "reasoning_content", "reasoning").Replace(turns), path: "messages.1.reasoning", want: `"Hm"`},
	{name: "reasoning in the field that the model has", vendor: "together", target: remembers, fields: strings.NewReplacer("deepseek", "together", `\"reasoning_content`, `\"reasoning`).Replace(turns), path: "messages.1.reasoning_content", want: `"Hm"`},
	{name: "reasoning without a seal", vendor: "deepseek", target: remembers, fields: `"input":[{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]`, path: "messages.0", want: `{"role":"assistant","content":"a"}`, warned: "input[0]"},
	{name: "reasoning alone is no message", vendor: "groq", fields: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"r","summary":[],"encrypted_content":"{\"vendor\":\"groq\",\"reasoning\":\"Hm\"}"}]`, path: "messages.#", want: `1`},

	{name: "functions", vendor: "groq", fields: functions, path: "tools", want: `[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}},"strict":true}},{"type":"function","function":{"name":"g","parameters":{"type":"object"}}}]`},
	{name: "namespaces", vendor: "groq", fields: `"tools":[{"type":"namespace","name":"ns","tools":[{"type":"function","name":"f"}]}]`, path: "tools.0.function.name", want: `"ns__f"`},
	{name: "custom tools", vendor: "openai", fields: freeform, path: "tools", want: `[{"type":"custom","custom":{"name":"patch","description":"Edits.","format":{"type":"grammar","grammar":{"definition":"start: \"x\"","syntax":"lark"}}}}]`},
	{name: "custom tools as functions", vendor: "groq", fields: freeform, path: "tools.0.function", want: `{"name":"patch","description":"Edits.\n\nThe input matches this lark grammar:\nstart: \"x\"","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}`},
	{name: "calls of custom tools", vendor: "openai", fields: `"input":[{"type":"custom_tool_call","call_id":"c","name":"patch","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":"ok"}]`, path: "messages.0.tool_calls", want: `[{"id":"c","type":"custom","custom":{"name":"patch","input":"x"}}]`},
	{name: "calls of custom tools as functions", vendor: "groq", fields: `"input":[{"type":"custom_tool_call","call_id":"c","name":"patch","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":"ok"}]`, path: "messages.0.tool_calls.0.function", want: `{"name":"patch","arguments":"{\"input\":\"x\"}"}`},
	{name: "no choice", vendor: "groq", fields: functions, path: "tool_choice"},
	{name: "choice of none", vendor: "groq", fields: functions + `,"tool_choice":"none"`, path: "tool_choice", want: `"none"`},
	{name: "required", vendor: "groq", fields: functions + `,"tool_choice":"required"`, path: "tool_choice", want: `"required"`},
	{name: "Mistral's required", vendor: "mistral", fields: functions + `,"tool_choice":"required"`, path: "tool_choice", want: `"any"`},
	{name: "one function", vendor: "groq", fields: functions + `,"tool_choice":{"type":"function","name":"g"}`, path: "tool_choice", want: `{"type":"function","function":{"name":"g"}}`},
	{name: "one function by leaving the others out", vendor: "lmstudio", fields: functions + `,"tool_choice":{"type":"function","name":"g"}`, path: "[tool_choice,tools.#.function.name]", want: `["required",["g"]]`},
	{name: "one custom tool", vendor: "openai", fields: freeform + `,"tool_choice":{"type":"custom","name":"patch"}`, path: "tool_choice", want: `{"type":"custom","custom":{"name":"patch"}}`},
	{name: "allowed tools", vendor: "groq", fields: functions + `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}`, path: "[tool_choice,tools.#.function.name]", want: `["required",["g"]]`},
	{name: "none without a choice", vendor: "ollama", fields: functions + `,"tool_choice":"none"`, path: "tools"},
	{name: "auto without a choice", vendor: "ollama", fields: functions + `,"tool_choice":"auto"`, path: "tool_choice"},
	{name: "a call without a choice", vendor: "ollama", fields: functions + `,"tool_choice":"required"`, path: "[tool_choice,messages.1]", want: `[{"role":"system","content":"Answer with a call of a tool, not with a text."}]`, warned: "tool_choice"},
	{name: "one function without a choice", vendor: "ollama", fields: functions + `,"tool_choice":{"type":"function","name":"g"}`, path: "tools.#.function.name", want: `["g"]`, warned: "tool_choice"},
	{name: "sequential calls", vendor: "groq", fields: functions + `,"parallel_tool_calls":false`, path: "parallel_tool_calls", want: `false`},
	{name: "parallel calls, as always", vendor: "deepseek", fields: functions + `,"parallel_tool_calls":true`, path: "parallel_tool_calls"},
	{name: "sequential calls of none", vendor: "groq", fields: `"parallel_tool_calls":false`, path: "parallel_tool_calls"},
	{name: "calls that are always parallel", vendor: "deepseek", fields: functions + `,"parallel_tool_calls":false`, path: "parallel_tool_calls", warned: "parallel_tool_calls"},

	{name: "OpenAI's search", vendor: "openai", fields: `"tools":[{"type":"web_search","search_context_size":"low"}]`, path: "[web_search_options,tools]", want: `[{"search_context_size":"low"}]`},
	{name: "OpenRouter's search", vendor: "openrouter", fields: `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, path: "[plugins,tool_choice]", want: `[[{"id":"web"}]]`},
	{name: "tools that xAI hosts", vendor: "xai", fields: `"tools":[{"type":"x_search"}],"tool_choice":"required"`, path: "[input,tools,tool_choice]", want: `["hi",[{"type":"x_search"}],"required"]`},

	{name: "a schema", vendor: "groq", fields: schema, path: "response_format", want: `{"type":"json_schema","json_schema":{"name":"n","description":"d","schema":{"type":"object","properties":{"b":{},"a":{}}},"strict":true}}`},
	{name: "a schema that is not enforced", vendor: "deepseek", fields: schema, path: "[response_format.type,messages.1.content]", want: `["json_object","Answer with one JSON object that matches this JSON schema:\n{\"type\":\"object\",\"properties\":{\"b\":{},\"a\":{}}}"]`, warned: "text.format"},
	{name: "an object", vendor: "groq", fields: `"text":{"format":{"type":"json_object"}}`, path: "response_format", want: `{"type":"json_object"}`},
	{name: "an object by a schema", vendor: "lmstudio", fields: `"text":{"format":{"type":"json_object"}}`, path: "response_format", want: `{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}}`},
	{name: "text", vendor: "groq", fields: `"text":{"format":{"type":"text"}}`, path: "response_format"},
	{name: "verbosity", vendor: "openai", fields: `"text":{"verbosity":"low"}`, path: "verbosity", want: `"low"`},
	{name: "no verbosity", vendor: "groq", fields: `"text":{"verbosity":"low"}`, path: "verbosity", warned: "text.verbosity"},

	{name: "effort", vendor: "groq", fields: `"reasoning":{"effort":"low"}`, path: "reasoning_effort", want: `"low"`},
	{name: "effort between levels", vendor: "groq", fields: `"reasoning":{"effort":"xhigh"}`, path: "reasoning_effort", want: `"high"`, warned: "reasoning.effort"},
	{name: "effort below all levels", vendor: "openai", target: thinker3, fields: `"reasoning":{"effort":"none"}`, path: "reasoning_effort", want: `"low"`, warned: "reasoning.effort"},
	{name: "effort of a switch", vendor: "groq", target: qwen, fields: `"reasoning":{"effort":"low"}`, path: "reasoning_effort", want: `"default"`, warned: "reasoning.effort"},
	{name: "effort of a model that has no levels", vendor: "xai", target: hotThinker, fields: `"reasoning":{"effort":"low"}`, path: "reasoning_effort", warned: "reasoning.effort"},
	{name: "effort of a model that does not think", vendor: "groq", target: plain, fields: `"reasoning":{"effort":"low"}`, path: "reasoning_effort", warned: "reasoning.effort"},
	{name: "none of a model that does not think", vendor: "groq", target: plain, fields: `"reasoning":{"effort":"none"}`, path: "reasoning_effort"},
	{name: "OpenRouter's effort", vendor: "openrouter", fields: `"reasoning":{"effort":"minimal"}`, path: "reasoning", want: `{"effort":"minimal"}`},
	{name: "DeepSeek's switch", vendor: "deepseek", fields: `"reasoning":{"effort":"low"}`, path: "[thinking,reasoning_effort]", want: `[{"type":"enabled"}]`},
	{name: "DeepSeek's switch off", vendor: "deepseek", target: twoLevels, fields: `"reasoning":{"effort":"none"}`, path: "[thinking,reasoning_effort]", want: `[{"type":"disabled"}]`},
	{name: "DeepSeek's levels", vendor: "deepseek", target: twoLevels, fields: `"reasoning":{"effort":"medium"}`, path: "[thinking,reasoning_effort]", want: `[{"type":"enabled"},"high"]`, warned: "reasoning.effort"},
	{name: "DeepSeek's switch where a call is forced", vendor: "deepseek", target: twoLevels, fields: functions + `,"tool_choice":"required","reasoning":{"effort":"high"}`, path: "[thinking,reasoning_effort,tool_choice]", want: `[{"type":"disabled"},"required"]`, warned: "reasoning.effort"},
	{name: "DeepSeek thinks by itself, but not where a call is forced", vendor: "deepseek", target: twoLevels, fields: functions + `,"tool_choice":{"type":"function","name":"f"}`, path: "thinking", want: `{"type":"disabled"}`},
	{name: "effort of a template", vendor: "vllm", fields: `"reasoning":{"effort":"high"}`, path: "[reasoning_effort,chat_template_kwargs]", want: `["high",{"enable_thinking":true}]`},
	{name: "a template that does not think", vendor: "vllm", fields: `"reasoning":{"effort":"none"}`, path: "[reasoning_effort,chat_template_kwargs]", want: `[{"enable_thinking":false}]`},
	{name: "summary", vendor: "openai", fields: `"reasoning":{"summary":"auto"}`, path: "reasoning", warned: "reasoning.summary"},

	{name: "a limit", vendor: "deepseek", fields: `"max_output_tokens":1`, path: "[max_tokens,max_completion_tokens]", want: `[1]`},
	{name: "a limit by its later name", vendor: "groq", fields: `"max_output_tokens":1`, path: "max_completion_tokens", want: `1`},
	{name: "sampling", vendor: "openai", fields: `"temperature":0,"top_p":0.5,"presence_penalty":1,"frequency_penalty":-1`, path: "[temperature,top_p,presence_penalty,frequency_penalty]", want: `[0,0.5,1,-1]`},
	{name: "Mistral's highest temperature", vendor: "mistral", fields: `"temperature":1.8`, path: "temperature", want: `1.5`, warned: "temperature"},
	{name: "settings that ask for nothing", vendor: "cerebras", fields: functions + `,"text":{"verbosity":"medium"},"presence_penalty":0,"frequency_penalty":0`, path: "[verbosity,presence_penalty,frequency_penalty]", want: `[]`},
	{name: "penalties that xAI refuses", vendor: "xai", target: hotThinker, fields: `"presence_penalty":1`, path: "presence_penalty", warned: "presence_penalty"},
	{name: "penalties that Groq has not", vendor: "groq", fields: `"presence_penalty":1`, path: "presence_penalty", warned: "presence_penalty"},
	{name: "logprobs", vendor: "openai", fields: late + `0`, path: "[logprobs,top_logprobs]", want: `[true]`},
	{name: "top logprobs", vendor: "openai", fields: late + `3`, path: "[logprobs,top_logprobs]", want: `[true,3]`},

	{name: "usage of streams", vendor: "groq", fields: `"stream":true`, path: "stream_options", want: `{"include_usage":true}`},
	{name: "usage that comes unasked", vendor: "mistral", fields: `"stream":true`, path: "stream_options"},
	{name: "user", vendor: "groq", fields: `"safety_identifier":"u"`, path: "user", want: `"u"`},
	{name: "no user", vendor: "mistral", fields: `"user":"u","safety_identifier":"u"`, path: "user"},
	{name: "safety identifier", vendor: "openai", fields: `"safety_identifier":"u"`, path: "[safety_identifier,user]", want: `["u"]`},
	{name: "cache key", vendor: "mistral", fields: `"prompt_cache_key":"k"`, path: "prompt_cache_key", want: `"k"`},
	{name: "cache retention", vendor: "openai", fields: `"prompt_cache_retention":"24h"`, path: "prompt_cache_retention", want: `"24h"`},
	{name: "metadata of what is not stored", vendor: "openai", fields: `"metadata":{"k":"v"},"store":false`, path: "[metadata,store]", want: `[]`},
	{name: "calls without their reasoning", vendor: "deepseek", target: remembers, fields: functions + `,"reasoning":{"effort":"high"},` + forgotten, path: "[thinking,messages.1.reasoning_content]", want: `[{"type":"disabled"}]`, warned: "reasoning.effort"},
	{name: "calls with their reasoning", vendor: "deepseek", target: remembers, fields: functions + `,` + turns, path: "[thinking,messages.1.reasoning_content]", want: `["Hm"]`},
	{name: "calls without their reasoning, and without tools", vendor: "deepseek", target: remembers, fields: forgotten, path: "thinking"},
	{name: "calls of a model that does not think", vendor: "deepseek", target: plain, fields: functions + `,` + forgotten, path: "thinking"},
	{name: "marks of a prefix to be cached", vendor: "openrouter", fields: marked, path: "[messages.#.content,messages.#.role]", want: `[[[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"hi",null,[{"type":"text","text":"42","cache_control":{"type":"ephemeral"}}]],["system","user","assistant","tool"]]`},
	{name: "marks for vendors that decide themselves", vendor: "groq", fields: marked, path: "messages.#.content", want: `["s","hi",null,"42"]`},
	{name: "metadata elsewhere", vendor: "groq", fields: `"metadata":{"k":"v"},"store":true`, path: "[metadata,store]", want: `[]`},
	{name: "tier", vendor: "openai", fields: `"service_tier":"priority"`, path: "service_tier", want: `"priority"`},
	{name: "no tier", vendor: "together", fields: `"service_tier":"flex"`, path: "service_tier", warned: "service_tier"},
}

func TestMapping(t *testing.T) {
	for _, test := range mapped {
		t.Run(test.name, func(t *testing.T) {
			test.target.Model = "m"
			_, body, p, err := plugintest.Prepare(t, For(test.vendor), test.target, plugintest.Request(test.fields), false)
			if err != nil {
				t.Fatal(err)
			}
			if got := gjson.Get(body, test.path).Raw; got != test.want {
				t.Errorf("got  %s\nwant %s\nin %s", got, test.want, body)
			}
			var warned []string
			for _, w := range p.Warnings {
				field, _, _ := strings.Cut(w, ": ")
				warned = append(warned, field)
			}
			if got := strings.Join(warned, " "); got != test.warned {
				t.Errorf("warned of %q, want %q", got, test.warned)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, vendor string
		target       translate.Target
		fields       string
		param        string
	}{
		{"images of a model that sees none", "deepseek", plain, `"input":[{"role":"user","content":[` + image + `]}]`, "input[0].content[0]"},
		{"an uploaded image", "openai", translate.Target{}, `"input":[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]`, "input[0].content[0]"},
		{"audio of a model that hears none", "openai", plain, sound, "input[0].content[0]"},
		{"files", "groq", translate.Target{}, file64, "input[0].content[0]"},
		{"a file by URL", "openai", translate.Target{}, fileAt, "input[0].content[0]"},
		{"an image that Ollama would have to fetch", "ollama", translate.Target{}, `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`, "input[0].content[0]"},
		{"a forced call of nothing", "groq", translate.Target{}, `"tool_choice":"required"`, "tool_choice"},
		{"a forced search", "openai", translate.Target{}, `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, "tool_choice"},
		{"domains of a search", "openrouter", translate.Target{}, `"tools":[{"type":"web_search","filters":{"allowed_domains":["a"]}}]`, "tools[0].filters"},
		{"an image of the system", "openai", translate.Target{}, `"input":[{"role":"system","content":[` + image + `]},{"role":"user","content":"hi"}]`, "input[0].content[0]"},
		{"an image of the assistant", "groq", translate.Target{}, `"input":[{"role":"assistant","content":[{"type":"output_text","text":"a"},` + image + `]}]`, "input[0].content[1]"},
		{"a hosted tool that must be used", "openai", translate.Target{}, `"tools":[{"type":"file_search"}],"tool_choice":{"type":"file_search"}`, "tool_choice"},
		{"state", "groq", translate.Target{}, `"previous_response_id":"resp_1"`, "previous_response_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugintest.Refuses(t, For(test.vendor), test.target, test.fields, test.param)
		})
	}
}

// TestCallID: whatever the client calls a call, the vendor gets an id that it
// takes, the same for a call and its output, and another for another call.
func TestCallID(t *testing.T) {
	ids := []string{"call_1", "call_2", strings.Repeat("c", 64), "aB3456789", "über"}
	for vendor, fits := range map[string]*regexp.Regexp{
		"mistral": regexp.MustCompile(`^[a-zA-Z0-9]{9}$`),
		"openai":  regexp.MustCompile(`^.{1,40}$`),
		"groq":    regexp.MustCompile(`^.+$`),
	} {
		seen := make(map[string]string)
		for _, id := range ids {
			_, body, _, err := prepare(t, For(vendor), translate.Target{}, `{"model":"m","input":[
				{"type":"function_call","call_id":"`+id+`","name":"f","arguments":"{}"},
				{"type":"function_call_output","call_id":"`+id+`","output":"ok"}]}`)
			if err != nil {
				t.Fatal(err)
			}
			sent, output := gjson.Get(body, "messages.0.tool_calls.0.id").Str, gjson.Get(body, "messages.1.tool_call_id").Str
			if other, ok := seen[sent]; ok || sent != output || !fits.MatchString(sent) || fits.MatchString(id) && sent != id {
				t.Errorf("%s: %s is sent as %s, its output's as %s (%s)", vendor, id, sent, output, other)
			}
			seen[sent] = id
		}
	}
}

// TestEffective: the response tells what held, in place of what was asked for.
func TestEffective(t *testing.T) {
	_, _, p, err := prepare(t, For("mistral"), twoLevels, `{"model":"m","input":"hi","temperature":1.8,"reasoning":{"effort":"low"},"text":{"verbosity":"low"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if p.Temperature == nil || *p.Temperature != 1.5 || p.Reasoning.Effort != "high" || p.Verbosity != "" {
		t.Errorf("got temperature %v, effort %s, verbosity %s", p.Temperature, p.Reasoning.Effort, p.Verbosity)
	}
	if len(p.Warnings) != 3 {
		t.Errorf("got warnings %q", p.Warnings)
	}
	_, _, p, err = prepare(t, For("openai"), thinker3, `{"model":"m","input":"hi","temperature":0.2,"top_p":1}`)
	if err != nil {
		t.Fatal(err)
	}
	if p.Temperature != nil || len(p.Warnings) != 1 {
		t.Errorf("got temperature %v, warnings %q", p.Temperature, p.Warnings)
	}
}

// TestStrict: what would be a warning is an error.
func TestStrict(t *testing.T) {
	for _, fields := range []string{`"reasoning":{"effort":"max"}`, `"temperature":0.2`, schema} {
		p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi",` + fields + `}`))
		if err != nil {
			t.Fatal(err)
		}
		p.Strict = true
		target := thinker3
		target.Model = "m"
		if _, err := For("deepseek").Prepare(t.Context(), p, target); err == nil {
			t.Errorf("%s: no error", fields)
		}
	}
}

func TestDocumentedValues(t *testing.T) {
	for i := range vendors {
		t.Run(vendors[i].name, func(t *testing.T) {
			plugintest.Documented(t, &Provider{&vendors[i]}, translate.Target{Model: "m"})
		})
	}
}
