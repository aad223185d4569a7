package anthropic

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Failures of other bridges, by their number in the list that conformance is
// held to. Others are fixtures by their number.

// answer is the response to a request that the provider answers with body.
func answer(t *testing.T, request, body string) gjson.Result {
	t.Helper()
	p, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	a := translate.NewAssembler(p, new(bytes.Buffer), translate.Options{})
	if err := (Provider{}).Decode(response(http.StatusOK, body), a); err != nil {
		t.Fatal(err)
	}
	a.End()
	return gjson.ParseBytes(a.Response())
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBug08CallIDs(t *testing.T) {
	got := answer(t, `{"model":"m","input":"hi","stream":true}`, fixture(t, "bug04_tools_alone.sse")).Get("output.#.call_id").Raw
	if want := `["toolu_1","toolu_2"]`; got != want {
		t.Errorf("got the call ids %s, want the provider's %s", got, want)
	}
}

func TestBug13Truncation(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn": "completed", "pause_turn": "completed", "stop_sequence": "completed", "of_the_future": "completed",
		"max_tokens": "incomplete", "model_context_window_exceeded": "incomplete", "compaction": "incomplete", "refusal": "incomplete",
	} {
		body := `{"type":"message","content":[{"type":"text","text":"Once"}],"stop_reason":"` + stop + `"}`
		r := answer(t, `{"model":"m","input":"hi"}`, body)
		if got := r.Get("status").Str; got != want || r.Get("output.0.status").Str != want {
			t.Errorf("%s: got %s", stop, r)
		}
	}
}

func TestCalls(t *testing.T) {
	messages := func(body gjson.Result) (all []plugintest.Message) {
		for _, m := range body.Get("messages").Array() {
			all = append(all, plugintest.Message{
				Role: m.Get("role").Str, Calls: m.Get("content.#.id").Array(), Outputs: m.Get("content.#.tool_use_id").Array(),
			})
		}
		return all
	}
	plugintest.Calls(t, Provider{}, claude5, messages, true, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString)
}

func TestBug18Signatures(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	for _, name := range []string{"bug02_thinking_tools", "thinking", "omitted_thinking", "redacted_thinking"} {
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

func TestBug18CallsWithoutThoughts(t *testing.T) {
	fields := `"reasoning":{"effort":"high"},"input":[{"role":"user","content":"hi"},
		{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}]`
	_, body, p, err := prepare(t, claude45, withInput(fields), false)
	if err != nil || gjson.Get(body, "thinking").Exists() || len(p.Warnings) != 1 {
		t.Errorf("claude 4.5 refuses to think now: got %s, %v, %q", body, err, p.Warnings)
	}
	_, body, _, err = prepare(t, claude5, withInput(fields), true)
	if err != nil || gjson.Get(body, "thinking.type").Str != "adaptive" {
		t.Errorf("claude 5 does not mind: got %s, %v", body, err)
	}
	fields = `"reasoning":{"effort":"high"},"input":[{"role":"user","content":"hi"},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"c2ln\"}"},
		{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"},
		{"type":"function_call","call_id":"2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"x"}]`
	_, body, _, err = prepare(t, claude45, withInput(fields), true)
	if err != nil || gjson.Get(body, "thinking.type").Str != "enabled" {
		t.Errorf("it has thought before the first call: got %s, %v", body, err)
	}
}

func TestBug19ForeignReasoning(t *testing.T) {
	for _, encrypted := range []string{"", "gAAAAABo", `{"type":"thinking","thinking":"unsigned"}`, `{"type":"text","text":"x"}`, `[]`} {
		_, body, p, err := prepare(t, claude5, withInput(`"input":[{"role":"user","content":"hi"},
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

func TestBug21Format(t *testing.T) {
	_, body, _, err := prepare(t, claude5, withInput(format), false)
	if err != nil || gjson.Get(body, "output_config.format.schema.properties.a.type").Str != "integer" {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestBug27Sampling(t *testing.T) {
	for _, target := range []translate.Target{claude5, opus55, sonnet55} {
		_, body, p, err := prepare(t, target, withInput(`"temperature":0.5,"top_p":0.5`), false)
		if err != nil {
			t.Fatal(err)
		}
		if gjson.Get(body, "temperature").Exists() || gjson.Get(body, "top_p").Exists() || len(p.Warnings) != 2 || p.Temperature != nil {
			t.Errorf("%s: got %s with the warnings %q", target.Model, body, p.Warnings)
		}
		if _, _, _, err := prepare(t, target, withInput(`"temperature":1,"top_p":1`), true); err != nil {
			t.Errorf("%s: the defaults ask for nothing: %v", target.Model, err)
		}
	}
}

func TestBug28AllowedTools(t *testing.T) {
	fields := `"parallel_tool_calls":false,"tools":[` + function + `,` + other + `,{"type":"web_search"}],
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}`
	_, body, _, err := prepare(t, claude5, withInput(fields), true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := gjson.Get(body, "tools.#.name").Raw, `["g","web_search"]`; got != want {
		t.Errorf("got the tools %s, want %s", got, want)
	}
	if got, want := gjson.Get(body, "tool_choice").Raw, `{"type":"any","disable_parallel_tool_use":true}`; got != want {
		t.Errorf("got the choice %s, want %s", got, want)
	}
}
