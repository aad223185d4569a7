package llmgateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

// compact makes a compaction, and returns its object.
func (s *site) compact(body string, header ...string) gjson.Result {
	s.t.Helper()
	resp, answer := s.postTo("/v1/responses/compact", strings.NewReader(body), header...)
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	return gjson.Parse(answer)
}

// heard is an upstream that answers a response, and keeps what it was asked.
func heard(body *string) upstream {
	return func(w http.ResponseWriter, r *http.Request) {
		*body = readAndRestore(r)
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(`{"id":"resp_up","object":"response","status":"completed","model":"m","output":[{"id":"msg_up","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`))
	}
}

func TestACompactionStandsForTheConversation(t *testing.T) {
	var asked string
	s := serve(t, map[string][]upstream{
		"one": {says("usage 3 5", "text All agreed on Tuesday.", "stop")}, "raw": {heard(&asked)},
	})
	made := s.compact(`{"model":"one/m","instructions":"Be exact.","input":[{"role":"user","content":"We start on Tuesday."},
		{"role":"assistant","content":"On Tuesday, then."},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"c","output":"noted"}],"tools":[{"type":"function","name":"f"}]}`)
	if made.Get("object").Str != "response.compaction" || made.Get("usage.total_tokens").Int() != 8 || made.Get("created_at").Int() == 0 {
		t.Error(made.Raw)
	}
	if got := made.Get("output.#.type").Raw; got != `["message","compaction"]` {
		t.Errorf("the output is %s", got)
	}
	if got := made.Get("output.0.content.0").Raw; got != `{"type":"input_text","text":"We start on Tuesday."}` {
		t.Errorf("the user's message is %s", got)
	}
	if strings.Contains(made.Raw, "All agreed") {
		t.Error("the summary is not sealed")
	}
	r := s.kept.all()[0]
	if r.Dialect != plugins.Compaction || r.Usage.Input.N != 3 || !r.Cost.Valid || made.Get("id").Str != "resp_"+strings.ReplaceAll(r.ID.String(), "-", "") {
		t.Errorf("the record is %+v", r.Record)
	}
	if status, _ := s.get("/v1/responses/" + made.Get("id").Str); status != http.StatusNotFound {
		t.Errorf("a compaction is answered as a response: %d", status)
	}

	input := strings.TrimSuffix(made.Get("output").Raw, "]") + `,{"role":"user","content":"Go on."}]`
	resp, answer := s.post(`{"model":"raw/m","input":` + input + `}`)
	if resp.StatusCode != http.StatusOK {
		t.Fatal(answer)
	}
	if got := gjson.Get(asked, "input.1").Raw; !strings.Contains(got, `"role":"user"`) || !strings.Contains(got, "All agreed on Tuesday.") {
		t.Errorf("the provider is sent %s", asked)
	}
	resp, answer = s.post(`{"model":"raw/m","input":`+input+`}`, "Authorization", "Bearer acme")
	if resp.StatusCode != http.StatusBadRequest || gjson.Get(answer, "error.param").Str != "input[1].encrypted_content" {
		t.Errorf("another organisation: %d %s", resp.StatusCode, answer)
	}
	again := s.compact(`{"model":"one/m","input":` + input + `}`)
	if got := again.Get("output.#.content.0.text").Raw; got != `["We start on Tuesday.","Go on."]` {
		t.Errorf("a compaction of a compaction has %s", again.Raw)
	}
}

func TestACompactionThatAProviderMakesPasses(t *testing.T) {
	const answer = `{"id":"resp_up","object":"response.compaction","output":[{"id":"cmp_1","type":"compaction","encrypted_content":"gAAAA"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
	var path, asked string
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		path, asked = r.URL.Path, readAndRestore(r)
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(answer))
	}}})
	body := `{"model":"raw/m", "input":[{"type":"compaction","encrypted_content":"gAAAA"}]}`
	if got := s.compact(body).Raw; got != answer || path != "/responses/compact" || asked != body {
		t.Errorf("%s was sent %s and answered %s", path, asked, got)
	}
}

func TestACompactionWithoutASummaryFails(t *testing.T) {
	for name, events := range map[string][]string{
		"no text": {"stop"}, "a call alone": {"call c {}", "stop"}, "broken off": {"text All agr"},
	} {
		s := serve(t, map[string][]upstream{"one": {says(events...)}})
		s.handler.policy.Retries = 0
		resp, body := s.postTo("/v1/responses/compact", strings.NewReader(`{"model":"one/m","input":"a"}`))
		if resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

func TestAMalformedCompactionIsRefused(t *testing.T) {
	s := serve(t, nil)
	for body, param := range map[string]string{
		`{"input":"a"}`:                                "model",
		`{"model":"one/m"}`:                            "input",
		`{"model":"one/m","input":7}`:                  "input",
		`{"model":"one/m","input":"a","stream":true}`:  "stream",
		`{"model":"one/m","input":"a","tools":{}}`:     "tools",
		`{"model":"one/m","input":[]}`:                 "input",
		`[]`:                                           "",
		`{"model":"one/m","input":[{"type":"stone"}]}`: "input[0]",
		`{"model":"one/m","input":[{"type":"compaction","encrypted_content":"weir1.AAAA"}]}`: "input[0].encrypted_content",
		`{"model":"one/m","input":[{"type":"compaction","encrypted_content":"gAAAA"}]}`:      "input[0]",
	} {
		resp, answer := s.postTo("/v1/responses/compact", strings.NewReader(body))
		if resp.StatusCode != http.StatusBadRequest || gjson.Get(answer, "error.param").Str != param {
			t.Errorf("%s: %d %s", body, resp.StatusCode, answer)
		}
	}
}

// Codex asks for a compaction by an item at the end of an input.
func TestATriggerMakesTheAnswerACompaction(t *testing.T) {
	var asked string
	s := serve(t, map[string][]upstream{
		"one": {says("usage 3 5", "text All agreed on Tuesday.", "stop")}, "raw": {heard(&asked)},
	})
	body := `{"model":"one/m","stream":true,"input":[{"role":"user","content":"We start on Tuesday."},{"type":"compaction_trigger"}]}`
	resp, events := s.post(body)
	result, err := plugintest.Check([]byte(events))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v\n%s", err, events)
	}
	response := gjson.ParseBytes(result.Response)
	if response.Get("output.#.type").Raw != `["compaction"]` || response.Get("usage.total_tokens").Int() != 8 {
		t.Errorf("the response is %s", response.Raw)
	}
	if r := s.kept.all()[0]; !r.Stream || r.Dialect != plugins.Responses || r.Usage.Output.N != 5 {
		t.Errorf("the record is %+v", r.Record)
	}
	if _, answer := s.post(`{"model":"raw/m","previous_response_id":"` + response.Get("id").Str + `","input":"Go on."}`); gjson.Get(answer, "status").Str != "completed" {
		t.Fatal(answer)
	}
	if got := gjson.Get(asked, "input"); got.Get("#").Int() != 2 || !strings.Contains(got.Get("0").Raw, "All agreed on Tuesday.") {
		t.Errorf("the provider is sent %s", asked)
	}
	if resp, answer := s.post(strings.Replace(body, `"stream":true`, `"stream":false`, 1)); resp.StatusCode != http.StatusOK || gjson.Get(answer, "output.0.type").Str != "compaction" {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
}
