package transcript

import (
	"testing"

	"github.com/weirhq/weir/plugins"
)

func TestInputText(t *testing.T) {
	for _, c := range []struct {
		dialect plugins.Dialect
		request string
		want    string
	}{
		{plugins.Chat, `{"model":"m","messages":[{"role":"system","content":"be\nkind"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"u"}}]},{"role":"assistant","content":null,"tool_calls":[{"function":{"arguments":"no"}}]},{"role":"tool","content":"42"}]}`, "be\nkind\nhi\n42"},
		{plugins.Responses, `{"input":"hi","instructions":"be kind"}`, "be kind\nhi"},
		{plugins.Responses, `{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"reasoning","content":[{"type":"reasoning_text","text":"no"}]},{"type":"function_call","arguments":"no"},{"type":"function_call_output","output":"b"},{"type":"function_call_output","output":[{"type":"input_text","text":"c"}]}]}`, "a\nb\nc"},
		{plugins.Completions, `{"prompt":["a","b"]}`, "a\nb"},
		{plugins.Embeddings, `{"input":["a","b"]}`, "a\nb"},
		{plugins.Embeddings, `{"input":[1,2]}`, ""},
		{plugins.Messages, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"no"},{"type":"text","text":"a"},{"type":"tool_use","input":{"text":"no"}}]},{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"r"}]}]}],"system":[{"type":"text","text":"s"}]}`, "s\nq\na\nr"},
		{plugins.GenerateContent, `{"contents":[{"role":"user","parts":[{"text":"q"},{"text":"no","thought":true},{"inlineData":{"data":"AA"}}]}],"systemInstruction":{"parts":[{"text":"s"}]}}`, "s\nq"},
		{plugins.Converse, `{"messages":[{"role":"user","content":[{"text":"q"},{"toolResult":{"content":[{"text":"r"}]}}]}],"system":[{"text":"s"}]}`, "s\nq\nr"},
		{plugins.Invoke, `{"inputText":"q"}`, "q"},
		{plugins.Invoke, `{"messages":[{"role":"user","content":"q"}]}`, "q"},
		{plugins.CohereChat, `{"messages":[{"role":"user","content":"q"}]}`, "q"},
		{plugins.OllamaChat, `{"messages":[{"role":"user","content":"q","images":["AA"]}]}`, "q"},
		{plugins.OllamaGenerate, `{"prompt":"q","system":"s"}`, "s\nq"},
		{plugins.Unknown, `{"messages":[{"content":"q"}]}`, ""},
		{plugins.Chat, `{"messages":[{"content":"a"},{"content":"cu`, "a"},
		{plugins.Chat, `not JSON`, ""},
		{plugins.Chat, ``, ""},
	} {
		if got := formats[c.dialect].InputText([]byte(c.request)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.dialect, c.request, got, c.want)
		}
	}
}

func TestOutputText(t *testing.T) {
	for _, c := range []struct {
		dialect  plugins.Dialect
		response string
		want     string
	}{
		{plugins.Chat, `{"choices":[{"message":{"content":"a","reasoning":"no"}},{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"no"}]},{"type":"text","text":"b"}]}},{"message":{"content":null}}]}`, "a\nb"},
		{plugins.Completions, `{"choices":[{"text":"a"},{"text":"b"}]}`, "a\nb"},
		{plugins.Responses, `{"output":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"no"}]},{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]},{"type":"mcp_call","output":"no"}]}`, "a"},
		{plugins.Messages, `{"content":[{"type":"thinking","thinking":"no"},{"type":"text","text":"a"},{"type":"web_fetch_tool_result","content":[{"type":"text","text":"no"}]},{"type":"text","text":"b"}]}`, "a\nb"},
		{plugins.GenerateContent, `{"candidates":[{"content":{"parts":[{"text":"no","thought":true},{"text":"a"}]}}]}`, "a"},
		{plugins.Converse, `{"output":{"message":{"content":[{"reasoningContent":{"reasoningText":{"text":"no"}}},{"text":"a"},{"citationsContent":{"content":[{"text":"b"}]}}]}}}`, "a\nb"},
		{plugins.Invoke, `{"content":[{"type":"text","text":"a"}]}`, "a"},
		{plugins.Invoke, `{"results":[{"outputText":"a"}]}`, "a"},
		{plugins.Invoke, `{"generation":"a"}`, "a"},
		{plugins.CohereChat, `{"message":{"tool_plan":"no","content":[{"type":"text","text":"a"}]}}`, "a"},
		{plugins.OllamaChat, `{"message":{"content":"a","thinking":"no"}}`, "a"},
		{plugins.OllamaGenerate, `{"response":"a"}`, "a"},
		{plugins.Unknown, `{"response":"a"}`, ""},
		{plugins.Chat, `data: {"choices":[]}`, ""},
	} {
		if got := formats[c.dialect].OutputText([]byte(c.response)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.dialect, c.response, got, c.want)
		}
	}
}
