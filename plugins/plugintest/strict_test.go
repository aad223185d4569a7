package plugintest

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// A strict provider refuses what the vendor refuses, for the reason that the vendor gives,
// and takes what differs in that alone.
func TestStrict(t *testing.T) {
	thinker := &plugins.Capabilities{Input: []string{"text"}, Reasoning: true, Efforts: []string{"low"}}
	plain := &plugins.Capabilities{Input: []string{"text"}, Temperature: true}
	const (
		call     = `{"role":"assistant","tool_calls":[{"id":"aB3456789","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		output   = `{"role":"tool","tool_call_id":"aB3456789","content":"x"}`
		user     = `{"role":"user","content":"hi"}`
		used     = `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}`
		useds    = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}`
		converse = `{"role":"user","content":[{"text":"hi"}]}`
		gemini   = `{"role":"user","parts":[{"text":"hi"}]}`
	)
	for _, test := range []struct {
		vendor, path   string
		model          *plugins.Capabilities
		taken, refused string
		why            string
	}{
		{"openai", "/v1/responses", nil, `{"input":[{"role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`, `{"input":[{"role":"assistant","content":[{"type":"input_text","text":"a"}]}]}`, "'output_text'"},
		{"openai", "/v1/responses", nil, `{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]}`, `{"input":[{"role":"user","content":[{"type":"output_text","text":"a"}]}]}`, "'output_text'"},
		{"openai", "/v1/responses", nil, `{"max_output_tokens":16}`, `{"max_output_tokens":15}`, "minimum"},
		{"openai", "/v1/responses", nil, `{}`, `{"stop":["a"]}`, "unknown"},
		{"openai", "/v1/responses", nil, `{"tools":[{"type":"web_search"}]}`, `{"tools":[{"type":"web_search","prompt_cache_breakpoint":{"mode":"explicit"}}]}`, "tools[0]"},
		{"openai", "/v1/responses", nil, `{"user":"u"}`, `{"user":"` + strings.Repeat("u", 65) + `"}`, "too long"},
		{"openai", "/v1/responses", thinker, `{"temperature":1}`, `{"temperature":0.5}`, "'temperature'"},
		{"openai", "/v1/responses", thinker, `{"reasoning":{"effort":"low"}}`, `{"reasoning":{"effort":"max"}}`, "'max'"},
		{"openai", "/v1/responses", plain, `{}`, `{"reasoning":{"effort":"low"}}`, "'reasoning.effort'"},
		{"openai", "/v1/responses", plain, `{}`, `{"include":["reasoning.encrypted_content"]}`, "encrypted"},
		{"openai", "/v1/responses", nil, `{"input":[{"type":"function_call","call_id":"1"},{"type":"function_call_output","call_id":"1"}]}`, `{"input":[{"type":"function_call_output","call_id":"1"}]}`, "no tool call"},
		{"openai", "/v1/responses", nil, `{}`, `{"input":[{"type":"function_call","call_id":"1"}]}`, "no tool output"},
		{"openai", "/v1/responses", nil, `{}`, `{"input":[{"type":"function_call","call_id":"` + strings.Repeat("x", 65) + `"}]}`, "too long"},
		{"azure", "/v1/chat/completions", plain, `{"stop":["a","b","c","d"]}`, `{"stop":["a","b","c","d","e"]}`, "too long"},
		{"xai", "/v1/chat/completions", thinker, `{"stop":[]}`, `{"stop":"a"}`, "'stop'"},
		{"gemini", ":generateContent", nil, `{"contents":[` + gemini + `],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"properties":{"const":{"enum":["a"]}}}}]}]}`, `{"contents":[` + gemini + `],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"properties":{"a":{"items":{"enum":["a",null]}}}}}]}]}`, "enum"},
		{"gemini", ":generateContent", nil, `{"contents":[` + gemini + `]}`, `{"contents":[` + gemini + `],"generationConfig":{"responseJsonSchema":{"anyOf":[{"properties":{"a":{"allOf":[]}}}]}}}`, "allOf"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"stop_sequences":["a"],"messages":[` + user + `]}`, `{"max_tokens":1,"stop_sequences":["\n"],"messages":[` + user + `]}`, "non-whitespace"},
		{"openai", "/v1/chat/completions", thinker, `{"max_completion_tokens":5}`, `{"max_tokens":5}`, "'max_tokens'"},
		{"openai", "/v1/chat/completions", nil, `{"messages":[` + user + `,` + call + `,` + output + `]}`, `{"messages":[` + user + `,` + call + `,` + user + `]}`, "no tool output"},
		{"openai", "/v1/chat/completions", nil, `{}`, `{"messages":[` + strings.ReplaceAll(call+`,`+output, "aB3456789", strings.Repeat("x", 41)) + `]}`, "too long"},
		{"cohere", "/v2/chat", nil, `{"messages":[` + user + `,` + call + `,` + output + `]}`, `{"messages":[` + user + `,` + call + `,` + user + `]}`, "no tool output"},
		{"groq", "/v1/chat/completions", nil, `{"tools":[{}],"tool_choice":"auto"}`, `{"tool_choice":"auto"}`, "'tool_choice'"},
		{"mistral", "/v1/chat/completions", nil, `{"messages":[` + user + `]}`, `{"messages":[` + user + `],"stream_options":{}}`, "extra inputs"},
		{"mistral", "/v1/chat/completions", nil, `{"messages":[` + user + `],"temperature":1.5}`, `{"messages":[` + user + `],"temperature":1.6}`, "less than"},
		{"mistral", "/v1/chat/completions", nil, `{"messages":[` + user + `,` + call + `,` + output + `]}`, `{"messages":[` + user + `,` + call + `,` + output + `,` + user + `]}`, "after role 'tool'"},
		{"mistral", "/v1/chat/completions", nil, `{"messages":[{"role":"assistant","content":"a","prefix":true}]}`, `{"messages":[{"role":"assistant","content":"a"}]}`, "last role"},
		{"mistral", "/v1/chat/completions", nil, `{"messages":[` + call + `,` + output + `]}`, `{"messages":[` + strings.ReplaceAll(call+`,`+output, "aB3456789", "1") + `]}`, "length of 9"},
		{"ollama", "/v1/chat/completions", nil, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}`, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}]}`, "image"},
		{"vllm", "/v1/chat/completions", nil, `{"messages":[{"role":"system","content":"s"},` + user + `]}`, `{"messages":[` + user + `,{"role":"system","content":"s"}]}`, "beginning"},
		{"vllm", "/v1/chat/completions", nil, `{"messages":[` + user + `]}`, `{"messages":[` + user + `,` + user + `]}`, "alternate"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"messages":[` + user + `]}`, `{"messages":[` + user + `]}`, "max_tokens"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1025,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + user + `]}`, `{"max_tokens":1024,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + user + `]}`, "greater"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"temperature":1,"messages":[` + user + `]}`, `{"max_tokens":1,"temperature":1.1,"messages":[` + user + `]}`, "range"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"thinking":{"type":"adaptive"},"messages":[` + user + `]}`, `{"max_tokens":1,"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"},"tools":[{"name":"f"}],"messages":[` + user + `]}`, "forces"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"tools":[{"name":"f"}],"messages":[` + user + `]}`, `{"max_tokens":1,"tools":[{"name":"f.g"}],"messages":[` + user + `]}`, "pattern"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"messages":[` + user + `,` + used + `,` + useds + `]}`, `{"max_tokens":1,"messages":[` + user + `,` + used + `,` + user + `]}`, "no tool output"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"messages":[` + user + `]}`, `{"max_tokens":1,"messages":[` + used + `,` + useds + `]}`, "first message"},
		{"anthropic", "/v1/messages", nil, `{"max_tokens":1,"messages":[` + user + `]}`, `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":" "}]}]}`, "non-whitespace"},
		{"bedrock", "/model/m/converse", nil, `{"messages":[` + converse + `]}`, `{"messages":[` + converse + `,` + converse + `]}`, "alternate"},
		{"bedrock", "/model/amazon.nova-2-lite-v1:0/converse", nil, `{"toolConfig":{"tools":[{"toolSpec":{"name":"f"}}]},"messages":[` + converse + `]}`,
			`{"toolConfig":{"tools":[{"toolSpec":{"name":"f"}},{"cachePoint":{"type":"default"}}]},"messages":[` + converse + `]}`, "extraneous key [cachePoint]"},
		{"gemini", "/v1beta/models/m:generateContent", nil, `{"contents":[` + gemini + `]}`, `{}`, "contents"},
		{"gemini", "/v1beta/models/m:streamGenerateContent", nil, `{"contents":[` + gemini + `]}`, `{"contents":[{"role":"user","parts":[{"functionResponse":{}}]}]}`, "function response"},
	} {
		s := Strict{test.vendor, test.model}
		if err := s.Refusal(test.path, []byte(test.taken)); err != nil {
			t.Errorf("%s refuses %s: %v", test.vendor, test.taken, err)
		}
		if err := s.Refusal(test.path, []byte(test.refused)); err == nil || !strings.Contains(err.Error(), test.why) {
			t.Errorf("%s: got error %v for %s, want one about %s", test.vendor, err, test.refused, test.why)
		}
	}
}
