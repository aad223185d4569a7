package llmlog

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

func TestWithUsage(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","stream":true}`:                                `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`,
		`{ "stream" : true, "stream_options":{"x": 1 } , "n":1.0e3}`: `{ "stream" : true, "stream_options":{"x": 1 ,"include_usage":true} , "n":1.0e3}`,
		`{"stream":true,"stream_options":{"include_usage":true}}`:    "",
		`{"stream":true,"stream_options":{"include_usage":false}}`:   "",
		`{"stream":false}`: "",
		`{"model":"m"}`:    "",
		`[1]`:              "",
		`{"stream":true`:   "",
		``:                 "",
	} {
		got, changed := withUsage([]byte(body))
		if want == "" && (changed || string(got) != body) || want != "" && (!changed || string(got) != want) {
			t.Errorf("%s becomes %s", body, got)
		}
	}
}

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

// At any chunking the client gets the same bytes, and every whole event in the
// write that completes it.
func TestUsageFilterAtAnyChunking(t *testing.T) {
	crlf := strings.NewReplacer("\n", "\r\n")
	for _, c := range []struct{ stream, want string }{
		{deltaEvent + finishEvent + usageEvent + doneEvent, deltaEvent + finishEvent + doneEvent},
		{crlf.Replace(deltaEvent + usageEvent + doneEvent), crlf.Replace(deltaEvent + doneEvent)},
		{": ping\n\n" + usageEvent, ": ping\n\n"},
		{deltaEvent + "data: {\"cut", deltaEvent + "data: {\"cut"},
		{deltaEvent + strings.TrimSpace(usageEvent), deltaEvent},
	} {
		for size := 1; size <= len(c.stream); size++ {
			got := filtered(t, []byte(c.stream), size)
			if got != c.want {
				t.Fatalf("in pieces of %d: %q, want %q", size, got, c.want)
			}
		}
	}
}

// An event of any length passes, and the chunk behind it is taken out still.
func TestUsageFilterAfterALongEvent(t *testing.T) {
	crlf := strings.NewReplacer("\n", "\r\n")
	for _, end := range []string{"\"}]}", "\"}],\"usage\":null}", "\"}]}\n: comment"} {
		long := "data: {\"choices\":[{\"delta\":\"" + strings.Repeat("x", maxEvent) + end + "\n\n"
		for _, c := range []struct{ stream, want string }{
			{long + usageEvent + doneEvent, long + doneEvent},
			{crlf.Replace(long + usageEvent + long + usageEvent + doneEvent), crlf.Replace(long + long + doneEvent)},
			{long + strings.TrimSpace(usageEvent), long},
			{strings.TrimSpace(long), strings.TrimSpace(long)},
			{strings.TrimSpace(long) + "\n" + usageEvent, strings.TrimSpace(long) + "\n" + usageEvent}, // one event
			{": " + strings.Repeat("x", maxEvent) + "\n" + usageEvent, ": " + strings.Repeat("x", maxEvent) + "\n" + usageEvent},
			{strings.TrimSpace(long) + "\n", strings.TrimSpace(long) + "\n"},
		} {
			for _, size := range []int{len(c.stream), 32 << 10, 4096, 4095, 4094, 4093, 4092, 1021} {
				if got := filtered(t, []byte(c.stream), size); got != c.want {
					t.Errorf("in pieces of %d: %d bytes, which end with %.300q, want %d", size, len(got), got[max(0, len(got)-300):], len(c.want))
				}
			}
		}
	}
}

func TestUsageFilterHoldsNoWholeEvent(t *testing.T) {
	w := httptest.NewRecorder()
	f := newUsageFilter(w)
	w.Header().Set("Content-Type", "text/event-stream")
	f.WriteHeader(http.StatusOK)
	f.Write([]byte(deltaEvent + finishEvent[:20]))
	if w.Body.String() != deltaEvent {
		t.Errorf("passed %q", w.Body)
	}
	f.Write([]byte(finishEvent[20:]))
	if w.Body.String() != deltaEvent+finishEvent {
		t.Errorf("passed %q", w.Body)
	}
}

// What is no stream of events has no blank lines to wait for.
func TestUsageFilterHoldsNoLines(t *testing.T) {
	for _, contentType := range []string{"application/x-ndjson", "application/json", ""} {
		w := httptest.NewRecorder()
		f := newUsageFilter(w)
		w.Header().Set("Content-Type", contentType)
		f.WriteHeader(http.StatusOK)
		f.Write([]byte("{}\n"))
		if w.Body.String() != "{}\n" {
			t.Errorf("%s: passed %q", contentType, w.Body)
		}
	}
}

func filtered(t testing.TB, stream []byte, size int) string {
	w := httptest.NewRecorder()
	f := newUsageFilter(w)
	w.Header().Set("Content-Type", "text/event-stream")
	f.WriteHeader(http.StatusOK)
	for piece := range chunks(stream, size) {
		if n, err := f.Write(piece); n != len(piece) || err != nil {
			t.Fatalf("wrote %d of %d, %v", n, len(piece), err)
		}
	}
	f.flush()
	return w.Body.String()
}

// chunks yields copies, as a writer must not keep what it was given.
func chunks(b []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := min(size, len(b))
			if !yield(bytes.Clone(b[:n])) {
				return
			}
			b = b[n:]
		}
	}
}

// The chunking never matters, and what has no usage passes as it is.
func FuzzUsageFilter(f *testing.F) {
	f.Add([]byte(deltaEvent+usageEvent+doneEvent), 7)
	f.Add([]byte("data: a\r\rdata: b\r\n\r\n\n\n"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		if size < 1 || len(stream) > 2*maxEvent {
			return
		}
		whole, pieces := filtered(t, stream, len(stream)+1), filtered(t, stream, size)
		if !bytes.Contains(stream, []byte("usage")) && (whole != string(stream) || pieces != whole) {
			t.Errorf("%q became %q, and %q in pieces", stream, whole, pieces)
		}
	})
}
