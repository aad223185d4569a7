package llmgateway

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// encoded returns a body in an encoding.
func encoded(t *testing.T, encoding string, body []byte) []byte {
	t.Helper()
	for name := range strings.SplitSeq(encoding, ", ") {
		var b bytes.Buffer
		var w io.WriteCloser
		switch name {
		case "gzip":
			w, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed)
		case "deflate":
			w = zlib.NewWriter(&b)
		case "br":
			w = brotli.NewWriterLevel(&b, brotli.BestSpeed)
		case "zstd":
			w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		body = b.Bytes()
	}
	return body
}

// The body of a request may come encoded. The provider and the record get it plain,
// however long it is.
func TestEncodedRequests(t *testing.T) {
	var got, gotEncoding string
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		got, gotEncoding = readAndRestore(r), r.Header.Get("Content-Encoding")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"r","object":"response","status":"completed","output":[]}`)
	}}})
	short := `{"model":"raw/m","input":"hi"}`
	long := `{"model":"raw/m","input":"` + strings.Repeat("some words ", 1<<19) + `"}`
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "zstd, gzip, br"} {
		for _, body := range []string{short, long} {
			wire := encoded(t, encoding, []byte(body))
			resp, answer := s.postTo("/v1/responses", bytes.NewReader(wire), "Content-Encoding", encoding)
			if resp.StatusCode != http.StatusOK || got != body || gotEncoding != "" {
				t.Errorf("%s of %d bytes: %d %s, the provider got %d bytes in %q", encoding, len(body), resp.StatusCode, answer, len(got), gotEncoding)
			}
			r := s.kept.all()[len(s.kept.all())-1]
			if r.request != body || r.RequestBytes != int64(len(wire)) {
				t.Errorf("%s: the record has %d bytes of %d, and counts %d of %d on the wire", encoding, len(r.request), len(body), r.RequestBytes, len(wire))
			}
		}
	}
}

// A request of Responses that would take many times its length is refused before
// anything is made of it.
func TestSizeOfRequests(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	s.handler.MaxItems, s.handler.MaxTools = 100, 10
	const item, tool = `{"role":"user","content":"a, b"}`, `{"type":"function","name":"f%d"}`
	list := func(n int, form string) string {
		var items []string
		for i := range n {
			items = append(items, strings.ReplaceAll(form, "%d", fmt.Sprint(i)))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	for name, c := range map[string]struct {
		fields, param string
		status        int
	}{
		"items":           {`"input":` + list(100, item), "", http.StatusOK},
		"too many items":  {`"input":` + list(101, item), "input", http.StatusRequestEntityTooLarge},
		"tools":           {`"input":"hi","tools":` + list(10, tool), "", http.StatusOK},
		"too many tools":  {`"input":"hi","tools":` + list(11, tool), "tools", http.StatusRequestEntityTooLarge},
		"too many values": {`"input":[{"role":"user","content":` + list(250_000/2, `{"":0}`) + `}]`, "", http.StatusRequestEntityTooLarge},
		"too deep":        {`"input":"hi","metadata":` + strings.Repeat("[", 256) + strings.Repeat("]", 256), "", http.StatusRequestEntityTooLarge},
		"commas":          {`"input":"` + strings.Repeat(",[", 250_000) + `"`, "", http.StatusOK},
	} {
		resp, body := s.post(`{"model":"one/m",` + c.fields + `}`)
		if resp.StatusCode != c.status || gjson.Get(body, "error.param").Str != c.param {
			t.Errorf("%s: %d %.300s", name, resp.StatusCode, body)
		}
	}
}

// Warnings stay as few as clients can read the headers of.
func TestWarningsAreBounded(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	tools := strings.Repeat(`{"type":"local_shell"},`, 200)
	resp, body := s.post(`{"model":"one/m","input":"hi","tools":[` + strings.TrimSuffix(tools, ",") + `]}`)
	warnings := resp.Header.Values("Service-Warnings")
	if resp.StatusCode != http.StatusOK || len(warnings) != maxWarnings+1 || warnings[maxWarnings] != "and 150 more" {
		t.Errorf("%d %s with %d warnings: %q", resp.StatusCode, body, len(warnings), warnings)
	}
}

// The answers of providers share the memory of requests, in each lane: one that is too long for
// what is left is refused, and nothing of it is held.
func TestAnswersShareTheMemory(t *testing.T) {
	long := strings.Repeat("0.25,", 1<<20)
	write := slices.Concat([]string{"model m-1"}, slices.Repeat([]string{"text " + long}, 2), []string{"stop"})
	s := serve(t, map[string][]upstream{"one": {says(write...)}, "raw": {func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(readAndRestore(r), `"stream":true`):
			w.Header().Set("Content-Type", "text/event-stream")
			for { // an event without an end
				if _, err := io.WriteString(w, "data: "+long); err != nil {
					return
				}
			}
		case strings.HasSuffix(r.URL.Path, "/embeddings"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"list","data":[{"embedding":[%s0]}],"usage":{"prompt_tokens":1,"total_tokens":1}}`, long)
		}
	}}})
	memory := s.handler.site.App.Memory("other")
	memory.MaxWait = 100 * time.Millisecond
	held, refused := memory.Hold(t.Context(), memory.Largest()-1<<20) // all but what the requests take
	if refused != nil {
		t.Fatal(refused)
	}
	lanes := map[string][2]string{
		"an object that passes":  {"/v1/embeddings", `{"model":"raw/m","input":"hi"}`},
		"a translated object":    {"/v1/responses", `{"model":"one/m","input":"hi"}`},
		"a translated stream":    {"/v1/responses", `{"model":"one/m","input":"hi","stream":true}`},
		"a stream in Messages":   {"/v1/messages", `{"model":"one/m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`},
		"the summary of a model": {"/v1/responses/compact", `{"model":"one/m","input":"hi"}`},
	}
	var waiting sync.WaitGroup
	for name, lane := range lanes {
		waiting.Go(func() {
			resp, body := s.postTo(lane[0], strings.NewReader(lane[1]))
			want := http.StatusServiceUnavailable
			if lane[0] == "/v1/messages" {
				want = plugins.StatusOverloaded
			}
			failed := resp.StatusCode == http.StatusOK && strings.Contains(body, "all memory that there is") // after its beginning
			if !failed && (resp.StatusCode != want || resp.Header.Get("Retry-After") == "") {
				t.Errorf("%s: %d %.200s", name, resp.StatusCode, body)
			}
		})
	}
	waiting.Wait()
	held.Release()
	for name, lane := range lanes {
		if resp, body := s.postTo(lane[0], strings.NewReader(lane[1])); resp.StatusCode != http.StatusOK || len(body) < len(long) {
			t.Errorf("%s, with memory: %d %.200s", name, resp.StatusCode, body)
		}
	}
	s.handler.policy.Retries = 0
	chat := `{"model":"raw/m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	if resp, body := s.postTo("/v1/chat/completions", strings.NewReader(chat)); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("an event without an end: %d %.200s", resp.StatusCode, body)
	}
}
