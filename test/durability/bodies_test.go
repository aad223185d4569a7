//go:build linux

package durability

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// filled is text around a filler of some size, which is never in memory.
type filled struct {
	before, after string
	size          int64
	filler        byte
}

func (f filled) length() int64 { return int64(len(f.before)+len(f.after)) + f.size }

func (f filled) reader() io.Reader {
	return io.MultiReader(strings.NewReader(f.before), io.LimitReader(repeated(f.filler), f.size), strings.NewReader(f.after))
}

// repeated reads the same byte for ever.
type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// bodyServer answers every call with one body, and sums what it was sent.
func bodyServer(t *testing.T, heard hash.Hash, header http.Header, answer func() io.Reader) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard.Reset()
		if _, err := io.Copy(heard, r.Body); err != nil {
			return
		}
		for name, values := range header {
			w.Header()[name] = values
		}
		_, _ = io.Copy(w, answer())
	}))
	t.Cleanup(s.Close)
	return s
}

var peakMemory = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that the process has had at a time, in bytes.
func (w *weir) peak() int {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	found := peakMemory.FindSubmatch(text)
	if found == nil {
		w.t.Fatalf("no peak in %s", text)
	}
	kilobytes, _ := strconv.Atoi(string(found[1]))
	return kilobytes << 10
}

// mostMemory is what a process may have had after bodies of any size. It has
// some 90 MiB without any.
const mostMemory = 400 << 20

// chatBodies returns a request and an answer in the dialect chat, each of size bytes.
func chatBodies(size int64) (request, answer filled) {
	return filled{`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"`, `"}]}`, size, 'q'},
		filled{
			`{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"`,
			`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1001,"completion_tokens":1005,"total_tokens":2006}}`, size, 'a',
		}
}

// send posts a body to the proxy and returns the checksum of the answer.
func (w *weir) send(body io.Reader, length int64, encoding string) (sum string, header http.Header) {
	w.t.Helper()
	r, err := http.NewRequest("POST", "http://"+w.site+"/openai/v1/chat/completions", body)
	if err != nil {
		w.t.Fatal(err)
	}
	r.ContentLength = length
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Service-User-Id", "big")
	r.Header.Set("Accept-Encoding", "identity")
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	response, err := calling.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, response.Body); err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), response.Header
}

func sumOf(r io.Reader) string {
	h := sha256.New()
	_, _ = io.Copy(h, r)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestHugeBodies sends a gigabyte each way. Every byte must pass, the memory stay
// bounded, and the record have the metrics and the beginning of both bodies.
func TestHugeBodies(t *testing.T) {
	t.Parallel()
	request, answer := chatBodies(int64(rounds(64, 1024)) << 20)
	heard := sha256.New()
	upstream := bodyServer(t, heard, http.Header{"Content-Type": {"application/json"}}, answer.reader)
	w := newWeir(t, newProvider(t))
	w.upstream = upstream.URL
	w.start(config{})
	since := time.Now()
	got, _ := w.send(request.reader(), request.length(), "")
	if want := sumOf(answer.reader()); got != want {
		t.Error("the client was given other bytes than the provider sent")
	}
	if want := sumOf(request.reader()); fmt.Sprintf("%x", heard.Sum(nil)) != want {
		t.Error("the provider was given other bytes than the client sent")
	}
	if peak := w.peak(); peak > mostMemory {
		t.Errorf("the process took %d MiB", peak>>20)
	}
	w.flush()
	r := w.records(since)["big"]
	switch {
	case r == nil:
		t.Fatal("there is no record")
	case !r.RequestTruncated || !r.ResponseTruncated:
		t.Errorf("request truncated: %t, response truncated: %t", r.RequestTruncated, r.ResponseTruncated)
	case len(r.RequestBody) < 8<<20 || len(r.RequestBody) > 9<<20 || len(r.ResponseBody) < 8<<20 || len(r.ResponseBody) > 9<<20:
		t.Errorf("%d and %d bytes of the bodies were kept", len(r.RequestBody), len(r.ResponseBody))
	case r.PromptTokens == nil || *r.PromptTokens != 1001 || r.CompletionTokens == nil || *r.CompletionTokens != 1005:
		t.Errorf("%s and %s tokens", number(r.PromptTokens), number(r.CompletionTokens))
	}
	w.wantBalance(1, nil)
	t.Logf("%d MiB each way, the process took %d MiB", request.size>>20, w.peak()>>20)
}

// TestBombs sends bodies each way that are small, and gigabytes when decoded.
func TestBombs(t *testing.T) {
	size := int64(rounds(16, 1024)) << 20
	for _, encoding := range encodings[1:] {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			request, answer := chatBodies(size)
			bomb := func(f filled) []byte {
				b := new(bytes.Buffer)
				e := encode(b, encoding)
				if _, err := io.Copy(e, f.reader()); err != nil {
					t.Fatal(err)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				return b.Bytes()
			}
			asked, answered := bomb(request), bomb(answer)
			heard := sha256.New()
			upstream := bodyServer(t, heard, http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {encoding}},
				func() io.Reader { return bytes.NewReader(answered) })
			w := newWeir(t, newProvider(t))
			w.upstream = upstream.URL
			w.start(config{})
			since := time.Now()
			got, header := w.send(bytes.NewReader(asked), int64(len(asked)), encoding)
			if header.Get("Content-Encoding") != encoding || got != sumOf(bytes.NewReader(answered)) {
				t.Errorf("the answer is encoded as %q, or its bytes are others", header.Get("Content-Encoding"))
			}
			if fmt.Sprintf("%x", heard.Sum(nil)) != sumOf(bytes.NewReader(asked)) {
				t.Error("the provider was given other bytes than the client sent")
			}
			if peak := w.peak(); peak > mostMemory {
				t.Errorf("the process took %d MiB", peak>>20)
			}
			w.flush()
			r := w.records(since)["big"]
			if r == nil || !r.RequestTruncated || !r.ResponseTruncated {
				t.Errorf("the record does not say that bodies are truncated: %v", r != nil)
			}
			w.wantBalance(1, nil)
			t.Logf("%d bytes and %d bytes, %d MiB each when decoded; the process took %d MiB", len(asked), len(answered), size>>20, w.peak()>>20)
		})
	}
}
