package llmgateway

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

// What a provider states before any content is the call's failure, though its answer began as a
// success: the client gets the status, code and message, and the record the body. A client's
// fault is asked once.
func TestAFailureBeforeContentIsTheCallsFailure(t *testing.T) {
	const (
		chat, responses, messages = "/v1/chat/completions", "/v1/responses", "/v1/messages"

		created = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m","status":"in_progress"}}`
		started = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`
		role    = `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	)
	finish := func(reason string) string {
		return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
	}
	for name, c := range map[string]struct {
		path    string
		answer  upstream
		status  int
		says    string
		retried bool
	}{
		"responses, context": {responses, says(created, `{"type":"response.failed","sequence_number":1,"response":{"id":"resp_1","status":"failed","error":{"code":"context_length_exceeded","message":"Too long, said m."}}}`),
			400, `"code":"context_length_exceeded"`, false},
		"responses, rate": {responses, says(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slowly, said m."}}}`), 429, "said m.", true},
		"responses, error, timeout": {responses, says(created, `{"type":"error","error":{"type":"invalid_request_error","code":"request_timeout","message":"Late, said m."}}`),
			408, "said m.", true},
		"chat, tool":                     {chat, says(`{"error":{"type":"invalid_request_error","code":"tool_use_failed","message":"Bad tool, said m."}}`), 400, "said m.", false},
		"chat, object with a status":     {chat, objectOf(`{"error":{"message":"Slowly, said m.","code":429}}`), 429, "said m.", true},
		"chat, object declared a stream": {chat, declared("text/event-stream", `{"error":{"message":"No, said m.","code":400}}`), 400, "said m.", false},
		"messages, overloaded":           {messages, says(started, `{"type":"error","error":{"type":"overloaded_error","message":"Busy, said m."}}`), 529, `"type":"overloaded_error","message":"Busy, said m."`, true},
		"messages, invalid":              {messages, says(started, `{"type":"error","error":{"type":"invalid_request_error","message":"Bad, said m."}}`), 400, "said m.", false},
		"chat, a bare end":               {chat, says("[DONE]"), 502, "empty", true},
		"chat, a role alone":             {chat, says(role, "[DONE]"), 502, "empty", true},
		"chat, no choices":               {chat, objectOf(`{"id":"c","object":"chat.completion","choices":[]}`), 502, "empty", true},
		"chat, null choices":             {chat, objectOf(`{"id":"c","object":"chat.completion","choices":null}`), 502, "no response", true},
		"chat, finish error":             {chat, says(role, finish("error"), "[DONE]"), 502, "failed", true},
		"chat, finish of DeepSeek":       {chat, says(finish("insufficient_system_resource"), "[DONE]"), 502, "failed", true},
	} {
		for _, stream := range []string{"true", "false"} {
			t.Run(name+", stream "+stream, func(t *testing.T) {
				s := serve(t, map[string][]upstream{"raw": {c.answer}})
				s.handler.policy.Backoff = 1
				form := asks[c.path]
				if c.path == responses {
					form = `{"model":%q,"input":"hi","stream":%s}`
				}
				resp, body := s.postTo(c.path, strings.NewReader(fmt.Sprintf(form, "raw/m", stream)))
				if resp.StatusCode != c.status || !strings.Contains(body, c.says) {
					t.Errorf("%d %s, want %d with %s", resp.StatusCode, body, c.status, c.says)
				}
				records := s.kept.all()
				if (len(records) > 1) != c.retried {
					t.Errorf("the provider was asked %d times", len(records))
				}
				if r := records[len(records)-1]; r.EndState != storage.UpstreamAborted || r.ErrorType == "" || r.response == "" {
					t.Errorf("the record is %s, %q, with %q", r.EndState, r.ErrorType, r.response)
				}
			})
		}
	}
}

// Some providers compress answers though nobody asked.
func TestCompressedAnswersAreRead(t *testing.T) {
	for _, stream := range []string{"true", "false"} {
		s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer := httptest.NewRecorder()
			speaksResponses(answer, r)
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			z := gzip.NewWriter(w)
			defer z.Close()
			_, _ = z.Write(answer.Body.Bytes())
		}}})
		resp, body := s.post(`{"model":"raw/m","input":"hi","stream":` + stream + `}`)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "You said") || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("stream %s: %d %q", stream, resp.StatusCode, body)
		}
	}
}

// Text that came before a provider failed stays the client's, with a reason that does not call it
// whole.
func TestTextBeforeAFailureStays(t *testing.T) {
	for _, reason := range []string{"network_error", "abort"} {
		answer := objectOf(`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Half of it"},"finish_reason":"` + reason + `"}]}`)
		s := serve(t, map[string][]upstream{"raw": {answer}})
		resp, body := s.postTo("/v1/chat/completions", strings.NewReader(`{"model":"raw/m","messages":[{"role":"user","content":"hi"}]}`))
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "Half of it") || !strings.Contains(body, reason) {
			t.Errorf("%s: %d %s", reason, resp.StatusCode, body)
		}
	}
}

func declared(contentType, body string) upstream {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}

func objectOf(body string) upstream { return declared("application/json", body) }
