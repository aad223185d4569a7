package bedrock

import (
	"bytes"
	"net/http"
	"regexp"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Failures of other bridges, by their number in the list that conformance is
// held to. Others are fixtures by their number.

// answer is the response to a request that the provider answers with body.
func answer(t *testing.T, request string, body []byte) gjson.Result {
	t.Helper()
	p, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	a := translate.NewAssembler(p, new(bytes.Buffer), translate.Options{})
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

func TestCalls(t *testing.T) {
	messages := func(body gjson.Result) (all []plugintest.Message) {
		for _, m := range body.Get("messages").Array() {
			all = append(all, plugintest.Message{
				Role: m.Get("role").Str, Calls: m.Get("content.#.toolUse.toolUseId").Array(), Outputs: m.Get("content.#.toolResult.toolUseId").Array(),
			})
		}
		return all
	}
	plugintest.Calls(t, new(Provider), claude45, messages, true, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString)
}

func TestBug18Signatures(t *testing.T) {
	for _, name := range []string{"bug02_reasoning_tools", "reasoning", "omitted_reasoning", "redacted_reasoning"} {
		f := plugintest.Named(t, fixtures(t), name)
		body := f.Next(t, new(Provider), claude45, true, `"tools":[{"type":"function","name":"weather"}],"reasoning":{"effort":"high"}`)
		got, want := body.Get("messages.1.content").Array(), gjson.GetBytes(f.JSON, "output.message.content").Array()
		if len(got) != len(want) {
			t.Fatalf("%s: got %v, want %v", name, got, want)
		}
		for i := range want {
			if got[i].Raw != want[i].Raw {
				t.Errorf("%s: block %d is %s, want %s", name, i, got[i].Raw, want[i].Raw)
			}
		}
		if body.Get("additionalModelRequestFields.thinking.type").Str != "enabled" {
			t.Errorf("%s: does not think: %s", name, body)
		}
	}
}

func TestBug19ForeignReasoning(t *testing.T) {
	for _, test := range []struct {
		target    translate.Target
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
	for _, target := range []translate.Target{claude48, opus55} {
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
