//go:build linux

package durability

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"
)

const (
	// boundedMemory is what the process may take, and what it is told that there is, in bytes.
	boundedMemory = 512 << 20
	// attackers attack at once, and heldConnections are kept open by callers of each kind.
	attackers, heldConnections = 6, 8
	// noise is what a call of a neighbour may take on a machine with other work.
	noise = 500 * time.Millisecond
)

// TestBoundsOfEachRoute starts a Weir that has 512 MB, and attacks each route by what is cheapest there,
// all at once: an announced length, slow bytes, idle sockets, bodies that decode to a thousand times their
// length, headers of a megabyte, and JSON that is dear to read. The process must keep to its memory, and a
// neighbour of another organisation must be served in three times its own time.
// modules/standard/bounds_test.go attacks within one process, and with more kinds of bodies.
func TestBoundsOfEachRoute(t *testing.T) {
	if !*full {
		t.Skip("takes minutes: -full")
	}
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(sink.Close)
	w := newWeir(t, newProvider(t))
	w.upstream, w.env = sink.URL, []string{fmt.Sprint("GOMEMLIMIT=", boundedMemory)}
	w.start(config{
		llm:  "provider echo\norg victim {\nkey victim-key\n}\norg thief {\nkey thief-key gateway query write log admin\n}",
		site: "llm_gateway\nllm_control",
	})
	all := w.describedRoutes()
	if len(all) < 60 {
		t.Fatalf("only %d routes: %v", len(all), all)
	}
	before := w.neighbour()
	most := max(3*before, noise)
	for range 25 * heldConnections {
		w.hold("")
		w.hold("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-")
	}
	bombs := bombs()
	for _, r := range all {
		ctx, cancel := context.WithCancel(t.Context())
		var attack sync.WaitGroup
		held := w.holdBodies(ctx, r, &attack)
		for i := range attackers {
			attack.Go(func() {
				for n := i; ctx.Err() == nil; n++ {
					w.strike(ctx, r, n, bombs[n%len(bombs)])
				}
			})
		}
		took := w.neighbour()
		if took > most { // perhaps because of other work of the machine
			took = w.neighbour()
		}
		cancel()
		attack.Wait()
		for _, c := range held {
			c.Close()
		}
		if took > most {
			t.Errorf("%s: a neighbour waits %s, and %s if nobody attacks", r, took, before)
		}
		if peak := w.peak(); peak > boundedMemory {
			t.Fatalf("%s: the process has taken %d MB", r, peak>>20)
		}
	}
	t.Logf("%d routes: a neighbour's calls take %s; the process has taken %d MB", len(all), before, w.peak()>>20)
}

// describedRoute is a route of the APIs' descriptions, or of a proxy.
type describedRoute struct{ method, path string }

func (r describedRoute) String() string { return r.method + " " + r.path }

var pathParameter = regexp.MustCompile(`\{[^}]*\}`)

// describedRoutes are all routes of the site.
func (w *weir) describedRoutes() (all []describedRoute) {
	w.t.Helper()
	for _, path := range []string{"/openai/v1/chat/completions", "/openai/v1/responses", "/anthropic/v1/messages", "/gemini/v1beta/models/gemini-2.5-flash:generateContent"} {
		all = append(all, describedRoute{"POST", path})
	}
	for _, description := range []string{"/openapi.json", "/v1/openapi.json", "/v1/keys/openapi.json"} {
		_, text := w.as(w.t, "thief-key", "GET", description, "")
		gjson.Get(text, "paths").ForEach(func(path, operations gjson.Result) bool {
			for method := range operations.Map() {
				if method != "parameters" {
					all = append(all, describedRoute{strings.ToUpper(method), pathParameter.ReplaceAllString(path.Str, "x")})
				}
			}
			return true
		})
	}
	slices.SortFunc(all, func(a, b describedRoute) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// neighbour makes calls of an organisation that does no harm, and returns the time of the slowest but one
// of a hundred.
func (w *weir) neighbour() time.Duration {
	w.t.Helper()
	took := make([]time.Duration, 100)
	for i := range took {
		method, path, body := "POST", "/v1/chat/completions", `{"model":"echo/echo-1","messages":[{"role":"user","content":"hi"}]}`
		switch i % 3 {
		case 1:
			path, body = "/v1/request/query", `{"filter":"all","limit":1}`
		case 2:
			method, path, body = "GET", "/v1/models", ""
		}
		begun := time.Now()
		if status, answer := w.as(w.t, "victim-key", method, path, body); status != http.StatusOK {
			w.t.Errorf("a neighbour's %s: %d %.200s", path, status, answer)
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took[len(took)-2]
}

// hold opens a connection that stays open, and says something.
func (w *weir) hold(says string) net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.site)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, says); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// attackKeys are those of who attacks: another organisation, and nobody.
var attackKeys = []string{"Authorization: Bearer thief-key\r\nService-Auth: Bearer thief-key\r\n", ""}

// holdBodies opens connections whose bodies announce 60 MB and do not come, or come slowly until the
// context ends.
func (w *weir) holdBodies(ctx context.Context, r describedRoute, slow *sync.WaitGroup) (held []net.Conn) {
	w.t.Helper()
	for i := range heldConnections {
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%s", r.method, r.path, attackKeys[i%2])
		held = append(held, w.hold(head+"Content-Length: 60000000\r\n\r\n{"))
		c := w.hold(head + "Transfer-Encoding: chunked\r\n\r\n")
		held = append(held, c)
		slow.Go(func() {
			for ctx.Err() == nil {
				if _, err := io.WriteString(c, "1\r\n \r\n"); err != nil { // refused, which is as good
					return
				}
				time.Sleep(100 * time.Millisecond) // that is the attack
			}
		})
	}
	return held
}

// bomb is a body that is dear to read, and a header.
type bomb struct {
	encoding string
	body     []byte
	header   int // how many bytes of header there are
}

// bombs are what is sent to each route.
func bombs() (all []bomb) {
	text := []byte(`{"model":"echo/echo-1","filter":"all","messages":[` + strings.Repeat(`{},`, 8<<20) + `{}]}`)
	for encoding, open := range map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(b io.Writer) io.WriteCloser { return gzip.NewWriter(b) },
		"br":   func(b io.Writer) io.WriteCloser { return brotli.NewWriterLevel(b, 5) },
		"zstd": func(b io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(b); return z }, // without options
	} {
		var b bytes.Buffer
		z := open(&b)
		_, _ = z.Write(text)
		_ = z.Close()
		all = append(all, bomb{encoding: encoding, body: b.Bytes()})
	}
	const size = 256 << 10
	repeat := func(part string) string { return strings.Repeat(part, size/len(part)) }
	for _, body := range []string{
		repeat("["), strings.Repeat(`{"a":`, size/6) + "0" + strings.Repeat("}", size/6),
		`{"model":"echo/echo-1","messages":[` + repeat(`{"role":"user","content":"a"},`) + `{"role":"user","content":"a"}]}`,
		`{"model":"echo/echo-1","input":"hi","tools":[` + repeat(`{"type":"function","name":"f","parameters":{"anyOf":[{},{}]}},`) + `{}]}`,
		`{"filter":` + strings.Repeat(`{"operator":"or","left":"all","right":`, size/40) + `"all"` + strings.Repeat("}", size/40) + `}`,
		`{"filter":{"request_response_rmt":{"request_body":{"contains":"` + repeat("%a_") + `"}}}}`,
	} {
		all = append(all, bomb{body: []byte(body)})
	}
	return append(all, bomb{header: 900 << 10})
}

// strike sends a bomb, as the nth.
func (w *weir) strike(ctx context.Context, r describedRoute, n int, b bomb) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.method, "http://"+w.site+r.path, bytes.NewReader(b.body))
	if err != nil {
		w.t.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	if b.encoding != "" {
		request.Header.Set("Content-Encoding", b.encoding)
	}
	for line := range b.header / 1000 {
		request.Header.Set(fmt.Sprint("Service-Property-N", line), strings.Repeat("v", 1000))
	}
	if n/2%2 == 0 {
		request.Header.Set("Authorization", "Bearer thief-key")
		request.Header.Set("Service-Auth", "Bearer thief-key")
	}
	response, err := direct.Do(request)
	if err != nil { // refused by closing, or the attack is over
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
}
