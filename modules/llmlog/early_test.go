package llmlog

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/rawserver"
)

// A provider may answer before it has the whole request, and hang up, as one that refuses the
// key does. What the client still sends is no request of its own: behind a balancer that shares
// connections, its answer would go to somebody else.
func TestTheRestOfARequestIsNoRequest(t *testing.T) {
	taken := make(chan string, 1000)
	upstream := rawserver.Serve(t, func(conn net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			taken <- r.Method
			io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		}
	})
	s := serve(t, options{upstream: upstream, config: object{"provider": "openai"}})
	hidden := strings.Repeat("GET /v1/models HTTP/1.1\r\nHost: example.com\r\n\r\n", 60_000)
	var clients sync.WaitGroup
	ask := func() {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Error(err)
			return
		}
		go fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden)
		defer conn.Close()
		first := make([]byte, 10_000)
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, _ := conn.Read(first)
		conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		more, _ := io.ReadAll(io.LimitReader(conn, 10_000)) // the server may hang up, or wait for another request
		got := append(first[:n], more...)
		if answers := strings.Count(string(got), "HTTP/1.1 "); answers > 1 {
			t.Errorf("%d answers to one request: %.2000s", answers, got)
		}
	}
	for range 10 {
		clients.Go(ask)
	}
	clients.Wait()
	for len(taken) > 0 {
		if method := <-taken; method != http.MethodPost {
			t.Fatalf("the provider got a request %s, which nobody made", method)
		}
	}
}

// A connection does not change to a protocol in which calls would pass that nobody sees.
func TestOnlyWebSocketsAreOffered(t *testing.T) {
	offered := make(chan string, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		offered <- strings.Join(r.Header.Values("Upgrade"), "|")
	}))
	t.Cleanup(upstream.Close)
	s := serve(t, options{upstream: strings.TrimPrefix(upstream.URL, "http://"), config: object{"provider": "openai"}})
	for upgrade, want := range map[string]string{
		"h2c": "", "foo/1": "", "websocket": "websocket", "WebSocket": "websocket", "h2c, websocket": "websocket", "websocket, h2c": "websocket",
	} {
		for _, method := range []string{"GET", "POST"} {
			resp, body := s.do(method, "/v1/models", "", "Connection", "Upgrade", "Upgrade", upgrade)
			if got := <-offered; got != want || resp.StatusCode != http.StatusOK {
				t.Errorf("%s, %s: the provider is offered %q: %d %s", method, upgrade, got, resp.StatusCode, body)
			}
		}
	}
}
