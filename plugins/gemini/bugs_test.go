package gemini

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// Failures of other bridges, by their number in the list that conformance is
// held to. Others are fixtures by their number.

func TestBug08CallIDs(t *testing.T) {
	call := `{"functionCall":{"name":"f","args":{}}}`
	r := answer(t, `{"model":"m","input":"hi"}`, `{"candidates":[{"content":{"parts":[`+call+`,`+call+`]},"finishReason":"STOP"}]}`)
	ids := r.Get("output.#.call_id").Array()
	if len(ids) != 2 || ids[0].Str == "" || ids[0].Str == ids[1].Str {
		t.Errorf("calls without ids got %v", ids)
	}
	got := answer(t, `{"model":"m","input":"hi","stream":true}`, fixture(t, "bug14_parallel_calls.sse")).Get(`output.#(type=="function_call")#.call_id`).Raw
	if want := `["c1","c2","c3"]`; got != want {
		t.Errorf("got the call ids %s, want the provider's %s", got, want)
	}
}

func TestCalls(t *testing.T) {
	messages := func(body gjson.Result) (all []plugintest.Message) {
		for _, c := range body.Get("contents").Array() {
			all = append(all, plugintest.Message{
				Role: c.Get("role").Str, Calls: c.Get("parts.#.functionCall.id").Array(), Outputs: c.Get("parts.#.functionResponse.id").Array(),
			})
		}
		return all
	}
	plugintest.Calls(t, Provider{}, pro3, messages, true, nil)
}

func TestBug17ThoughtSignatures(t *testing.T) {
	fixtures := plugintest.Fixtures(t, "testdata")
	for _, name := range []string{"bug02_thoughts_call", "bug14_parallel_calls", "thoughts", "bug17_signature_first", "web_search", "search_and_call", "bug03_call_text_call"} {
		for _, stream := range []bool{true, false} {
			f := plugintest.Named(t, fixtures, name)
			f.Request = `{"model":"m","input":"hi","tools":[{"type":"web_search"}]}`
			got := f.Next(t, Provider{}, pro3, stream).Get("contents.1.parts").Array()
			var want []gjson.Result
			for _, part := range gjson.GetBytes(f.JSON, "candidates.0.content.parts").Array() {
				if !part.Get("thought").Bool() { // summaries are not for the model
					want = append(want, part)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s: got %v, want %v", name, got, want)
			}
			for i := range want {
				if !sameJSON(got[i].Raw, want[i].Raw) {
					t.Errorf("%s: part %d is %s, want %s", name, i, got[i].Raw, want[i].Raw)
				}
			}
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func TestBug17SignaturesLost(t *testing.T) {
	first := answer(t, `{"model":"m","input":"hi","stream":true}`, fixture(t, "bug14_parallel_calls.sse"))
	input := `{"role":"user","content":"hi"}`
	for _, call := range first.Get(`output.#(type=="function_call")#`).Array() {
		input += "," + call.Raw + `,{"type":"function_call_output","call_id":"` + call.Get("call_id").Str + `","output":"x"}`
	}
	_, body, _, err := prepare(t, Provider{}, pro3, withInput(`"input":[`+input+`]`), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range gjson.Get(body, `contents.#(role=="model")#`).Array() {
		if c.Get("parts.0.thoughtSignature").Str != unsigned {
			t.Errorf("the first call of a turn is unsigned: %s", c)
		}
	}
}

func TestBug19ForeignReasoning(t *testing.T) {
	for _, encrypted := range []string{"gAAAAABo", `{"type":"thinking","thinking":"x","signature":"y"}`, `[]`, `{}`, `{"parts":["x"]}`, `{"parts":[{}],"call":1}`} {
		_, body, p, err := prepare(t, Provider{}, pro3, withInput(`"input":[{"role":"user","content":"hi"},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":`+quote(encrypted)+`},
			{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "contents.1.parts").Raw; got != `[{"text":"4"}]` {
			t.Errorf("%q: got %s", encrypted, got)
		}
		if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "input[1]: ") {
			t.Errorf("%q: got the warnings %q", encrypted, p.Warnings)
		}
	}
}

func quote(s string) string { return string(gjson.AppendJSONString(nil, s)) }

func TestBug21Format(t *testing.T) {
	_, body, _, err := prepare(t, Provider{}, pro3, withInput(format), true)
	if err != nil || gjson.Get(body, "generationConfig.responseJsonSchema.properties.z.type").Str != "integer" {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestBug25FailuresInStream(t *testing.T) {
	p, err := translate.ParseRequest([]byte(`{"model":"m","input":"hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	a := translate.NewAssembler(p, new(strings.Builder), translate.Options{})
	body := `data: {"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}` + "\n\n"
	if err := (Provider{}).Decode(response(http.StatusOK, body), a); err != nil {
		t.Fatal(err)
	}
	if e := a.Failure(); e == nil || e.Status != http.StatusTooManyRequests || e.RetryAfter.Seconds() != 3 || a.Committed() {
		t.Errorf("got %+v, want a 429 before anything is told", e)
	}
}

func TestBug28AllowedTools(t *testing.T) {
	tools := `"tools":[` + function + `,` + other + `,{"type":"web_search"}],"tool_choice":{"type":"allowed_tools",`
	for choice, want := range map[string]string{
		`"mode":"required","tools":[{"type":"function","name":"g"}]}`:                   `{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}`,
		`"mode":"auto","tools":[{"type":"function","name":"g"}]}`:                       `{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["g"]}}`,
		`"mode":"auto","tools":[{"type":"web_search"}]}`:                                `{"functionCallingConfig":{"mode":"NONE"},"includeServerSideToolInvocations":true}`,
		`"mode":"auto","tools":[{"type":"web_search"},{"type":"function","name":"f"}]}`: `{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f"]},"includeServerSideToolInvocations":true}`,
	} {
		_, body, _, err := prepare(t, Provider{}, pro3, withInput(tools+choice), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.Get(body, "toolConfig").Raw; got != want {
			t.Errorf("%s: got %s, want %s", choice, got, want)
		}
		if searches := gjson.Get(body, "tools.#.googleSearch").Raw != "[]"; searches != strings.Contains(choice, "web_search") {
			t.Errorf("%s: got %s", choice, gjson.Get(body, "tools"))
		}
	}
}

func TestBug32ServiceTier(t *testing.T) {
	_, body, p, err := prepare(t, Provider{}, pro3, withInput(`"service_tier":"priority"`), true)
	if err != nil || gjson.Get(body, "serviceTier").Str != "priority" || p.ServiceTier != "priority" {
		t.Errorf("got %s, %v", body, err)
	}
	if got := answer(t, `{"model":"m","input":"hi","stream":true}`, fixture(t, "bug23_cached_usage.sse")).Get("service_tier").Str; got != "flex" {
		t.Errorf("got the tier %q", got)
	}
}
