package anthropic

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestSignaturesComeBack(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	for _, name := range []string{"thinking_tools", "thinking", "omitted_thinking", "redacted_thinking"} {
		f := plugintest.Named(t, fixtures, name)
		body := f.Next(t, Provider{}, claude45, true, `"tools":[{"type":"function","name":"weather"}],"reasoning":{"effort":"high"}`)
		got, want := body.Get("messages.1.content").Array(), gjson.GetBytes(f.JSON, "content").Array()
		if len(got) != len(want) {
			t.Fatalf("%s: got %v, want %v", name, got, want)
		}
		for i := range want {
			if got[i].Raw != want[i].Raw {
				t.Errorf("%s: block %d is %s, want %s", name, i, got[i].Raw, want[i].Raw)
			}
		}
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
		_, body, p, err := prepare(t, claude5, plugintest.Request(`"input":[{"role":"user","content":"hi"},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":`+quote(encrypted)+`},
			{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "messages.1.content").Raw; got != `[{"type":"text","text":"4"}]` {
			t.Errorf("%q: got %s", encrypted, got)
		}
		if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "input[1]: ") {
			t.Errorf("%q: got the warnings %q", encrypted, p.Warnings)
		}
	}
}

func quote(s string) string { return string(gjson.AppendJSONString(nil, s)) }
