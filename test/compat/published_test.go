package compat

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/tidwall/sjson"
)

// published are exchanges to hold against the types that the vendors publish, which
// python/strict.py has: requests to providers, and answers to clients.
type published struct {
	mu        sync.Mutex
	exchanges [][]byte        // JSON, each once
	asked     map[string]bool // requests of clients, as rest has them
}

// publishedExchange is a request to the vendor of a kind, or an answer to a client.
type publishedExchange struct {
	Kind   string `json:"kind,omitempty"`
	Path   string `json:"path"`
	Body   string `json:"body,omitempty"`
	Answer string `json:"answer,omitempty"`
}

// newPublished checks at the end of the test what was added in the test. Without -compat
// nothing is added, because the vendors' types need Python.
func newPublished(t *testing.T) *published {
	t.Helper()
	p := &published{asked: make(map[string]bool)}
	if *withClients {
		t.Cleanup(func() { p.check(t) })
	}
	return p
}

func (p *published) add(e publishedExchange) {
	if !*withClients {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges = append(p.exchanges, mustJSON(e))
}

// addRequest adds a request to a provider, unless its bytes are the client's, for which the
// client answers.
func (p *published) addRequest(kind, path string, body []byte) {
	p.mu.Lock()
	own := p.asked[rest(body)]
	p.mu.Unlock()
	if !own {
		p.add(publishedExchange{Kind: kind, Path: path, Body: string(body)})
	}
}

// passed are the fields of a request that may differ where a client's bytes pass.
var passed = []string{"model", "include", "max_tokens", "max_completion_tokens", "stream_options"}

// rest is a request without the fields in passed.
func rest(body []byte) string {
	for _, field := range passed {
		body, _ = sjson.DeleteBytes(body, field) // of what is no object, nothing
	}
	return string(body)
}

func (p *published) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.exchanges, bytes.Compare)
	p.exchanges = slices.CompactFunc(p.exchanges, bytes.Equal)
	cmd := exec.Command(python[0], "python/strict.py")
	cmd.Stdin = bytes.NewReader(bytes.Join(p.exchanges, []byte("\n")))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("python/strict.py: %v (README.md says what to install)\n%s", err, &complaints)
	}
	for line := range bytes.Lines(out) {
		var found struct {
			publishedExchange
			Wrong string
		}
		if err := json.Unmarshal(line, &found); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s %s: %s\nin %.1500s%.1500s", found.Kind, found.Path, found.Wrong, found.Body, found.Answer)
	}
	t.Logf("%d requests and answers were held against the vendors' types", len(p.exchanges))
}

// publishedPaths are the endpoints whose answers have types of a vendor.
var publishedPaths = []string{"/v1/responses", "/v1/chat/completions", "/v1/messages"}

// watchAnswers has the clients of a gateway reach it by a proxy that adds the answers.
func (p *published) watchAnswers(t *testing.T, w *weir) {
	t.Helper()
	if !*withClients {
		return
	}
	gateway, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(gateway)
	proxy.FlushInterval = -1
	proxy.ErrorLog = log.New(t.Output(), "proxy: ", 0)
	proxy.ModifyResponse = func(resp *http.Response) error {
		path := resp.Request.URL.Path
		if resp.StatusCode == http.StatusOK && resp.Request.Method == http.MethodPost && slices.Contains(publishedPaths, path) {
			resp.Body = &watchedBody{ReadCloser: resp.Body, end: func(answer string) { p.add(publishedExchange{Path: path, Answer: answer}) }}
		}
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // or the transport may still read it when the client has its answer
		if err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		p.asked[rest(body)] = true
		p.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
}

// watchedBody keeps what is read, and gives it to end.
type watchedBody struct {
	io.ReadCloser
	read bytes.Buffer
	end  func(string)
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Write(p[:n])
	if err == io.EOF {
		b.end(b.read.String())
	}
	return n, err
}
