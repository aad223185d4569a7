package llmforward

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/internal/testkit/rawserver"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
)

// provider is one that takes requests, and answers in bytes, whatever HTTP says.
type provider struct {
	address string

	mu   sync.Mutex
	seen []byte // of the newest request
}

// newProvider answers each request with what answer has then, and ends the connection.
func newProvider(t *testing.T, answer *string) *provider {
	p := new(provider)
	p.address = rawserver.Serve(t, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		var seen bytes.Buffer
		r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &seen)))
		if err != nil {
			return
		}
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		p.mu.Lock()
		p.seen = seen.Bytes()
		p.mu.Unlock()
		for i, part := range strings.Split(*answer, "|") {
			if i > 0 {
				time.Sleep(5 * time.Millisecond)
			}
			_, _ = io.WriteString(c, part)
		}
	})
	return p
}

// requests of clients. Each ends its connection.
var requests = map[string]string{
	"GET":          "GET /v1/models?a=b%20c&d HTTP/1.1\r\nHost: weir\r\n",
	"POST":         "POST /v1/chat HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
	"large":        "POST /v1/chat HTTP/1.1\r\nHost: weir\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 100_000),
	"empty":        "POST /v1/chat HTTP/1.1\r\nHost: weir\r\nContent-Length: 0\r\n",
	"chunked":      "POST /v1/chat HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n",
	"expecting":    "POST /v1/chat HTTP/1.1\r\nHost: weir\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
	"hops":         "GET / HTTP/1.1\r\nHost: weir\r\nConnection: X-Drop, keep-alive\r\nX-Drop: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: p\r\nTe: trailers, gzip\r\nX-Keep: 1\r\n",
	"odd hops":     "GET / HTTP/1.1\r\nHost: weir\r\nConnection: x-a,,b c, X-Keep, X-Wide\u00a0\r\nX-A: 1\r\nX-Keep: 1\r\nX-Wide: 1\r\nProxy-Connection: x\r\n",
	"forged":       "GET / HTTP/1.1\r\nHost: weir\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil\r\nForwarded: for=1\r\nVia: 1.0 me\r\nX-Set: mine\r\nX-Removed: 1\r\n",
	"repeated":     "GET / HTTP/1.1\r\nHost: weir\r\nAccept: a\r\naccept: b\r\nCookie: a=1\r\nCookie: b=2\r\nX-Empty:\r\n",
	"agent":        "GET / HTTP/1.1\r\nHost: weir\r\nUser-Agent: me/1\r\n",
	"no agent":     "GET / HTTP/1.1\r\nHost: weir\r\nUser-Agent:\r\n",
	"HEAD":         "HEAD /x HTTP/1.1\r\nHost: weir\r\n",
	"OPTIONS":      "OPTIONS /x HTTP/1.1\r\nHost: weir\r\n",
	"DELETE":       "DELETE /v1/files/a%2Fb HTTP/1.1\r\nHost: weir\r\nContent-Length: 1\r\n\r\nx",
	"paths":        "GET //a/../b/%7Ec/;d?e=%zz;f HTTP/1.1\r\nHost: weir\r\n",
	"absolute":     "GET http://other/a?b HTTP/1.1\r\nHost: weir\r\n",
	"old":          "GET / HTTP/1.0\r\nHost: weir\r\n",
	"upgrade":      "GET / HTTP/1.1\r\nHost: weir\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n",
	"half upgrade": "GET / HTTP/1.1\r\nHost: weir\r\nUpgrade: websocket\r\n",
	"incremental":  "POST / HTTP/1.1\r\nHost: weir\r\nIncremental: ?1\r\nContent-Length: 2\r\n\r\nhi",
}

const date = "Date: Sat, 28 Nov 2026 04:00:00 GMT\r\n"

// answers of the provider. A | is a pause. Each ends its connection.
var answers = map[string]string{
	"length":           "HTTP/1.1 200 OK\r\n" + date + "Content-Type: application/json\r\nContent-Length: 8\r\nServer: s\r\nVia: 1.1 v\r\n\r\n{\"b\":22}",
	"empty":            "HTTP/1.1 200 OK\r\n" + date + "Content-Length: 0\r\n\r\n",
	"to the end":       "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/plain\r\n\r\nab|cd",
	"chunked":          "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n|3\r\ncde\r\n|0\r\n\r\n",
	"events":           "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n|9\r\ndata: 1\n\n\r\n|9\r\ndata: 2\n\n\r\n0\r\n\r\n",
	"events, length":   "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/event-stream\r\nContent-Length: 18\r\n\r\ndata: 1\n\n|data: 2\n\n",
	"trailers":         "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/plain\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 3\r\n\r\n",
	"unsaid trailers":  "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 3\r\n\r\n",
	"hints":            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n|HTTP/1.1 200 OK\r\n" + date + "Content-Length: 2\r\n\r\nab",
	"no content":       "HTTP/1.1 204 No Content\r\n" + date + "\r\n",
	"not modified":     "HTTP/1.1 304 Not Modified\r\n" + date + "Etag: \"a\"\r\nContent-Length: 7\r\n\r\n",
	"refused":          "HTTP/1.1 429 Too Many Requests\r\n" + date + "Retry-After: 7\r\nContent-Length: 2\r\n\r\n{}",
	"own status":       "HTTP/1.1 529 Overloaded\r\n" + date + "Content-Length: 2\r\n\r\n{}",
	"hops":             "HTTP/1.1 200 OK\r\n" + date + "Connection: X-Hop, close\r\nX-Hop: 1\r\nKeep-Alive: a\r\nAlt-Svc: h3\r\nProxy-Authenticate: b\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab",
	"repeated":         "HTTP/1.1 200 OK\r\n" + date + "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nx-lower: 1\r\nContent-Length: 2\r\n\r\nab",
	"old":              "HTTP/1.0 200 OK\r\n" + date + "Content-Length: 2\r\n\r\nab",
	"incremental":      "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/plain\r\nIncremental: ?1\r\nContent-Length: 4\r\n\r\nab|cd",
	"too short":        "HTTP/1.1 200 OK\r\n" + date + "Content-Length: 8\r\n\r\nab",
	"broken off":       "HTTP/1.1 200 OK\r\n" + date + "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n|3\r\nc",
	"broken header":    "HTTP/1.1 200 OK\r\nContent-Le",
	"no HTTP":          "SSH-2.0\r\n\r\n",
	"nothing":          "",
	"switched":         "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"late":             strings.Repeat("|", 80),
	"status of no one": "HTTP/1.1 42 What\r\n\r\n",
	"large":            "HTTP/1.1 200 OK\r\n" + date + "Content-Length: 100000\r\n\r\n" + strings.Repeat("b", 100_000),
}

// known has the placeholders of reverse_proxy that llm_forward has too.
const known = "{http.reverse_proxy.upstream.address} {http.reverse_proxy.upstream.hostport} {http.reverse_proxy.upstream.host} {http.reverse_proxy.upstream.port} " +
	"t={http.reverse_proxy.upstream.latency} t={http.reverse_proxy.upstream.latency_ms} t={http.reverse_proxy.upstream.duration} t={http.reverse_proxy.upstream.duration_ms} " +
	"t={http.reverse_proxy.duration} t={http.reverse_proxy.duration_ms} {http.reverse_proxy.retries} " +
	"{http.reverse_proxy.status_code} {http.reverse_proxy.status_text} {http.reverse_proxy.header.Content-Type} {http.reverse_proxy.header.X-No}"

// serve serves the two proxies, with more options of reverse_proxy for both.
func serve(t *testing.T, upstream, more string) (addresses map[string]string) {
	t.Helper()
	addresses = map[string]string{"reverse_proxy": freeport.Address(t), "llm_forward": freeport.Address(t)}
	var servers []string
	for handler, address := range addresses {
		servers = append(servers, fmt.Sprintf(`%[1]q: {
			"listen": [%[2]q], "automatic_https": {"disable": true},
			"routes": [{"handle": [{
				"handler": "headers", "response": {"deferred": true, "set": {
					"X-Placeholders": [%[5]q]
				}}
			}, {
				"handler": "headers", "response": {"deferred": true, "replace": {"Content-Type": [{"search": "text", "replace": "words"}]}}
			}, {
				"handler": %[1]q,
				"upstreams": [{"dial": %[3]q}],
				"transport": {"protocol": "llm", "response_header_timeout": "300ms", "keep_alive": {"enabled": false}},
				"headers": {"request": {
					"set": {"Host": ["api.example.com"], "X-Set": ["{http.request.method} b", "c"], "X-Escaped": ["a\\}"]},
					"delete": ["Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "x-removed"]
				}}
				%[4]s
			}]}],
			"errors": {"routes": [{"handle": [{"handler": "static_response", "headers": {"X-Placeholders": [%[5]q]}}]}]}
		}`, handler, address, upstream, more, known))
	}
	err := caddy.Load([]byte(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "DEBUG", "writer": {"output": "file", "filename": "`+logOf(t)+`"}}}},
		"apps": {"http": {"servers": {`+strings.Join(servers, ",")+`}}}
	}`), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	return addresses
}

// logOf is the file that has the log of a test.
func logOf(t *testing.T) string { return filepath.Join(t.ArtifactDir(), "log") }

// served returns the handler that serves llm_forward.
func served(t *testing.T) *Handler {
	t.Helper()
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	handlers := app.(*caddyhttp.App).Servers["llm_forward"].Routes[0].Handlers
	return handlers[len(handlers)-1].(*Handler)
}

// exchange sends a request, and reads what comes until the end.
func exchange(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	head, body, has := strings.Cut(request, "\r\n\r\n")
	if !has {
		head = strings.TrimSuffix(request, "\r\n")
	}
	if before, after, own := strings.Cut(head, "\nConnection: "); own {
		head = before + "\nConnection: close, " + after
	} else {
		head += "\r\nConnection: close"
	}
	_, _ = io.WriteString(c, head+"\r\n\r\n"+body)
	if strings.Contains(request, "Transfer-Encoding") {
		_, _ = io.WriteString(c, "\r\n")
	}
	answer, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		answer = append(answer, "\n"+err.Error()...)
	}
	return string(answer)
}

// What the provider and the client get is what they get from reverse_proxy, byte for byte.
func TestBytesAreThoseOfReverseProxy(t *testing.T) {
	var answer string
	p := newProvider(t, &answer)
	addresses := serve(t, p.address, "")
	if served(t).direct == nil {
		t.Fatal("all goes through reverse_proxy")
	}
	compare := func(name, request string) {
		got, seen := make(map[string]string), make(map[string]string)
		for handler, address := range addresses {
			p.mu.Lock()
			p.seen = nil
			p.mu.Unlock()
			got[handler] = exchange(t, address, request)
			p.mu.Lock()
			seen[handler] = string(p.seen)
			p.mu.Unlock()
		}
		if a, b := seen["reverse_proxy"], seen["llm_forward"]; a != b {
			t.Errorf("%s: the provider gets\n%.2000s\nfrom reverse_proxy, and\n%.2000s", name, a, b)
		}
		if a, b := untimed(got["reverse_proxy"]), untimed(got["llm_forward"]); a != b {
			t.Errorf("%s: the client gets\n%.2000s\nfrom reverse_proxy, and\n%.2000s", name, a, b)
		}
	}
	for name, request := range requests {
		answer = answers["length"]
		compare(name, request)
	}
	for name := range answers {
		for _, request := range []string{"GET", "POST", "HEAD", "old"} {
			answer = answers[name]
			compare(name+" to "+request, requests[request])
		}
	}
}

func TestUnreachableProvider(t *testing.T) {
	for handler, address := range serve(t, freeport.Address(t), "") {
		if got := exchange(t, address, requests["POST"]); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
			t.Errorf("%s: %s", handler, got)
		}
	}
}

// The log of a request and its answer is that of reverse_proxy, at the level DEBUG, and so is why an
// answer broke off.
func TestLog(t *testing.T) {
	answer := answers["too short"]
	p := newProvider(t, &answer)
	logged, reasons := make(map[string]map[string]any), make(map[string]any)
	for handler, address := range serve(t, p.address, "") {
		exchange(t, address, requests["POST"])
		log, err := os.ReadFile(logOf(t))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			var entry map[string]any
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
			switch {
			case entry["logger"] != "http.handlers."+handler:
			case entry["msg"] == "upstream roundtrip":
				for _, name := range []string{"ts", "logger", "duration"} {
					delete(entry, name)
				}
				delete(entry["request"].(map[string]any), "remote_port")
				logged[handler] = entry
			case entry["msg"] == "aborting with incomplete response":
				reasons[handler] = entry["error"]
			}
		}
	}
	if a, b := logged["reverse_proxy"], logged["llm_forward"]; a == nil || !reflect.DeepEqual(a, b) {
		t.Errorf("reverse_proxy logs\n%v\nand llm_forward\n%v", a, b)
	}
	if a, b := reasons["reverse_proxy"], reasons["llm_forward"]; a == nil || a != b {
		t.Errorf("the answer broke off in reverse_proxy by %v, and in llm_forward by %v", a, b)
	}
}

// An option that only reverse_proxy knows works.
func TestOptionsOfReverseProxy(t *testing.T) {
	answer := answers["length"]
	p := newProvider(t, &answer)
	for name, more := range map[string]string{
		"load balancing":   `"load_balancing": {"retries": 1}`,
		"health checks":    `"health_checks": {"passive": {"fail_duration": "1s"}}`,
		"rewrite":          `"rewrite": {"uri": "/other"}`,
		"request buffers":  `"request_buffers": 10`,
		"response buffers": `"response_buffers": 10`,
		"flush interval":   `"flush_interval": "1s"`,
		"logs":             `"verbose_logs": true`,
		"responses":        `"handle_response": [{"match": {"status_code": [2]}, "routes": [{"handle": [{"handler": "static_response", "body": "x"}]}]}]`,
		"response header":  `"headers": {"request": {"set": {"Host": ["a"]}}, "response": {"set": {"X-B": ["1"]}}}`,
		"added header":     `"headers": {"request": {"set": {"Host": ["a"]}, "add": {"Via": ["1"], "X-Forwarded-For": ["1"], "X-Forwarded-Proto": ["1"], "X-Forwarded-Host": ["1"]}}}`,
		"replaced header":  `"headers": {"request": {"set": {"Host": ["a"]}, "replace": {"Accept": [{"search": "a", "replace": "b"}]}}}`,
		"all forwarded":    `"headers": {"request": {"set": {"Host": ["a"]}}}`,
		"any header":       `"headers": {"request": {"set": {"Host": ["a"]}, "delete": ["X-*", "Via"]}}`,
		"own host":         `"headers": {"request": {"delete": ["Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"]}}`,
		"removed host":     `"headers": {"request": {"set": {"Host": ["a"]}, "delete": ["host", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"]}}`,
		"no header":        `"headers": null`,
		"transport":        `"transport": {"protocol": "http"}`,
		"proxy protocol":   `"transport": {"protocol": "llm", "proxy_protocol": "v1"}`,
		"upstreams":        `"upstreams": [{"dial": "` + p.address + `"}, {"dial": "` + p.address + `"}]`,
		"limited upstream": `"upstreams": [{"dial": "` + p.address + `", "max_requests": 5}]`,
		"socket":           `"upstreams": [{"dial": "unix//tmp/none"}]`,
		"varying upstream": `"upstreams": [{"dial": "{http.request.host}:80"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, p.address, ","+more)
			if served(t).direct != nil {
				t.Error("requests go past reverse_proxy")
			}
		})
	}
}

// A request that failed at one provider goes to another, whose placeholders are seen then.
func TestPlaceholdersOfTheSecondProvider(t *testing.T) {
	answer := answers["length"]
	p := newProvider(t, &answer)
	address := freeport.Address(t)
	proxy := func(upstream string) string {
		return `{"handler": "llm_forward", "upstreams": [{"dial": "` + upstream + `"}], "transport": {"protocol": "llm"},
			"headers": {"request": {"set": {"Host": ["a"]}, "delete": ["Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"]}}}`
	}
	for _, first := range []string{"llm_forward", "reverse_proxy"} {
		err := caddy.Load([]byte(`{
			"admin": {"disabled": true, "config": {"persist": false}},
			"apps": {"http": {"servers": {"s": {
				"listen": ["`+address+`"], "automatic_https": {"disable": true},
				"routes": [{"handle": [`+strings.Replace(proxy(freeport.Address(t)), "llm_forward", first, 1)+`]}],
				"errors": {"routes": [{"handle": [
					{"handler": "headers", "response": {"deferred": true, "set": {"X-At": ["{http.reverse_proxy.upstream.hostport} {http.reverse_proxy.status_code}"]}}},
					`+proxy(p.address)+`
				]}]}
			}}}}
		}`), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := exchange(t, address, requests["GET"]); !strings.Contains(got, "\nX-At: "+p.address+" 200\r\n") {
			t.Errorf("after %s: %s", first, got)
		}
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// A field can have what an earlier proxy was answered, such as that of forward_auth.
func TestPlaceholdersOfTheProxyBefore(t *testing.T) {
	asked, answered := answers["length"], answers["nothing"]
	before, p := newProvider(t, &asked), newProvider(t, &answered)
	for _, handler := range []string{"reverse_proxy", "llm_forward"} {
		address := freeport.Address(t)
		err := caddy.Load([]byte(`{
			"admin": {"disabled": true, "config": {"persist": false}},
			"apps": {"http": {"servers": {"s": {
				"listen": ["`+address+`"], "automatic_https": {"disable": true},
				"routes": [{"handle": [
					{"handler": "reverse_proxy", "upstreams": [{"dial": "`+before.address+`"}], "handle_response": [{"routes": [{"handle": [{"handler": "vars"}]}]}]},
					{"handler": "`+handler+`", "upstreams": [{"dial": "`+p.address+`"}], "transport": {"protocol": "llm"}, "headers": {"request": {
						"set": {"Host": ["a"], "X-Before": ["{http.reverse_proxy.status_code} {http.reverse_proxy.header.Server} at {http.reverse_proxy.upstream.hostport}"]},
						"delete": ["Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"]
					}}}
				]}]
			}}}}
		}`), true)
		if err != nil {
			t.Fatal(err)
		}
		exchange(t, address, requests["GET"])
		p.mu.Lock()
		if !strings.Contains(string(p.seen), "\nX-Before: 200 s at "+p.address+"\r\n") {
			t.Errorf("%s: the provider gets %s", handler, p.seen)
		}
		p.mu.Unlock()
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// times are dates and durations that Caddy writes.
var times = regexp.MustCompile(`(?m)^Date: .*\n| t=[0-9]\S*`)

// untimed is an answer without times.
func untimed(answer string) string { return times.ReplaceAllString(answer, "") }
