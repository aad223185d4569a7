package streamusage

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func event(data string) string { return "data: " + data + "\n\n" }

var (
	deltaEvent  = event(`{"id":"c1","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`)
	finishEvent = event(`{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	usageEvent  = event(`{"id":"c1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`)
	doneEvent   = event("[DONE]")
)

// Where credits pay, the usage is asked for whatever the client says.
func TestAskAlways(t *testing.T) {
	for body, want := range map[string]string{
		`{"stream":true}`: `{"stream":true,"stream_options":{"include_usage":true}}`,
		`{"stream":true,"stream_options":{"include_usage":false}}`:                      `{"stream":true,"stream_options":{"include_usage":true}}`,
		`{"stream":true,"stream_options":{"include_usage":true,"include_usage":false}}`: `{"stream":true,"stream_options":{"include_usage":true}}`,
	} {
		if got, changed := Ask([]byte(body), true); !changed || string(got) != want {
			t.Errorf("%s becomes %s", body, got)
		}
	}
	const asks = `{"stream":true,"stream_options":{"include_usage":true}}`
	if got, changed := Ask([]byte(asks), true); changed || string(got) != asks {
		t.Errorf("%s becomes %s", asks, got)
	}
}

func TestAsk(t *testing.T) {
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
		got, changed := Ask([]byte(body), false)
		if want == "" && (changed || string(got) != body) || want != "" && (!changed || string(got) != want) {
			t.Errorf("%s becomes %s", body, got)
		}
	}
}

// At any chunking the client gets the same bytes, and every whole event in the
// write that completes it.
func TestFilterAtAnyChunking(t *testing.T) {
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

// An event of any length passes, and the chunk after it is taken out still.
func TestFilterAfterALongEvent(t *testing.T) {
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

func TestFilterHoldsNoWholeEvent(t *testing.T) {
	w := httptest.NewRecorder()
	f := NewFilter(w)
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
func TestFilterHoldsNoLines(t *testing.T) {
	for _, contentType := range []string{"application/x-ndjson", "application/json", ""} {
		w := httptest.NewRecorder()
		f := NewFilter(w)
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
	f := NewFilter(w)
	w.Header().Set("Content-Type", "text/event-stream")
	f.WriteHeader(http.StatusOK)
	for piece := range chunks(stream, size) {
		if n, err := f.Write(piece); n != len(piece) || err != nil {
			t.Fatalf("wrote %d of %d, %v", n, len(piece), err)
		}
	}
	f.Close()
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
func FuzzFilter(f *testing.F) {
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
