package llmlog

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

// A body that comes to a clean end in the middle of an answer is one that the provider has broken
// off. Only the dialect says that an answer is complete.
func TestACleanEndAmidAnAnswerIsBrokenOff(t *testing.T) {
	const messages, responses, gemini = "/v1/messages", "/v1/responses", "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
	start := event(`{"type":"message_start","message":{"id":"m","model":"claude-sonnet-4-5","usage":{"input_tokens":100,"output_tokens":1}}}`)
	text := event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + strings.Repeat("word ", 400) + `"}}`)
	created := event(`{"type":"response.created","response":{"id":"r","model":"gpt-4o","status":"in_progress"}}`)
	delta := event(`{"type":"response.output_text.delta","delta":"Hi"}`)
	for name, c := range map[string]struct {
		path, contentType, body string
		want                    storage.EndState
	}{
		"messages":                   {messages, "text/event-stream", start + text, storage.UpstreamAborted},
		"messages, complete":         {messages, "text/event-stream", start + text + event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":400}}`) + event(`{"type":"message_stop"}`), storage.Complete},
		"chat":                       {chatPath, "text/event-stream", deltaEvent, storage.UpstreamAborted},
		"chat without [DONE]":        {chatPath, "text/event-stream", deltaEvent + finishEvent, storage.Complete},
		"chat, a bare end":           {chatPath, "text/event-stream", doneEvent, storage.UpstreamAborted},
		"responses":                  {responses, "text/event-stream", created + delta, storage.UpstreamAborted},
		"responses, response.done":   {responses, "text/event-stream", created + delta + event(`{"type":"response.done","response":{"id":"r","status":"completed"}}`), storage.Complete},
		"gemini":                     {gemini, "text/event-stream", event(`{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}`), storage.UpstreamAborted},
		"a stream of nothing":        {chatPath, "text/event-stream", "", storage.UpstreamAborted},
		"a page as a stream":         {messages, "text/event-stream", "<html>Welcome</html>", storage.UpstreamAborted},
		"an object without its end":  {chatPath, "application/json", `{"id":"c","choices":[{"index":0,"message":{"content":"H`, storage.UpstreamAborted},
		"an object that is an error": {chatPath, "application/json", `{"error":{"message":"no","code":429}}`, storage.UpstreamAborted},
		"an error in another shape":  {chatPath, "application/json", `{"errors":[{"message":"no"}]}`, storage.UpstreamAborted},
		"a receipt":                  {chatPath, "application/json", `{"id":"r","status":"CREATED","error_message":null,"response":null}`, storage.Complete},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.contentType)
				_, _ = io.WriteString(w, c.body)
			}))
			defer upstream.Close()
			s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{"provider": "anthropic"}})
			resp, body := s.do("POST", c.path, `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"hi"}],"stream":true}`)
			if resp.StatusCode != http.StatusOK || body != c.body {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			r := s.record()
			if r.EndState != c.want {
				t.Errorf("the record is %s, want %s", r.EndState, c.want)
			}
			if name == "messages" && (!r.CostCounted || r.Cost.N < 3_000_000) {
				t.Errorf("400 words cost %v, counted %v", r.Cost, r.CostCounted)
			}
		})
	}
}

// That an answer states an error in a shape of no dialect is known also if content is omitted, whose words
// the record does not have.
func TestAnErrorIsKnownWithoutContent(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"base_resp":{"status_code":1002,"status_msg":"Too fast."},"choices":null}`)
	}))
	defer upstream.Close()
	for omits, want := range map[string]string{"false": "Too fast.", "true": ""} {
		t.Run("omitted "+omits, func(t *testing.T) {
			s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{"provider": "openai"}})
			s.do("POST", chatPath, `{"model":"m","messages":[]}`, "Service-Omit-Response", omits)
			if r := s.record(); r.EndState != storage.UpstreamAborted || r.ErrorType != "rate_limit_error" || r.ErrorMessage != want {
				t.Errorf("the record is %s, %q, %q", r.EndState, r.ErrorType, r.ErrorMessage)
			}
		})
	}
}
