package anthropic

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestSignaturesComeBack(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	for _, name := range []string{"thinking_tools", "thinking", "omitted_thinking", "redacted_thinking"} {
		body := plugintest.Named(t, fixtures, name).ComesBack(t, Provider{}, claude45, "content", "messages.1.content")
		if body.Get("thinking.type").Str != "enabled" {
			t.Errorf("%s: does not think: %s", name, body)
		}
	}
}

func TestCallsWithoutThoughtsDisableThinking(t *testing.T) {
	fields := `"reasoning":{"effort":"high"},"input":[{"role":"user","content":"hi"},
		{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}]`
	_, body, p, err := prepare(t, claude45, plugintest.Request(fields), false)
	if err != nil || gjson.Get(body, "thinking").Exists() || len(p.Warnings) != 1 {
		t.Errorf("claude 4.5 refuses to think now: got %s, %v, %q", body, err, p.Warnings)
	}
	_, body, _, err = prepare(t, claude5, plugintest.Request(fields), true)
	if err != nil || gjson.Get(body, "thinking.type").Str != "adaptive" {
		t.Errorf("claude 5 does not mind: got %s, %v", body, err)
	}
	fields = `"reasoning":{"effort":"high"},"input":[{"role":"user","content":"hi"},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"c2ln\"}"},
		{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"},
		{"type":"function_call","call_id":"2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"x"}]`
	_, body, _, err = prepare(t, claude45, plugintest.Request(fields), true)
	if err != nil || gjson.Get(body, "thinking.type").Str != "enabled" {
		t.Errorf("it has thought before the first call: got %s, %v", body, err)
	}
}

func TestForeignReasoningIsLeftOut(t *testing.T) {
	for _, encrypted := range []string{"", "gAAAAABo", `{"type":"thinking","thinking":"unsigned"}`, `{"type":"text","text":"x"}`, `[]`} {
		plugintest.Maps(t, Provider{}, claude5, plugintest.AfterReasoning(encrypted),
			"messages.1.content", `[{"type":"text","text":"4"}]`, "input[1]")
	}
}
