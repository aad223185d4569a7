package bedrock

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Failures of other bridges, by their number in the list that conformance is
// held to. Others are fixtures by their number.

// answer is the response to a request that the provider answers with body.
func answer(t *testing.T, request string, body []byte) gjson.Result {
	t.Helper()
	p, err := plugins.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	a := plugins.NewAssembler(p, new(bytes.Buffer), plugins.Options{})
	if err := new(Provider).Decode(response(http.StatusOK, body), a); err != nil {
		t.Fatal(err)
	}
	a.End()
	return gjson.ParseBytes(a.Response())
}

func TestBug08CallIDs(t *testing.T) {
	got := answer(t, `{"model":"m","input":"hi","stream":true}`, fixture(t, "bug04_tools_alone.events")).Get("output.#.call_id").Raw
	if want := `["tooluse_1","tooluse_2"]`; got != want {
		t.Errorf("got the call ids %s, want the provider's %s", got, want)
	}
	for _, id := range []string{"functions.f:0", "é", strings.Repeat("x", 65)} {
		_, body, _, err := prepare(t, claude45, withInput(`"tools":[`+function+`],"input":[{"role":"user","content":"hi"},
			{"type":"function_call","call_id":"`+id+`","name":"f","arguments":"{}"},
			{"type":"function_call","call_id":"`+id+`.","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"`+id+`.","output":"2"},
			{"type":"function_call_output","call_id":"`+id+`","output":"1"}]`), true)
		if err != nil {
			t.Fatal(err)
		}
		calls := gjson.Get(body, "messages.1.content.#.toolUse.toolUseId").Array()
		results := gjson.Get(body, "messages.2.content.#.toolResult.toolUseId").Array()
		if calls[0].Str == calls[1].Str || calls[0].Str != results[1].Str || calls[1].Str != results[0].Str {
			t.Errorf("%s: the calls are %v, the results of %v", id, calls, results)
		}
		for _, c := range calls {
			if len(c.Str) > 64 || strings.Trim(c.Str, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
				t.Errorf("%s: %q is no id to the provider", id, c.Str)
			}
		}
	}
}

func TestBug13Truncation(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn": "completed", "stop_sequence": "completed", "tool_use": "completed", "of_the_future": "completed",
		"max_tokens": "incomplete", "model_context_window_exceeded": "incomplete",
		"guardrail_intervened": "incomplete", "content_filtered": "incomplete",
	} {
		body := `{"output":{"message":{"role":"assistant","content":[{"text":"Once"}]}},"stopReason":"` + stop + `"}`
		r := answer(t, `{"model":"m","input":"hi"}`, []byte(body))
		if got := r.Get("status").Str; got != want || r.Get("output.0.status").Str != want {
			t.Errorf("%s: got %s", stop, r)
		}
	}
}

func TestBug14ParallelCalls(t *testing.T) {
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	out := func(id string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"x"}`
	}
	said := `{"role":"assistant","content":"a"}`
	for _, items := range [][]string{
		{call("1"), call("2"), out("1"), out("2")},
		{call("1"), out("1"), call("2"), out("2")},
		{call("1"), said, out("1")},
		{said, call("1"), call("2"), out("2"), out("1")},
	} {
		_, body, _, err := prepare(t, claude45, withInput(`"tools":[`+function+`],"input":[{"role":"user","content":"hi"},`+strings.Join(items, ",")+`]`), true)
		if err != nil {
			t.Fatal(err)
		}
		open, last := map[string]bool{}, ""
		for _, m := range gjson.Get(body, "messages").Array() {
			if m.Get("role").Str == last {
				t.Errorf("two messages of the %s in a row: %s", last, body)
			}
			last = m.Get("role").Str
			for _, b := range m.Get("content").Array() {
				if id := b.Get("toolUse.toolUseId").Str; id != "" {
					open[id] = true
				}
				if id := b.Get("toolResult.toolUseId").Str; id != "" {
					if !open[id] {
						t.Errorf("a result without its call: %s", body)
					}
					delete(open, id)
				}
			}
			if last == "user" && len(open) > 0 {
				t.Errorf("calls %v have no result: %s", open, body)
			}
		}
	}
}

func TestBug18Signatures(t *testing.T) {
	tool := `"tools":[{"type":"function","name":"weather"}]`
	for _, name := range []string{"bug02_reasoning_tools", "reasoning", "omitted_reasoning", "redacted_reasoning"} {
		first := answer(t, `{"model":"m","input":"hi","stream":true,`+tool+`}`, fixture(t, name+".events"))
		input := `{"role":"user","content":"hi"}`
		first.Get("output").ForEach(func(_, item gjson.Result) bool {
			input += "," + item.Raw
			return true
		})
		for _, id := range first.Get("output.#.call_id").Array() {
			input += `,{"type":"function_call_output","call_id":"` + id.Str + `","output":"x"}`
		}
		_, body, _, err := prepare(t, claude45, withInput(tool+`,"reasoning":{"effort":"high"},"input":[`+input+`]`), true)
		if err != nil {
			t.Fatal(err)
		}
		got, want := gjson.Get(body, "messages.1.content").Array(), gjson.GetBytes(fixture(t, name+".json"), "output.message.content").Array()
		if len(got) != len(want) {
			t.Fatalf("%s: got %v, want %v", name, got, want)
		}
		for i := range want {
			if got[i].Raw != want[i].Raw {
				t.Errorf("%s: block %d is %s, want %s", name, i, got[i].Raw, want[i].Raw)
			}
		}
		if gjson.Get(body, "additionalModelRequestFields.thinking.type").Str != "enabled" {
			t.Errorf("%s: does not think: %s", name, body)
		}
	}
}

func TestBug19ForeignReasoning(t *testing.T) {
	for _, test := range []struct {
		target    plugins.Target
		encrypted string
		warnings  int
	}{
		{claude45, "", 0},
		{claude45, "gAAAAABo", 1},
		{claude45, `{"reasoningText":{"text":"unsigned"}}`, 1},
		{claude45, `[]`, 1},
		{nova2, `{"reasoningText":{"text":"t","signature":"Claude's"}}`, 1},
	} {
		_, body, p, err := prepare(t, test.target, withInput(`"input":[{"role":"user","content":"hi"},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":`+
			string(gjson.AppendJSONString(nil, test.encrypted))+`},
			{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "messages.1.content").Raw; got != `[{"text":"4"}]` {
			t.Errorf("%q: got %s", test.encrypted, got)
		}
		if len(p.Warnings) != test.warnings {
			t.Errorf("%q: got the warnings %q", test.encrypted, p.Warnings)
		}
	}
}

func TestBug27Sampling(t *testing.T) {
	for _, target := range []plugins.Target{claude48, opus55} {
		_, body, p, err := prepare(t, target, withInput(`"temperature":0.5,"top_p":0.5`), false)
		if err != nil {
			t.Fatal(err)
		}
		if gjson.Get(body, "inferenceConfig").Exists() || len(p.Warnings) != 2 || p.Temperature != nil {
			t.Errorf("%s: got %s with the warnings %q", target.Model, body, p.Warnings)
		}
		if _, _, _, err := prepare(t, target, withInput(`"temperature":1,"top_p":1`), true); err != nil {
			t.Errorf("%s: the defaults ask for nothing: %v", target.Model, err)
		}
	}
}

func TestBug28AllowedTools(t *testing.T) {
	_, body, _, err := prepare(t, claude45, withInput(`"tools":[`+function+`,`+other+`],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}`), true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := gjson.Get(body, "toolConfig.tools.#.toolSpec.name").Raw, `["g"]`; got != want {
		t.Errorf("got the tools %s, want %s", got, want)
	}
	if got, want := gjson.Get(body, "toolConfig.toolChoice").Raw, `{"any":{}}`; got != want {
		t.Errorf("got the choice %s, want %s", got, want)
	}
}
