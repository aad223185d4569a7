package llmgateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// asks are calls of a model in each dialect that passes as it is.
var asks = map[string]string{
	"/v1/chat/completions": `{"model":%q,"messages":[{"role":"user","content":"hi"}],"stream":%s,"stream_options":{"include_usage":true}}`,
	"/v1/messages":         `{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":%s}`,
	"/v1/embeddings":       `{"model":%q,"input":"hi","ignored":%s}`,
}

// The client gets the bytes of the first provider that speaks its dialect and
// answers, and each attempt has its record.
func TestDialectsPass(t *testing.T) {
	for path, form := range asks {
		for _, mode := range []string{"false", "true"} {
			t.Run(path+", stream "+mode, func(t *testing.T) {
				var answered *httptest.ResponseRecorder
				s := serve(t, map[string][]upstream{"raw": {status(503)}, "raw2": {func(w http.ResponseWriter, r *http.Request) {
					answered = httptest.NewRecorder()
					speaksResponses(answered, r)
					w.Header().Set("Content-Type", answered.Header().Get("Content-Type"))
					_, _ = w.Write(answered.Body.Bytes())
				}}})
				models := "raws"
				if path == "/v1/embeddings" { // which are not translated
					models = "one/m,raws"
				}
				ask := fmt.Sprintf(form, models, mode)
				resp, body := s.postTo(path, strings.NewReader(ask))
				if resp.StatusCode != 200 || body != answered.Body.String() {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				records := s.kept.all()
				if len(records) != 3 {
					t.Fatalf("%d records", len(records))
				}
				if r := records[0]; r.Status.N != 503 || r.AttemptOf.String() != resp.Header.Get("Service-Id") {
					t.Errorf("the record of the first attempt is %+v", r.Record)
				}
				r := records[2]
				if r.ID.String() != resp.Header.Get("Service-Id") || r.Dialect != byPath[path].methods["POST"].dialect || r.EndState != storage.Complete ||
					!r.Usage.Input.Valid || r.request != ask || r.response != body || r.Stream == strings.HasPrefix(body, "{") {
					t.Errorf("the record is %+v", r)
				}
			})
		}
	}
}

func TestDialectErrors(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		header     []string
		status     int
		kind       string // "error.type"
	}{
		"chat: no key":             {"/v1/chat/completions", "", []string{"Authorization", ""}, 401, "invalid_request_error"},
		"chat: key of Anthropic's": {"/v1/chat/completions", "", []string{"Authorization", "", "X-Api-Key", "k"}, 401, "invalid_request_error"},
		"chat: no JSON":            {"/v1/chat/completions", `{`, nil, 400, "invalid_request_error"},
		"chat: no model":           {"/v1/chat/completions", `{}`, nil, 400, "invalid_request_error"},
		"chat: translated alone":   {"/v1/chat/completions", `{"model":"one/m"}`, nil, 400, "invalid_request_error"},
		"chat: the provider's":     {"/v1/chat/completions", `{"model":"raw/m"}`, nil, 422, "invalid_request_error"},
		"chat: then untried":       {"/v1/chat/completions", `{"model":"raw2/m,one/m"}`, nil, 500, "server_error"},
		"messages: no key":         {"/v1/messages", "", []string{"Authorization", ""}, 401, "authentication_error"},
		"messages: narrow key":     {"/v1/messages", "", []string{"Authorization", "", "X-Api-Key", "narrow"}, 403, "permission_error"},
		"messages: unknown model":  {"/v1/messages", `{"model":"mystery"}`, nil, 404, "not_found_error"},
		"messages: the provider's": {"/v1/messages", `{"model":"raw/m"}`, nil, 422, "invalid_request_error"},
		"messages: all fail":       {"/v1/messages", `{"model":"raw2/m"}`, nil, 500, "api_error"},
		"embeddings: no provider":  {"/v1/embeddings", `{"model":"one/m"}`, nil, 400, "invalid_request_error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {status(422)}, "raw2": {status(500)}})
			resp, body := s.postTo(c.path, strings.NewReader(c.body), c.header...)
			if resp.StatusCode != c.status || gjson.Get(body, "error.type").Str != c.kind || gjson.Get(body, "error.message").Str == "" ||
				(gjson.Get(body, "type").Str == "error") != (c.path == "/v1/messages") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			for _, r := range s.kept.all() {
				if r.AttemptOf.String() == resp.Header.Get("Service-Id") {
					continue
				}
				if r.Status.N != int64(c.status) {
					t.Errorf("the record has status %d", r.Status.N)
				}
			}
		})
	}
}

// What Anthropic's clients say in headers reaches the provider, and their key
// does not.
func TestMessagesHeaders(t *testing.T) {
	var got http.Header
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Request-Id", "req_1")
		speaksResponses(w, r)
	}}})
	resp, body := s.postTo("/v1/messages", strings.NewReader(fmt.Sprintf(asks["/v1/messages"], "raw/m", "false")),
		"Authorization", "", "X-Api-Key", "k", "Anthropic-Beta", "files", "Anthropic-Version", "2023-06-01")
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if got.Get("Anthropic-Beta") != "files" || got.Get("Anthropic-Version") != "2023-06-01" || got.Get("X-Api-Key") != "" {
		t.Errorf("the provider got %v", got)
	}
	if resp.Header.Get("Request-Id") == "" {
		t.Error("the client does not get the provider's id of the request")
	}
}

// A stream that breaks off ends with an error of its dialect; one that only
// lacks its last word is whole.
func TestDialectEnds(t *testing.T) {
	const (
		piece   = `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hel"},"finish_reason":null}]}`
		stop    = `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		message = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}`
		ended   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`
	)
	for name, c := range map[string]struct {
		path   string
		events []string
		end    storage.EndState
		says   string // at the end of the stream
	}{
		"chat":                     {"/v1/chat/completions", []string{piece}, storage.UpstreamAborted, `"code":"server_error"}}` + "\n\n"},
		"chat without [DONE]":      {"/v1/chat/completions", []string{piece, stop}, storage.Complete, "data: " + stop + "\n\n"},
		"messages":                 {"/v1/messages", []string{message}, storage.UpstreamAborted, `"type":"api_error","message":"The upstream stream ended early."}}` + "\n\n"},
		"messages without an end":  {"/v1/messages", []string{message, ended}, storage.UpstreamAborted, `early."}}` + "\n\n"},
		"chat, a piece of a piece": {"/v1/chat/completions", []string{piece, `{"id"`}, storage.UpstreamAborted, `"code":"server_error"}}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {says(c.events...)}})
			resp, body := s.postTo(c.path, strings.NewReader(fmt.Sprintf(asks[c.path], "raw/m", "true")))
			if resp.StatusCode != 200 || !strings.HasPrefix(body, "data: "+c.events[0]) || !strings.HasSuffix(body, c.says) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if r := s.kept.all()[0]; r.EndState != c.end {
				t.Errorf("the record says %s", r.EndState)
			}
		})
	}
}

// The model `raw/priced` costs a thousandth of a dollar for a token in, and two
// for one out.
func TestDialectCredits(t *testing.T) {
	for name, c := range map[string]struct {
		path, fields string
		grant        int64
		status       int
	}{
		"chat":                   {"/v1/chat/completions", `"max_tokens":10`, 110, 200},
		"chat, the newer limit":  {"/v1/chat/completions", `"max_tokens":10,"max_completion_tokens":100`, 110, 402},
		"chat, several choices":  {"/v1/chat/completions", `"max_tokens":10,"n":5`, 110, 402},
		"chat, an absurd limit":  {"/v1/chat/completions", `"max_tokens":1e18,"n":1e18`, 110, 400},
		"chat, a negative limit": {"/v1/chat/completions", `"max_tokens":-1000`, 110, 400},
		"messages":               {"/v1/messages", `"max_tokens":10`, 110, 200},
		"messages, too many":     {"/v1/messages", `"max_tokens":100`, 110, 402},
		"embeddings":             {"/v1/embeddings", `"input":"hi"`, 110, 200},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
			s.grant(c.grant)
			body := `{"model":"raw/priced","messages":[{"role":"user","content":"hi"}],` + c.fields + `}`
			resp, answer := s.postTo(c.path, strings.NewReader(body), "Authorization", "Bearer payer")
			if resp.StatusCode != c.status {
				t.Fatalf("%d %s", resp.StatusCode, answer)
			}
			r := s.kept.all()[0]
			if spent, reserved := s.balance(); spent != int64(r.Cost.N/1e6) || reserved != 0 || (spent > 0) != (c.status == 200) || r.PassthroughBilling != (c.status == 200) {
				t.Errorf("spent %d, reserved %d; the record has %+v", spent, reserved, r.Cost)
			}
		})
	}
}

// A count of tokens passes as it is, needs no credits, and is recorded as free.
func TestCountTokens(t *testing.T) {
	const body, count = `{"model":"raw/priced","messages":[{"role":"user","content":"hi"}]}`, `{"input_tokens":9}`
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/messages/count_tokens" || r.Header.Get("Anthropic-Beta") != "b" {
			http.Error(w, r.URL.Path, 404)
			return
		}
		_, _ = w.Write([]byte(count))
	}}})
	resp, answer := s.postTo("/v1/messages/count_tokens", strings.NewReader(body), "Authorization", "", "X-Api-Key", "payer", "Anthropic-Beta", "b")
	if resp.StatusCode != 200 || answer != count {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	r := s.kept.all()[0]
	if r.request != body || r.response != count || !r.Cost.Valid || r.Cost.N != 0 || r.Usage.Input.Valid || r.PassthroughBilling {
		t.Errorf("the record is %+v", r)
	}
}

// Where the provider counts no tokens, the count is an estimate that says so.
func TestCountTokensIsEstimated(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {status(500)}})
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", 100_000) + `"}}`
	body := `{"model":"one/m","messages":[{"role":"user","content":[` + image + `,{"type":"tool_result","tool_use_id":"1","content":[` + image + `]}]}]}`
	resp, answer := s.postTo("/v1/messages/count_tokens", strings.NewReader(body))
	text := int64(len(body) - 2*len(image))
	if got := gjson.Get(answer, "input_tokens").Int(); resp.StatusCode != 200 || got != (text+3)/4+2*mediaTokens {
		t.Errorf("%d %s, for %d bytes of text", resp.StatusCode, answer, text)
	}
	if w := resp.Header.Get("Service-Warnings"); !strings.Contains(w, "estimated") {
		t.Errorf("the warning is %q", w)
	}
	r := s.kept.all()[0]
	if r.response != answer || !r.Cost.Valid || r.Cost.N != 0 || r.Provider != "one" || r.Account != "one" || r.Status.N != 200 {
		t.Errorf("the record is %+v", r)
	}
	resp, answer = s.postTo("/v1/messages/count_tokens", strings.NewReader(body), "Service-Strict", "true")
	if resp.StatusCode != 400 || gjson.Get(answer, "type").Str != "error" {
		t.Errorf("strict: %d %s", resp.StatusCode, answer)
	}
}

// A server that lacks the endpoint, as many that speak Messages do, leaves the client with an
// estimate; one that lacks the model, with its error.
func TestCountTokensIsEstimatedIfThereIsNoEndpoint(t *testing.T) {
	answers := func(status int, body string) upstream {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		model  string
		answer upstream
		status int
	}{
		"a page":          {"raw", answers(404, "<html>404</html>"), 200},
		"no path":         {"raw", answers(404, `{"error":{"message":"Unknown request URL","code":"unknown_url"}}`), 200},
		"no method":       {"raw", answers(405, `{"detail":"Method Not Allowed"}`), 200},
		"none translated": {"two", answers(501, `{}`), 200},
		"no model":        {"raw", answers(404, `{"type":"error","error":{"type":"not_found_error","message":"model: priced"}}`), 404},
	} {
		for path, rest := range map[string]string{"/v1/messages/count_tokens": `"messages":[{"role":"user","content":"hi"}]`, "/v1/responses/input_tokens": `"input":"hi"`} {
			s := serve(t, map[string][]upstream{c.model: {c.answer}})
			body := `{"model":"` + c.model + `/priced",` + rest + `}`
			resp, answer := s.postTo(path, strings.NewReader(body))
			if resp.StatusCode != c.status || c.status == 200 && (gjson.Get(answer, "input_tokens").Int() != int64(len(body)+3)/4 || !strings.Contains(resp.Header.Get("Service-Warnings"), "estimated")) {
				t.Errorf("%s, %s: %d %s, %q", path, name, resp.StatusCode, answer, resp.Header.Get("Service-Warnings"))
			}
			records := s.kept.all()
			if last := records[len(records)-1]; last.Status.N != int64(c.status) || c.status == 200 && (len(records) != 2 || last.response != answer || records[0].AttemptOf == uuid.Nil && records[1].AttemptOf == uuid.Nil) {
				t.Errorf("%s, %s: the records are %+v", path, name, records)
			}
		}
	}
}

// The tokens of a request of Responses are counted by the provider in its own format.
func TestInputTokensAreCountedByTheProvider(t *testing.T) {
	var path, asked string
	s := serve(t, map[string][]upstream{
		"two": {func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			_, _ = w.Write([]byte("9"))
		}},
		"raw": {func(w http.ResponseWriter, r *http.Request) {
			path, asked = r.URL.Path, readAndRestore(r)
			w.Header().Set("Content-Type", jsonType)
			_, _ = w.Write([]byte(`{"object":"response.input_tokens","input_tokens":9}`))
		}},
	})
	const count = `{"object":"response.input_tokens","input_tokens":9}`
	for i, c := range []struct{ model, path string }{{"two/m", "/count/plain"}, {"raw/priced", "/responses/input_tokens"}} {
		body := `{"model":"` + c.model + `", "input":"hi"}`
		resp, answer := s.postTo("/v1/responses/input_tokens", strings.NewReader(body), "Authorization", "Bearer payer")
		if resp.StatusCode != 200 || answer != count || path != c.path || i == 1 && asked != body {
			t.Errorf("%s: %d %s from %s", c.model, resp.StatusCode, answer, path)
		}
		r := s.kept.all()[i]
		if r.response != count || !r.Cost.Valid || r.Cost.N != 0 || r.Usage.Input.Valid || r.Dialect != plugins.InputTokens {
			t.Errorf("%s: the record is %+v", c.model, r)
		}
	}
}

// So are those of a request of Messages, which names no limit.
func TestCountTokensAreTranslated(t *testing.T) {
	s := serve(t, map[string][]upstream{"two": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("9")) }}})
	body := `{"model":"two/m","system":"s","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`
	resp, answer := s.postTo("/v1/messages/count_tokens", strings.NewReader(body), "Authorization", "Bearer payer")
	if resp.StatusCode != 200 || answer != `{"input_tokens":9}` || resp.Header.Get("Service-Warnings") != "" {
		t.Errorf("%d %s, %s", resp.StatusCode, answer, resp.Header.Get("Service-Warnings"))
	}
	if r := s.kept.all()[0]; r.response != answer || !r.Cost.Valid || r.Cost.N != 0 || r.Dialect != plugins.CountTokens {
		t.Errorf("the record is %+v", r)
	}
	resp, answer = s.postTo("/v1/messages/count_tokens", strings.NewReader(`{"model":"two/m","messages":[{"role":"user","content":[{"type":"stone"}]}]}`))
	if resp.StatusCode != 400 || gjson.Get(answer, "type").Str != "error" {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
}

func TestInputTokensAreEstimated(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "two": {says("nothing")}})
	image := `{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("A", 100_000) + `"}`
	body := `{"model":"one/m","input":[{"role":"user","content":[` + image + `]}]}`
	resp, answer := s.postTo("/v1/responses/input_tokens", strings.NewReader(body))
	text := int64(len(body) - len(image))
	if got := gjson.Get(answer, "input_tokens").Int(); resp.StatusCode != 200 || got != (text+3)/4+mediaTokens || gjson.Get(answer, "object").Str != "response.input_tokens" {
		t.Errorf("%d %s, for %d bytes of text", resp.StatusCode, answer, text)
	}
	if w := resp.Header.Get("Service-Warnings"); !strings.Contains(w, "estimated") {
		t.Errorf("the warning is %q", w)
	}
	_, first := s.post(`{"model":"one/m","input":"` + strings.Repeat("long ", 100) + `"}`)
	_, answer = s.postTo("/v1/responses/input_tokens", strings.NewReader(`{"model":"one/m","input":"hi","previous_response_id":"`+gjson.Get(first, "id").Str+`"}`))
	if n := gjson.Get(answer, "input_tokens").Int(); n < 100 {
		t.Errorf("the conversation is not counted: %s", answer)
	}
	for body, want := range map[string]int{
		`{"input":"hi"}`:                                                 400,
		`{"model":"one/m","input":7}`:                                    400,
		`{"model":"one/m","input":[{"type":"stone"}]}`:                   400,
		`{"model":"one/m","input":"hi","previous_response_id":"resp_0"}`: 400,
		`{"model":"two/m","input":"hi"}`:                                 502,
		`7`:                                                              400,
	} {
		if resp, answer := s.postTo("/v1/responses/input_tokens", strings.NewReader(body)); resp.StatusCode != want {
			t.Errorf("%s: %d %s", body, resp.StatusCode, answer)
		}
	}
	if resp, answer := s.postTo("/v1/responses/input_tokens", strings.NewReader(body), "Service-Strict", "true"); resp.StatusCode != 400 {
		t.Errorf("strict: %d %s", resp.StatusCode, answer)
	}
}
