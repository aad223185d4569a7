package echo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// server answers requests over HTTP.
func server() http.HandlerFunc {
	h := new(Handler)
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		h.Answer(w, r, body)
	}
}

// post sends body to a handler and returns what it answered.
func post(t *testing.T, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	server().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w
}

func TestErrors(t *testing.T) {
	user := `"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		param                    string
	}{
		{"no JSON", "POST", "/v1/chat/completions", `{"messages":`, 400, ""},
		{"no object", "POST", "/v1/responses", `[]`, 400, ""},
		{"empty", "POST", "/v1/messages", ``, 400, ""},
		{"no messages", "POST", "/v1/chat/completions", `{}`, 400, "messages"},
		{"no messages", "POST", "/v1/messages", `{"messages":"hi"}`, 400, "messages"},
		{"no input", "POST", "/v1/responses", `{}`, 400, "input"},
		{"no input", "POST", "/v1/embeddings", `{}`, 400, "input"},
		{"input of objects", "POST", "/v1/embeddings", `{"input":[{}]}`, 400, "input"},
		{"too many dimensions", "POST", "/v1/embeddings", `{"input":"a","dimensions":1e9}`, 400, "dimensions"},
		{"limit of zero", "POST", "/v1/chat/completions", `{"max_tokens":0,` + user + `}`, 400, "max_tokens"},
		{"limit in words", "POST", "/v1/responses", `{"input":"hi","max_output_tokens":"few"}`, 400, "max_output_tokens"},
		{"limit below zero", "POST", "/v1/messages", `{"max_tokens":-1,` + user + `}`, 400, "max_tokens"},
		{"choice of nothing", "POST", "/v1/chat/completions", `{"tool_choice":"required",` + user + `}`, 400, "tool_choice"},
		{"choice of a stranger", "POST", "/v1/messages", `{"tool_choice":{"type":"tool","name":"x"},` + user + `}`, 400, "tool_choice"},
		{"unknown path", "POST", "/v1/audio", `{}`, 404, ""},
		{"unknown path before bad body", "POST", "/v1/audio", `{`, 404, ""},
		{"wrong method", "GET", "/v1/chat/completions", ``, 405, ""},
		{"wrong method", "GET", "/v1/messages", ``, 405, ""},
		{"wrong method", "POST", "/v1/models", `{}`, 405, ""},
	} {
		t.Run(tt.path+" "+tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			server().ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body)))
			body := gjson.Parse(w.Body.String())
			if w.Code != tt.status {
				t.Fatalf("status %d, want %d: %s", w.Code, tt.status, body.Raw)
			}
			if body.Get("error.message").String() == "" || body.Get("error.type").String() == "" {
				t.Errorf("no message or type in %s", body.Raw)
			}
			if strings.HasSuffix(tt.path, "/messages") {
				if body.Get("type").String() != "error" {
					t.Errorf("not Anthropic's format: %s", body.Raw)
				}
			} else if !body.Get("error.code").Exists() || body.Get("error.param").String() != tt.param {
				t.Errorf("want param %q: %s", tt.param, body.Raw)
			}
			if allow := w.Header().Get("Allow"); (allow != "") != (tt.status == 405) {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
}

func TestErrorsAreAnthropicsForItsClients(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/v1/messages/count_tokens", strings.NewReader(`{}`))
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	server().ServeHTTP(w, r)
	if got := gjson.Get(w.Body.String(), "error.type").String(); w.Code != 404 || got != "not_found_error" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestRequests(t *testing.T) {
	for _, tt := range []struct{ name, path, body, at, want string }{
		{"the model asked for", "/v1/chat/completions", `{"model":"gpt","messages":[{"role":"user","content":""}]}`, "model", "gpt"},
		{"the default model", "/v1/responses", `{"input":[]}`, "model", DefaultModel},
		{"the last user message", "/v1/chat/completions",
			`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"x"},{"role":"user","content":"two"}]}`,
			"choices.0.message.content", "You said: two"},
		{"all input", "/v1/chat/completions",
			`{"messages":[{"role":"system","content":"1234"},{"role":"user","content":"1234"},
			{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"1234"}}]},{"role":"tool","tool_call_id":"c","content":"1234"}]}`,
			"usage.prompt_tokens", "4"},
		{"parts", "/v1/chat/completions",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"b"}]}]}`,
			"choices.0.message.content", "You said: ab (with 1 image)"},
		{"the allowed tool", "/v1/chat/completions",
			`{"messages":[{"role":"user","content":""}],"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}],
			"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"b"}}]}}}`,
			"choices.0.message.tool_calls.0.function.name", "b"},
		{"no tool", "/v1/chat/completions",
			`{"messages":[{"role":"user","content":"a()"}],"tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":"none"}`,
			"choices.0.message.content", "You said: a()"},
		{"no reasoning", "/v1/chat/completions", `{"messages":[{"role":"user","content":""}],"reasoning_effort":"none"}`, "usage.completion_tokens_details.reasoning_tokens", "0"},
		{"instructions", "/v1/responses", `{"instructions":"12345678","input":"1234"}`, "usage.input_tokens", "3"},
		{"a message without a type", "/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image"}]}]}`,
			"output.0.content.0.text", "You said: hi (with 1 image)"},
		{"the named tool", "/v1/responses", `{"input":"","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}],"tool_choice":{"type":"function","name":"b"}}`,
			"output.0.name", "b"},
		{"the last call's result", "/v1/responses", `{"input":[{"role":"user","content":"a()"},{"type":"function_call","name":"a"},
			{"type":"function_call_output","output":"one"},{"type":"function_call","name":"a"},{"type":"function_call_output","output":[{"type":"input_text","text":"two"}]}]}`,
			"output.0.content.0.text", "The tool returned: two"},
		{"sealed reasoning", "/v1/responses", `{"input":"","reasoning":{"effort":"low"},"include":["reasoning.encrypted_content"]}`,
			"output.0.encrypted_content", seal(thought)},
		{"what was sent", "/v1/responses", `{"input":"","metadata":{"a":"b"}}`, "metadata.a", "b"},
		{"a tool's missing keys", "/v1/responses", `{"input":"","tools":[{"type":"function","name":"a"}]}`, "tools.0",
			`{"type":"function","name":"a","description":null,"parameters":null,"strict":null}`},
		{"the tool's result", "/v1/messages", `{"messages":[{"role":"user","content":"a()"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"a","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"sun"}]}]}]}`, "content.0.text", "The tool returned: sun"},
		{"text after a tool's result", "/v1/messages", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"a","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"sun"},{"type":"text","text":"so?"}]}]}`,
			"content.0.text", "You said: so?"},
		{"any tool", "/v1/messages", `{"messages":[{"role":"user","content":""}],"tools":[{"name":"a","input_schema":{}}],"tool_choice":{"type":"any"}}`, "content.0.name", "a"},
		{"input tokens", "/v1/messages", `{"system":"1234","messages":[{"role":"user","content":"12345"}]}`, "usage.input_tokens", "3"},
		{"output tokens", "/v1/messages", `{"messages":[{"role":"user","content":"hi"}]}`, "usage.output_tokens", "3"},
		{"one call", "/v1/chat/completions", `{"parallel_tool_calls":false,"messages":[{"role":"user","content":"a() b()"}],
			"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}]}`, "choices.0.message.tool_calls.#", "1"},
		{"one call", "/v1/responses", `{"parallel_tool_calls":false,"input":"a() b()","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}]}`,
			"output.#", "1"},
		{"one call", "/v1/messages", `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"messages":[{"role":"user","content":"a() b()"}],
			"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}]}`, "content.#", "1"},
		{"tokens", "/v1/embeddings", `{"input":[1,2,3]}`, "usage.total_tokens", "3"},
		{"several lists of tokens", "/v1/embeddings", `{"input":[[1,2,3],[4]]}`, "data.#", "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := post(t, tt.path, tt.body)
			if got := gjson.Get(w.Body.String(), tt.at).String(); got != tt.want {
				t.Errorf("%s is %q, want %q: %s", tt.at, got, tt.want, w.Body)
			}
		})
	}
}

func TestEmbeddingsAreUnitVectorsOfTheirInput(t *testing.T) {
	body := post(t, "/v1/embeddings", `{"input":["a","b","a"],"dimensions":5}`).Body.String()
	vectors := gjson.Get(body, "data.#.embedding").Array()
	if len(vectors) != 3 || vectors[0].Raw != vectors[2].Raw || vectors[0].Raw == vectors[1].Raw {
		t.Fatalf("got %s", body)
	}
	var square float64
	for _, v := range vectors[0].Array() {
		square += v.Num * v.Num
	}
	if n := len(vectors[0].Array()); n != 5 || math.Abs(square-1) > 1e-5 {
		t.Errorf("%d numbers of length %f", n, math.Sqrt(square))
	}
}

func TestEmbeddingsInBase64(t *testing.T) {
	if got, want := packed([]float32{1, -2}), "AACAPwAAAMA="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w := post(t, "/v1/embeddings", `{"input":"a","encoding_format":"base64"}`)
	if got, want := gjson.Get(w.Body.String(), "data.0.embedding").String(), packed(vector(`"a"`, defaultDimensions)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestModels(t *testing.T) {
	w := httptest.NewRecorder()
	server().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openai/v1/models", nil))
	if got := gjson.Get(w.Body.String(), "data.0.id").String(); got != DefaultModel {
		t.Errorf("got %s", w.Body)
	}
}

func TestIDsDiffer(t *testing.T) {
	h, seen := server(), map[string]bool{}
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/responses", strings.NewReader(`{"input":"same"}`)))
		seen[gjson.Get(w.Body.String(), "id").String()] = true
	}
	if len(seen) != 3 {
		t.Errorf("ids of three answers: %v", seen)
	}
}

// leaver is a client that goes away after some writes.
type leaver struct {
	*httptest.ResponseRecorder
	left, late int
	leave      func() error
}

func (l *leaver) Write(b []byte) (int, error) {
	if l.left == 0 {
		l.late++
	} else if l.left--; l.left > 0 {
		return len(b), nil
	}
	return 0, l.leave()
}

func TestStreamEndsWithItsClient(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	requests := map[string]string{
		"/v1/chat/completions": `{"stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`,
		"/v1/responses":        `{"stream":true,"input":"` + long + `"}`,
		"/v1/messages":         `{"stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`,
	}
	for path, body := range requests {
		for _, how := range []string{"its connection breaks", "its request is aborted"} {
			ctx, cancel := context.WithCancel(t.Context())
			leave := func() error { return errors.New("broken pipe") }
			if how == "its request is aborted" {
				leave = func() error { cancel(); return nil }
			}
			w := &leaver{ResponseRecorder: httptest.NewRecorder(), left: 5, leave: leave}
			server().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
			cancel()
			if w.left > 0 {
				t.Errorf("%s: the stream ended before the client left", path)
			}
			if w.late > 0 {
				t.Errorf("%s: %d writes after %s", path, w.late, how)
			}
		}
	}
}

func FuzzHandler(f *testing.F) {
	for _, s := range shapes {
		f.Add(uint8(0), []byte(s.chat))
		f.Add(uint8(1), []byte(s.responses))
		f.Add(uint8(2), []byte(s.messages))
	}
	f.Add(uint8(3), []byte(`{"input":["a",[1,2]],"dimensions":2}`))
	f.Add(uint8(1), []byte("{\"input\":\"\xff\",\"stream\":true,\"metadata\":{\"a\":\"\xff\"}}"))
	f.Add(uint8(1), []byte("{\"input\":\"\",\"user\":\"\xff\"}"))
	h := server()
	f.Fuzz(func(t *testing.T, n uint8, body []byte) {
		e := endpoints[int(n)%len(endpoints)]
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(e.method, "/v1"+e.suffix, bytes.NewReader(body)))
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			if len(events(t, w.Body.String())) < 3 {
				t.Errorf("a short stream: %q", w.Body)
			}
			return
		}
		if !json.Valid(w.Body.Bytes()) || !utf8.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %q", w.Body)
		}
	})
}

func TestTextMatchesTheSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n","s"]}`
	for _, tt := range []struct{ path, body, text string }{
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}}`, "choices.0.message.content"},
		{"/v1/responses", `{"input":"hi","text":{"format":{"type":"json_schema","name":"x","schema":` + schema + `}}}`, "output.0.content.0.text"},
		{"/v1/messages", `{"messages":[{"role":"user","content":"hi"}],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`, "content.0.text"},
	} {
		if got := gjson.Get(post(t, tt.path, tt.body).Body.String(), tt.text).Str; got != `{"n":1,"s":"text"}` {
			t.Errorf("%s: got %q", tt.path, got)
		}
	}
	object := post(t, "/v1/responses", `{"input":"hi","text":{"format":{"type":"json_object"}}}`).Body.String()
	if got := gjson.Get(object, "output.0.content.0.text").Str; got != "{}" {
		t.Errorf("an object without a schema: got %q", got)
	}
}
