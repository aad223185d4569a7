package llmgateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

const nativeEvents = "event: response.created\n" +
	`data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m","status":"in_progress"}}` + "\n\n" +
	": a comment\n\n" +
	"event: response.output_text.delta\n" +
	`data: {"type":"response.output_text.delta","sequence_number":1,"delta":"ä\"sequence_number\":9"}` + "\n\n" +
	"event: response.completed\n" +
	`data: {"type":"response.completed","sequence_number":2,"response":{"id":"resp_1","model":"m","status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}` + "\n\n"

// However a provider's stream is cut into chunks, the client gets its bytes.
func TestNativeBytesPass(t *testing.T) {
	for name, events := range map[string]string{"LF": nativeEvents, "CRLF": strings.ReplaceAll(nativeEvents, "\n", "\r\n"), "no last line": strings.TrimRight(nativeEvents, "\n")} {
		for _, size := range []int{1, 7, 100, len(events)} {
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for rest := events; rest != ""; {
					n := min(size, len(rest))
					if _, err := w.Write([]byte(rest[:n])); err != nil {
						t.Error(err)
					}
					_ = http.NewResponseController(w).Flush()
					rest = rest[n:]
				}
			}}})
			resp, body := s.post(`{"model":"raw/m","input":"hi","stream":true}`)
			if body != events {
				t.Errorf("%s in chunks of %d: the client got\n%q", name, size, body)
			}
			if r := s.kept.all()[0]; r.response != events || r.Usage.Output.N != 2 || resp.Header.Get("Service-Id") != r.ID.String() {
				t.Errorf("%s in chunks of %d: the record is %+v", name, size, r)
			}
		}
	}
}

func TestLastEvent(t *testing.T) {
	for stream, want := range map[string]int{
		"": 0, "data: a": 0, "data: a\n": 0, "data: a\n\n": 9, "data: a\n\ndata": 9, "data: a\r\n\r\nda": 11, "data: a\r\rx": 9,
	} {
		if got := lastEvent([]byte(stream), 0); got != want {
			t.Errorf("lastEvent(%q) = %d, want %d", stream, got, want)
		}
	}
}

func TestSequence(t *testing.T) {
	for text, want := range map[string]int{"": 0, `{"a":1}`: 0, `:12,`: 13, `: 7}`: 8, `:`: 1, `:x`: 1, `:1,"sequence_number":3`: 4} {
		last := text
		if strings.HasPrefix(text, ":") {
			last = `{"sequence_number"` + text
		}
		if got := (&nativeStream{last: []byte(last)}).sequence(); got != want {
			t.Errorf("after %s comes %d, want %d", last, got, want)
		}
	}
}

// A body that is no response of the dialect is not passed on: another provider
// answers.
func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body string }{
		"a page":               {"text/html", "<html>Welcome</html>"},
		"a page as JSON":       {"application/json", "<html>Welcome</html>"},
		"nothing":              {"application/json", ""},
		"null":                 {"application/json", "null"},
		"an empty object":      {"application/json", "{}"},
		"an array":             {"application/json", "[]"},
		"broken JSON":          {"application/json", `{"output":[`},
		"an error":             {"application/json", `{"error":{"message":"no"}}`},
		"no list":              {"application/json", `{"output":"x","choices":null,"content":{}}`},
		"a page as a stream":   {"text/event-stream", "<html>Welcome</html>\n\n"},
		"an object as events":  {"text/event-stream", `{"error":{"message":"no"}}`},
		"a stream of nothing":  {"text/event-stream", ""},
		"a stream of comments": {"text/event-stream", ": hello\n\n"},
		"a bare end":           {"text/event-stream", "data: [DONE]\n\n"},
	} {
		for path, form := range map[string]string{
			"/v1/responses": `{"model":%q,"input":"hi","stream":%s}`, "/v1/chat/completions": asks["/v1/chat/completions"], "/v1/messages": asks["/v1/messages"],
		} {
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				_, _ = w.Write([]byte(c.body))
			}}, "raw2": {speaksResponses}})
			s.handler.policy.Retries = 0
			resp, body := s.postTo(path, strings.NewReader(fmt.Sprintf(form, "raw/m,raw2/m", "false")))
			if resp.StatusCode != http.StatusOK || !strings.Contains(body, "You said") {
				t.Errorf("%s at %s: %d %s", name, path, resp.StatusCode, body)
			}
			if r := s.kept.all()[0]; r.EndState != storage.UpstreamAborted {
				t.Errorf("%s at %s: the record says %s", name, path, r.EndState)
			}
		}
	}
}

// A stream of Responses that says [DONE] without a terminal event has failed, and
// so the client is told, at its very end.
func TestDoneIsNoTerminalEvent(t *testing.T) {
	const begin = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m","status":"in_progress"}}`
	const delta = `{"type":"response.output_text.delta","sequence_number":1,"delta":"hel"}`
	s := serve(t, map[string][]upstream{"raw": {says(begin, delta, "[DONE]")}})
	_, body := s.post(`{"model":"raw/m","input":"hi","stream":true}`)
	failed := gjson.Parse(lastEventData(body, "response.failed"))
	if failed.Get("response.status").Str != "failed" || failed.Get("response.id").Str != "resp_1" || strings.Contains(body, "[DONE]") {
		t.Errorf("the stream is\n%s", body)
	}
	if r := s.kept.all()[0]; r.EndState != storage.UpstreamAborted {
		t.Errorf("the record says %s", r.EndState)
	}
}

// An error that the provider has told is not told again.
func TestErrorsAreToldOnce(t *testing.T) {
	for path, events := range map[string][]string{
		"/v1/chat/completions": {`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hel"},"finish_reason":null}]}`,
			`{"error":{"message":"overloaded","type":"server_error"}}`},
		"/v1/messages": {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}`},
		"/v1/responses": {`{"type":"response.output_text.delta","sequence_number":1,"delta":"hel"}`,
			`{"type":"error","sequence_number":2,"code":"server_error","message":"overloaded"}`},
	} {
		s := serve(t, map[string][]upstream{"raw": {says(events...)}})
		_, body := s.postTo(path, strings.NewReader(`{"model":"raw/m","input":"hi","messages":[],"max_tokens":9,"stream":true}`))
		told := 1
		if path == "/v1/responses" {
			told = 2 // a stream of Responses ends with response.failed, which has the error, too
		}
		if strings.Count(body, "overloaded\"") != told || strings.Contains(body, "event: error") ||
			strings.Count(body, "event: response.failed") != told-1 {
			t.Errorf("%s: the stream is\n%s", path, body)
		}
		if r := s.kept.all()[0]; r.EndState != storage.UpstreamAborted || r.ErrorType == "" {
			t.Errorf("%s: the record says %s, %q", path, r.EndState, r.ErrorType)
		}
	}
}

// What OpenAI's clients say in headers reaches the provider, but what would choose
// whose money or whose answer it is of an account that others share.
func TestOpenAIHeaders(t *testing.T) {
	var got http.Header
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		speaksResponses(w, r)
	}}})
	s.grant(1e6)
	for key, shared := range map[string]bool{"k": true, "both": false, "payer": true} {
		s.post(`{"model":"raw/priced","input":"hi","max_output_tokens":9}`, "Authorization", "Bearer "+key,
			"OpenAI-Organization", "org", "OpenAI-Project", "proj", "OpenAI-Beta", "b", "Idempotency-Key", "once")
		if got.Get("OpenAI-Beta") != "b" || (got.Get("OpenAI-Organization") == "org") == shared || (got.Get("OpenAI-Project") == "proj") == shared ||
			got.Get("Idempotency-Key") == "" || (got.Get("Idempotency-Key") == "once") == shared {
			t.Errorf("with key %s the provider got %v", key, got)
		}
	}
}
