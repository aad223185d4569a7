package llmlog

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
)

// The client cannot know of the end before the record stands.
func TestRecordStandsBeforeTheEnd(t *testing.T) {
	anthropicEnd := "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	anthropicStart := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-haiku-4-5\",\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n"
	jsonStart, jsonEnd := `{"id":"c1","object":"chat.completion","model":"gpt-4o","choices":[`, `]}`

	for _, c := range []struct {
		name, path, contentType string
		length                  string
		running, last           string
	}{
		{"finish reason", chatPath, "text/event-stream", "", deltaEvent, finishEvent},
		{"done", chatPath, "text/event-stream", "", deltaEvent, doneEvent},
		{"message_stop", "/v1/messages", "text/event-stream", "", anthropicStart, anthropicEnd},
		{"close of the object", chatPath, "application/json", "", jsonStart, jsonEnd},
		{"content length", "/who/knows", "text/plain", "8", "four", "more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			goOn := make(chan struct{})
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				if c.length != "" {
					w.Header().Set("Content-Length", c.length)
				}
				io.WriteString(w, c.running)
				w.(http.Flusher).Flush()
				<-goOn
				io.WriteString(w, c.last)
				w.(http.Flusher).Flush()
			}))
			defer upstream.Close()
			// Without a length, reverse_proxy flushes each write; with one it must be told.
			s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{}, flush: true})
			s.kept.gate = make(chan struct{})

			resp, err := s.client().Post(s.url(c.path), "application/json", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			readUntil(t, resp.Body, c.running) // what comes before the end does not wait
			close(goOn)

			var got lockedBuffer
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(&got, resp.Body)
				ended <- err
			}()
			<-s.kept.entered
			time.Sleep(20 * time.Millisecond) // for the end to get through, if it can
			if early := got.String(); early != "" {
				t.Errorf("the client had %q before the record stood", early)
			}
			close(s.kept.gate)
			if err := <-ended; err != nil || got.String() != c.last {
				t.Errorf("the client got %q, %v", got.String(), err)
			}
			if s.record().Latency.N < 0 {
				t.Error("no latency")
			}
		})
	}
}

func TestBodylessAnswerWaitsForItsRecord(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer upstream.Close()
	s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{}})
	s.kept.gate = make(chan struct{})

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", s.url("/"), nil)
	if _, err := s.client().Do(r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the header went out: %v", err)
	}
	close(s.kept.gate)
	if e := s.record(); e.Status.N != http.StatusNoContent {
		t.Errorf("status %v", e.Status)
	}
}

// What becomes known after the terminal event amends the record.
func TestLateUsageAmends(t *testing.T) {
	upstream := streaming([]string{deltaEvent, finishEvent, usageEvent, doneEvent}, nil)
	defer upstream.Close()
	s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{"provider": "openai"}})
	s.do("POST", chatPath, `{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true}}`)
	e := s.record()
	if e.Usage.Input != plugins.Known(11) || e.Usage.Output != plugins.Known(7) || e.Finish != "stop" {
		t.Errorf("usage %+v, finish %q", e.Usage, e.Finish)
	}
	if e.Model != "gpt-4o-2024-08-06" || e.RequestModel != "gpt-4o" || !e.Stream || !e.TimeToFirstToken.Valid {
		t.Errorf("%+v", e.Record)
	}
	if !e.Cost.Valid || e.Cost.N <= 0 || e.PriceVersion == "" {
		t.Errorf("cost %v by %q", e.Cost, e.PriceVersion)
	}
}

// A plain answer is written once.
func TestPlainAnswerIsAppendedOnce(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c1","object":"chat.completion","model":"gpt-4o","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	}))
	defer upstream.Close()
	s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{}})
	s.do("POST", chatPath, `{"model":"gpt-4o"}`)
	s.record()
	if n := s.kept.appended(); n != 1 {
		t.Errorf("%d appends", n)
	}
}

// A store that is out of order does not hold traffic up.
func TestStoreDoesNotOpen(t *testing.T) {
	upstream := httptest.NewServer(provider())
	defer upstream.Close()
	s := serve(t, options{upstream: upstream.Listener.Addr().String(), config: object{}})
	s.kept.openErr = errors.New("disk on fire")
	if resp, body := s.do("GET", "/length", ""); resp.StatusCode != 200 || body != `{"ok": true}` {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if !strings.Contains(s.logs.String(), "disk on fire") {
		t.Error("nobody is told")
	}
}
