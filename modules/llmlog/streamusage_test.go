package llmlog

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func TestStreamUsage(t *testing.T) {
	var sent string
	var length int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent, length = string(b), r.ContentLength
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{deltaEvent, finishEvent, usageEvent, doneEvent} {
			if e == usageEvent && !strings.Contains(sent, "include_usage") {
				continue
			}
			io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}))
	defer upstream.Close()
	host := upstream.Listener.Addr().String()
	ask := `{"model":"gpt-4o","stream":true,"messages":[]}`
	without := deltaEvent + finishEvent + doneEvent

	t.Run("asked for", func(t *testing.T) {
		s := serve(t, options{upstream: host, config: object{"stream_usage": true}, accessLogs: true})
		_, got := s.do("POST", chatPath, ask, "Accept-Encoding", "gzip")
		if got != without {
			t.Errorf("the client gets %q", got)
		}
		if want := ask[:len(ask)-1] + `,"stream_options":{"include_usage":true}}`; sent != want || length != int64(len(want)) {
			t.Errorf("the provider gets %d bytes: %s", length, sent)
		}
		e := s.record()
		if e.Usage.Total() != plugins.Known(18) || string(e.Request.Data) != ask {
			t.Errorf("usage %+v of %s", e.Usage, e.Request.Data)
		}
	})
	t.Run("the client asks itself", func(t *testing.T) {
		s := serve(t, options{upstream: host, config: object{"stream_usage": true}})
		_, got := s.do("POST", chatPath, `{"stream":true,"stream_options":{"include_usage":true}}`)
		if got != deltaEvent+finishEvent+usageEvent+doneEvent {
			t.Errorf("the client gets %q", got)
		}
	})
	for name, c := range map[string]struct {
		config object
		body   string
		header []string
		warns  string
	}{
		"too long":   {object{"stream_usage": true, "max_body": 10}, ask, nil, "stream_usage: not asked for, the request is longer than max_body"},
		"compressed": {object{"stream_usage": true}, encoded(t, "gzip", ask), []string{"Content-Encoding", "gzip"}, "stream_usage: not asked for, the request has a Content-Encoding"},
		"off":        {object{}, ask, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, options{upstream: host, config: c.config})
			resp, got := s.do("POST", chatPath, c.body, c.header...)
			if got != without || sent != c.body || resp.Header.Get("Service-Warnings") != c.warns {
				t.Errorf("sent %q, got %q, warnings %q", sent, got, resp.Header["Service-Warnings"])
			}
		})
	}
}
