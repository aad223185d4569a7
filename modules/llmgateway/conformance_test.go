package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/bedrock"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/plugins/vertex"
)

// What other bridges between formats get wrong, as far as the gateway could. What
// a provider could get wrong is tested beside it.

// response is the object of an answer, streamed or not.
func response(t *testing.T, answer string) gjson.Result {
	t.Helper()
	if strings.HasPrefix(answer, "{") {
		return gjson.Parse(answer)
	}
	if _, err := plugintest.Check([]byte(answer)); err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	return gjson.Get(lastEventData(answer, "response.completed"), "response")
}

var modes = map[string]string{"object": `"stream":false`, "stream": `"stream":true`}

func TestNeitherModeDropsCalls(t *testing.T) {
	for mode, field := range modes {
		s := serve(t, map[string][]upstream{"one": {says("text Let me see.", `call c-1 {"a":1}`, `call c-2 {"a":2}`, "usage 3 5", "stop")}})
		_, body := s.post(`{"model":"one/m","input":"hi",` + field + `}`)
		r := response(t, body)
		for path, want := range map[string]string{
			"output.#.type":      `["message","function_call","function_call"]`,
			"output.#.call_id":   `["c-1","c-2"]`,
			"output.#.arguments": `["{\"a\":1}","{\"a\":2}"]`,
			"usage.total_tokens": `8`,
		} {
			if got := r.Get(path).Raw; got != want {
				t.Errorf("%s: %s is %s, want %s", mode, path, got, want)
			}
		}
	}
}

// What a provider signed is the same byte by byte when it comes back, with all
// the calls of its turn.
func TestSignaturesComeBack(t *testing.T) {
	const signature = `{"parts":[{"thoughtSignature":"c2lnbmVk+/=\u00e9"}],"x":"ä"}`
	for mode, field := range modes {
		answers, received := listener("think "+signature, `call c-1 {}`, `call c-2 {}`, "stop")
		s := serve(t, map[string][]upstream{"one": {answers}})
		_, body := s.post(`{"model":"one/m","input":"hi",` + field + `}`)
		received()
		resp, answer := s.post(goOn(t, "one/m", response(t, body).Raw, asItIs))
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %s", mode, answer)
		}
		if got, want := received(), "m "+signature+" tool tool"; got != want {
			t.Errorf("%s: the provider got %s, want %s", mode, got, want)
		}
	}
}

// What another provider encrypted passes as it is where it could be its own, and
// is left out with a warning where nobody could read it.
func TestReasoningOfAnotherProvider(t *testing.T) {
	const input = `[{"role":"user","content":"hi"}, {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA_x=="},{"role":"user","content":"?"}]`
	translated, received := listener("text hello", "stop")
	var passed string
	s := serve(t, map[string][]upstream{"one": {translated}, "raw": {func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		passed = string(body)
		says(`{"type":"response.completed","response":{"status":"completed","output":[]}}`)(w, r)
	}}})
	for _, body := range []string{
		`{"model":"raw/m", "input": ` + input + `, "seed": 1.0e+2}`,
		`{"model":"raw/m", "input": ` + input + `, "metadata":{"a":"item_reference","b":"weir1.0"}}`,
		`{"model":"raw/m", "input": "hi", "metadata":{"a":"item_reference","b":"weir1.0"}}`,
	} {
		if s.post(body); passed != body {
			t.Errorf("the native provider got %s, want %s", passed, body)
		}
	}
	resp, _ := s.post(`{"model":"one/m","input":` + input + `}`)
	if got := received(); got != "m" {
		t.Errorf("the provider got %s", got)
	}
	if w := resp.Header.Get("Service-Warnings"); !strings.HasPrefix(w, "input[1]") {
		t.Errorf("got the warning %q", w)
	}
}

// However a stream is framed and cut, the client and the record have what it
// said.
func TestFraming(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	events := "data: model m-1\n\ndata: text " + long + "\n\ndata: usage 3 5\n\ndata: stop\n\n"
	for name, framed := range map[string]string{
		"comments":        strings.ReplaceAll(events, "data: ", ": OPENROUTER PROCESSING\n\n: \ndata: "),
		"CRLF":            strings.ReplaceAll(events, "\n", "\r\n"),
		"CR":              strings.ReplaceAll(events, "\n", "\r"),
		"byte order mark": "\xef\xbb\xbf" + events,
		"no space":        strings.ReplaceAll(events, "data: ", "data:"),
		"no blank line":   strings.TrimRight(events, "\n"),
		"other fields":    strings.ReplaceAll(events, "data: ", "id: 7\nretry: 5\nevent: message\ndata: "),
	} {
		for _, size := range []int{1 << 10, len(framed)} {
			s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for rest := framed; rest != ""; {
					n := min(size, len(rest))
					_, _ = io.WriteString(w, rest[:n])
					_ = http.NewResponseController(w).Flush()
					rest = rest[n:]
				}
			}}})
			_, body := s.post(stream)
			if got := response(t, body).Get("output.0.content.0.text").Str; got != long {
				t.Errorf("%s: the client got %d bytes of text: %.100s", name, len(got), got)
			}
			if r := s.kept.all()[0]; r.Usage.Input.N != 3 || r.Usage.Output.N != 5 || r.ResponseModel != "m-1" {
				t.Errorf("%s: the record is %+v", name, r.Record)
			}
		}
	}
}

// The catalogue tells which models refuse to be sampled.
func TestSamplingIsLeftOut(t *testing.T) {
	providers := map[string]translate.Provider{"anthropic": anthropic.Provider{}, "bedrock": new(bedrock.Provider), "vertex": vertex.Provider{}}
	refusing := 0
	for m := range catalog.Default().Models() {
		provider := providers[m.Provider]
		if provider == nil || !strings.Contains(m.ID, "claude-") {
			continue
		}
		for _, name := range []string{"opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "haiku-5-5", "fable-5"} {
			if !strings.Contains(m.ID, "claude-"+name) {
				continue
			}
			refusing++
			at := translate.Target{Model: m.ID, Key: "secret", Capabilities: &m.Capabilities}
			body, p := plugintest.Send(t, provider, at, `{"model":"m","input":"hi","temperature":0.5,"top_p":0.5}`, false)
			if sent := body.Get("{temperature,top_p,inferenceConfig}").Raw; strings.Contains(sent, "0.5") || len(p.Warnings) != 2 {
				t.Errorf("%s/%s is sent %s, with the warnings %q", m.Provider, m.ID, sent, p.Warnings)
			}
			break
		}
	}
	if refusing == 0 {
		t.Error("the catalogue knows none of them")
	}
}

// Who names a response that is not kept here is told so, unless there is a single
// provider that could have kept it.
func TestPreviousResponse(t *testing.T) {
	native, received := listener(`{"type":"response.completed","response":{"id":"resp_2","status":"completed","output":[]}}`)
	s := serve(t, map[string][]upstream{"raw": {native}, "raw2": {native}, "one": {hello}})
	const fields = `"input":"go on","previous_response_id":"resp_1"`
	if resp, body := s.post(`{"model":"raw/m",`+fields+`}`, "Authorization", "Bearer both"); resp.StatusCode != http.StatusOK || !strings.Contains(received(), fields) {
		t.Errorf("a native provider: %d %s", resp.StatusCode, body)
	}
	for _, model := range []string{"one/m", "raws", "both"} {
		resp, body := s.post(`{"model":"` + model + `",` + fields + `}`)
		if resp.StatusCode != http.StatusBadRequest || gjson.Get(body, "error.param").Str != "previous_response_id" {
			t.Errorf("%s: %d %s", model, resp.StatusCode, body)
		}
	}
	if status, body := s.get("/v1/responses/resp_1"); status != http.StatusNotFound || !gjson.Get(body, "error.message").Exists() {
		t.Errorf("retrieving it: %d %s", status, body)
	}
}
