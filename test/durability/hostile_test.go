//go:build linux

package durability

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/rawserver"
)

// TestSlowLoris holds hundreds of connections open that never come to an end of
// their request. Others must not notice, and nothing of them may stay.
func TestSlowLoris(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	patient := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(patient.Close)
	w.start(config{site: "handle_path /slow/* {\nllm_proxy openai " + patient.URL + "\n}"})
	since := time.Now()
	first := succeed(t, p, w, 20, 0)
	goroutines, descriptors := w.goroutines(), w.descriptors()

	const head = "POST /slow/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	begin := func(n int, text string) (open []net.Conn) {
		for i := range n {
			c, err := net.Dial("tcp", w.site)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if _, err := fmt.Fprintf(c, "%sService-User-Id: slow-%d\r\n%s", head, i, text); err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		return open
	}
	n := rounds(100, 400)
	slow := begin(n, "X-Slow: ")
	slow = append(slow, begin(n, "Content-Length: 1000000\r\n\r\n{\"model\":")...)
	w.await("the slow bodies are in flight", func() bool { return w.balances()["default"].InFlight == int64(n) })
	calls := map[*call]string{}
	for range 5 {
		for c, id := range succeed(t, p, w, 20, 0) {
			calls[c] = id
		}
		for _, c := range slow {
			if _, err := io.WriteString(c, "1"); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range slow {
		c.Close()
	}
	// Those that were taken on have a record of how they ended.
	w.wantBalance(len(first)+len(calls)+n, nil)
	w.flush()
	records := w.records(since)
	for c, id := range calls {
		c.check(t, records[c.name()], id)
	}
	w.await("goroutines and descriptors are as many as before", func() bool {
		return w.goroutines() <= goroutines+10 && w.descriptors() <= descriptors+6
	})
}

// TestManyHeaders sends more headers than anybody means to, and has the provider
// do so.
func TestManyHeaders(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\r\n", i)
		}
		return b.String()
	}
	answers := many(100_000, "H-%d: v")
	provider := rawserver.Serve(t, func(c net.Conn) { // a server of Go would refuse to
		_, _ = c.Read(make([]byte, 64<<10))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n"+answers+"\r\n{}")
	})
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{
		global: "servers {\nmax_header_size 4MB\n}", // by default far less is refused
		site:   "handle_path /many/* {\nllm_proxy openai http://" + provider + "\n}",
	})
	raw := func(path, headers string) string {
		c, err := net.Dial("tcp", w.site)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(waitLimit))
		go io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n"+headers+"\r\n{}")
		status := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, status); err != nil {
			return err.Error()
		}
		return string(status[len(status)-3:])
	}
	// Either is right: no process has to take them, and none may end of them.
	const taken, refused = "418", "431"
	for _, test := range []struct{ path, headers string }{
		{"/openai/v1/chat/completions", many(100_000, "H-%d: v")},
		{"/openai/v1/chat/completions", many(100_000, "a:%.1d")},
		{"/openai/v1/chat/completions", many(100_000, "Service-Property-N%d: v")},
		{"/openai/v1/chat/completions", many(15_000, "Service-Property-N%d: v")},
		{"/openai/v1/chat/completions", many(15_000, "Service-User-Id: %d")},
		{"/openai/v1/chat/completions", "Service-Properties: {" + strings.ReplaceAll(many(100_000, `"n%d":"v",`), "\r\n", "") + `"n":"v"}` + "\r\n"},
		{"/openai/v1/chat/completions", "Service-Properties: " + strings.Repeat("[", 3<<20) + "\r\n"},
		{"/many/v1/chat/completions", ""},
	} {
		got := raw(test.path, test.headers)
		if got != taken && got != refused && (test.headers != "" || got != "200" && got != "502") {
			t.Errorf("%s with %.30q… answers %s", test.path, test.headers, got)
		}
		t.Logf("%.30q…: %s", test.headers, got)
	}
	b, since := w.settled(), time.Now()
	calls := succeed(t, p, w, 20, 0)
	w.wantBalance(int(b.Recorded)+len(calls), nil)
	records := w.records(since)
	for c, id := range calls {
		c.check(t, records[c.name()], id)
	}
	if peak := w.peak(); peak > mostMemory {
		t.Errorf("the process took %d MiB", peak>>20)
	}
}

// TestDeepJSON sends JSON that is nested so deeply that what goes down into it by
// recursion runs out of stack.
func TestDeepJSON(t *testing.T) {
	for _, depth := range []int{10_000, rounds(500_000, 8_000_000)} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			t.Parallel()
			nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
			deep, query := nested(depth), min(depth, 100_000) // longer queries are refused for their length
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"id":"x","model":"gpt-4o-mini","choices":`+deep+`,"content":`+deep+`}`)
			}))
			t.Cleanup(upstream.Close)
			p := newProvider(t)
			w := newWeir(t, p)
			w.upstream = upstream.URL
			w.start(config{site: "llm_gateway", llm: "provider openai {\nbase_url " + upstream.URL + "\napi_key x\n}\nprovider anthropic {\nbase_url " + upstream.URL + "\napi_key x\n}"})
			for _, test := range []struct{ path, body string }{
				{"/openai/v1/chat/completions", `{"model":"gpt-4o-mini","messages":` + deep + `}`},
				{"/anthropic/v1/messages", `{"model":"claude-haiku-4-5","messages":` + deep + `}`},
				{"/gemini/v1beta/models/gemini-2.5-flash:generateContent", `{"contents":` + deep + `}`},
				{"/v1/responses", `{"model":"gpt-4o-mini","input":` + deep + `}`},
				{"/v1/responses", `{"model":"claude-haiku-4-5","input":` + deep + `}`},
				{"/v1/responses", `{"model":"claude-haiku-4-5","input":"x","tools":[{"type":"function","name":"f","parameters":` + deep + `}]}`},
				{"/v1/chat/completions", `{"model":"gpt-4o-mini","messages":` + deep + `}`},
				{"/v1/messages", `{"model":"claude-haiku-4-5","messages":` + deep + `}`},
				{"/v1/responses", deep},
				{"/v1/request/query-clickhouse", `{"filter":` + strings.Repeat(`{"left":`, query/8) + `"all"` + strings.Repeat(`,"operator":"and","right":"all"}`, query/8) + `}`},
				{"/v1/request/query-clickhouse", `{"filter":` + nested(query) + `}`},
				{"/v1/user/metrics/query", nested(query)},
			} {
				r, err := http.NewRequest("POST", "http://"+w.site+test.path, strings.NewReader(test.body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+key)
				r.Header.Set("Service-Auth", "Bearer "+key) // at proxies
				response, err := calling.Do(r)
				if err != nil {
					t.Fatalf("%s with %.60s…: %v", test.path, test.body, err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if response.StatusCode >= 500 && !(response.StatusCode == http.StatusBadGateway && strings.HasPrefix(test.path, "/v1/")) {
					t.Errorf("%s with %.60s…: %s", test.path, test.body, response.Status)
				}
			}
			w.flush()
			w.settled()
			r, _ := http.NewRequest("POST", "http://"+w.site+"/v1/request/query-clickhouse", strings.NewReader(`{"filter":"all","limit":100}`))
			r.Header.Set("Authorization", "Bearer "+key)
			if _, err := exchange(r); err != nil {
				t.Error(err)
			}
		})
	}
}
