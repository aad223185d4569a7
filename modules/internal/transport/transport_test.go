package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/weirhq/weir/internal/testkit/rawserver"
)

func provision(t *testing.T, options ...func(*Transport)) *Transport {
	t.Helper()
	tr := new(Transport)
	for _, o := range options {
		o(tr)
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	if err := tr.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = tr.Cleanup()
		cancel()
	})
	return tr
}

// trusting is an option that trusts any certificate.
func trusting(tr *Transport) { tr.TLS = &reverseproxy.TLSConfig{InsecureSkipVerify: true} }

func request(t *testing.T, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// closing is a provider that answers the first request of each connection, and does with the
// second what onSecond does. It counts the requests.
func closing(t *testing.T, onSecond func(c net.Conn)) (url string, requests *atomic.Int32) {
	requests = new(atomic.Int32)
	return "http://" + rawserver.Serve(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for first := true; ; first = false {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(r.Body)
			requests.Add(1)
			if !first {
				onSecond(c)
				return
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	}), requests
}

// A request that a used connection does not answer is sent once more, on a new connection, if
// its body can be had again and nothing of an answer has come.
func TestUnansweredRequestIsSentOnceMore(t *testing.T) {
	t.Parallel()
	silent := func(net.Conn) {}
	for name, c := range map[string]struct {
		onSecond func(c net.Conn)
		change   func(r *http.Request)
		requests int32
		fails    bool
	}{
		"closed":            {silent, func(*http.Request) {}, 3, false},
		"empty":             {silent, func(r *http.Request) { r.Body, r.ContentLength, r.GetBody = nil, 0, nil }, 3, false},
		"body is gone":      {silent, func(r *http.Request) { r.GetBody = nil }, 2, true},
		"body is not kept":  {silent, func(r *http.Request) { r.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrNoProgress } }, 2, true},
		"part of an answer": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 2") }, func(*http.Request) {}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := closing(t, c.onSecond)
			tr := provision(t)
			first, err := tr.RoundTrip(request(t, url, strings.NewReader("one")))
			if err != nil || read(t, first) != "one" {
				t.Fatal(err)
			}
			r := request(t, url, strings.NewReader("two"))
			c.change(r)
			resp, err := tr.RoundTrip(r)
			if (err != nil) != c.fails {
				t.Fatal(err)
			}
			if err == nil && r.Body != nil && read(t, resp) != "two" {
				t.Error("another body has come")
			}
			if n := requests.Load(); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

// A provider that closes every connection gets a request twice at most.
func TestRequestIsSentTwiceAtMost(t *testing.T) {
	var requests atomic.Int32
	var refusing atomic.Bool
	url := "http://" + rawserver.Serve(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if requests.Add(1); refusing.Load() {
				return
			}
			time.Sleep(50 * time.Millisecond) // so that each of the first calls has its connection
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	tr := provision(t)
	done := make(chan error)
	const connections = 8
	for range connections {
		r := request(t, url, strings.NewReader("{}"))
		go func() {
			resp, err := tr.RoundTrip(r)
			if err == nil {
				err = resp.Body.Close()
			}
			done <- err
		}()
	}
	for range connections {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	refusing.Store(true)
	if _, err := tr.RoundTrip(request(t, url, strings.NewReader("{}"))); err == nil {
		t.Error("nobody has answered")
	}
	if n := requests.Load() - connections; n != 2 {
		t.Errorf("sent %d times, want 2", n)
	}
}

// A provider that is slow may work on: nothing is sent again after a timeout, nor if the body of
// the client breaks off or the client leaves.
func TestNothingIsSentAgainAfterOtherFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		change func(r *http.Request) *http.Request
		want   func(error) bool
	}{
		"timeout": {func(r *http.Request) *http.Request { return r }, func(err error) bool {
			var timeout net.Error
			return errors.As(err, &timeout) && timeout.Timeout()
		}},
		"body": {func(r *http.Request) *http.Request {
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("{"), failing{broken})), 100
			return r
		}, func(err error) bool { return errors.Is(err, broken) }},
		"client": {func(r *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(r.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			return r.WithContext(ctx)
		}, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			url, requests := closing(t, func(net.Conn) { <-release })
			tr := provision(t, func(tr *Transport) { tr.ResponseHeaderTimeout = caddy.Duration(100 * time.Millisecond) })
			first, err := tr.RoundTrip(request(t, url, strings.NewReader("one")))
			if err != nil {
				t.Fatal(err)
			}
			read(t, first)
			if _, err := tr.RoundTrip(c.change(request(t, url, strings.NewReader("two")))); !c.want(err) {
				t.Error(err)
			}
			if n := requests.Load(); n > 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

type failing struct{ err error }

func (r failing) Read([]byte) (int, error) { return 0, r.err }

// A provider that gives up a waiting connection does so before it has a request whose end comes
// late: the header goes ahead.
func TestHeaderGoesAheadOfASlowBody(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	s.Config.IdleTimeout = 50 * time.Millisecond
	s.Start()
	defer s.Close()
	tr := provision(t)
	first, err := tr.RoundTrip(request(t, s.URL, strings.NewReader("one")))
	if err != nil {
		t.Fatal(err)
	}
	read(t, first)
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "two ")
		time.Sleep(150 * time.Millisecond)
		_, _ = io.WriteString(out, "late")
	}()
	r := request(t, s.URL, in)
	r.ContentLength = int64(len("two late"))
	resp, err := tr.RoundTrip(r)
	if err != nil || read(t, resp) != "two late" {
		t.Error(err)
	}
}

// HTTP/2 is spoken where the provider does, the header of an answer is bounded in each version,
// and no encoding is asked for.
func TestDefaults(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/large" {
				for i := range 300 {
					w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("a", 1000))
				}
			}
			_, _ = io.WriteString(w, r.Proto+r.Header.Get("Accept-Encoding"))
		}))
		proto := "HTTP/1.1"
		if s.EnableHTTP2 = secure; secure {
			s.StartTLS()
			proto = "HTTP/2.0"
		} else {
			s.Start()
		}
		defer s.Close()
		tr := provision(t)
		if secure {
			tr = provision(t, trusting)
		}
		resp, err := tr.RoundTrip(request(t, s.URL, strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, resp); got != proto {
			t.Errorf("%s, want %s", got, proto)
		}
		if resp, err := tr.RoundTrip(request(t, s.URL+"/large", strings.NewReader("{}"))); err == nil {
			t.Errorf("%s: a header of %d fields has come", proto, len(resp.Header))
		}
	}
}

// A protocol that nobody asked for, and a status that no server can pass on, are errors.
func TestAnswersThatAreNone(t *testing.T) {
	for answer, want := range map[string]error{
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n": errSwitched,
		"HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n":                                         errStatus,
	} {
		url := "http://" + rawserver.Serve(t, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, answer)
			}
		})
		if resp, err := provision(t).RoundTrip(request(t, url, strings.NewReader("{}"))); !errors.Is(err, want) {
			t.Errorf("%v, %v, want %v", resp, err, want)
		}
	}
}

// A short request is one write to the connection: whether its body is in memory, or comes from a client.
func TestAShortRequestIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer s.Close()
	for name, body := range map[string]io.Reader{"in memory": bytes.NewReader([]byte("short")), "from a client": io.MultiReader(strings.NewReader("sho"), strings.NewReader("rt"))} {
		var writes atomic.Int32
		tr := provision(t)
		dial := tr.Transport.DialContext
		tr.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			return countingConn{c, &writes}, err
		}
		r := request(t, s.URL, body)
		r.ContentLength, r.GetBody = int64(len("short")), func() (io.ReadCloser, error) { return nil, io.ErrNoProgress }
		resp, err := tr.RoundTrip(r)
		if err != nil || read(t, resp) != "short" || writes.Load() != 1 {
			t.Errorf("%s: %v, %d writes", name, err, writes.Load())
		}
	}
}

// countingConn counts writes.
type countingConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}
