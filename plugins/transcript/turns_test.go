package transcript

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// TestTurns: the same conversation is the same turns in every dialect.
func TestTurns(t *testing.T) {
	call := []Call{{ID: "c1", Name: "look", Arguments: `{"x":1}`}}
	nameless := []Call{{Name: "look", Arguments: `{"x":1}`}}
	for _, c := range []struct {
		dialect           plugins.Dialect
		request, response string
		calls             []Call
		finish            string
	}{
		{
			plugins.Chat,
			`{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hello"}]}]}`,
			`{"choices":[{"message":{"role":"assistant","content":"Hi!","tool_calls":[{"id":"c1","function":{"name":"look","arguments":"{\"x\":1}"}}]},"finish_reason":"stop"}]}`,
			call, "stop",
		},
		{
			plugins.Responses,
			`{"instructions":"Be brief.","input":"Hello"}`,
			`{"status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi!"}]},{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"x\":1}"}]}`,
			call, "completed",
		},
		{
			plugins.Messages,
			`{"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":"Hello"}]}`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Hi!"},{"type":"tool_use","id":"c1","name":"look","input":{"x":1}}],"stop_reason":"tool_use"}`,
			call, "tool_use",
		},
		{
			plugins.GenerateContent,
			`{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`,
			`{"candidates":[{"content":{"role":"assistant","parts":[{"text":"Hi!"},{"functionCall":{"name":"look","args":{"x":1}}}]},"finishReason":"STOP"}]}`,
			nameless, "STOP",
		},
		{
			plugins.Converse,
			`{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`,
			`{"output":{"message":{"role":"assistant","content":[{"text":"Hi!"},{"toolUse":{"toolUseId":"c1","name":"look","input":{"x":1}}}]}},"stopReason":"tool_use"}`,
			call, "tool_use",
		},
		{
			plugins.OllamaChat,
			`{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]}`,
			`{"message":{"role":"assistant","content":"Hi!","tool_calls":[{"function":{"name":"look","arguments":{"x":1}}}]},"done_reason":"stop"}`,
			nameless, "stop",
		},
		{
			plugins.Interactions,
			`{"system_instruction":"Be brief.","input":[{"type":"user_input","content":[{"type":"text","text":"Hello"}]}]}`,
			`{"status":"requires_action","steps":[{"type":"model_output","content":[{"type":"text","text":"Hi!"}]},{"type":"function_call","id":"c1","name":"look","arguments":{"x":1}}]}`,
			call, "requires_action",
		},
		{
			plugins.Runs,
			`{"instructions":"Be brief.","additional_messages":[{"role":"user","content":"Hello"}]}`,
			`{"status":"requires_action","messages":[{"role":"assistant","content":[{"type":"text","text":{"value":"Hi!"}}]}],"steps":[{"step_details":{"tool_calls":[{"id":"c1","function":{"name":"look","arguments":"{\"x\":1}"}}]}}]}`,
			call, "requires_action",
		},
		{
			plugins.OllamaGenerate,
			`{"system":"Be brief.","prompt":"Hello"}`,
			`{"response":"Hi!","done_reason":"stop"}`,
			nil, "stop",
		},
	} {
		t.Run(string(c.dialect), func(t *testing.T) {
			want := []Turn{{Role: "system", Texts: []string{"Be brief."}}, {Role: "user", Texts: []string{"Hello"}}}
			if got := formats[c.dialect].Request([]byte(c.request)); !reflect.DeepEqual(got, want) {
				t.Errorf("input %+v", got)
			}
			want = []Turn{{Role: "assistant", Texts: []string{"Hi!"}, Calls: c.calls, Finish: c.finish}}
			if got := formats[c.dialect].Response([]byte(c.response)); !reflect.DeepEqual(got, want) {
				t.Errorf("output %+v", got)
			}
		})
	}
}

func TestNoTurns(t *testing.T) {
	for _, text := range []string{"", "{", `{"messages":`, `"text"`, "[]", `{"messages":7,"choices":7}`, strings.Repeat("[", 1<<20)} {
		if in, out := formats[plugins.Chat].Request([]byte(text)), formats[plugins.Chat].Response([]byte(text)); in != nil || out != nil {
			t.Errorf("%.20s: %v %v", text, in, out)
		}
	}
}
