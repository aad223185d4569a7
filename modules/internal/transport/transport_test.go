package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/rawserver"
)

// No call leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// server counts the connections that it accepts.
type server struct {
	*httptest.Server
	connections atomic.Int32
}

func serve(t *testing.T, h http.HandlerFunc, secure bool) *server {
	s := &server{Server: httptest.NewUnstartedServer(h)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	if s.EnableHTTP2 = secure; secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// raw is a provider that answers each connection by do, which may have to read the request.
func raw(t *testing.T, do func(c net.Conn, r *http.Request), unread ...bool) string {
	return "http://" + rawserver.Serve(t, func(c net.Conn) {
		if len(unread) > 0 && unread[0] {
			do(c, nil)
		} else if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			do(c, r)
		}
	})
}

func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
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

// trusting is an option that trusts any certificate.
func trusting(tr *Transport) { tr.TLS = &reverseproxy.TLSConfig{InsecureSkipVerify: true} }

// What arrives is what http.Transport would have sent, and what comes back too, over one
// connection that is used again and again.
func TestRequestsAndAnswersAreThoseOfGo(t *testing.T) {
	t.Parallel()
	large := make([]byte, 3<<20)
	_, _ = rand.Read(large)
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Host, " ", r.ContentLength, " ", r.TransferEncoding, " ", r.Header, " ", r.Trailer))
		if r.Header.Get("X-Chunked") != "" {
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Trailer:X-Sum", "7")
		_, _ = w.Write(body)
	}
	for _, secure := range []bool{false, true} {
		s, mine := serve(t, echo, secure), serve(t, echo, secure)
		own := provision(t, trusting)
		if !secure {
			own = provision(t)
		}
		other := &http.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		t.Cleanup(other.CloseIdleConnections)
		for name, of := range map[string]func() *http.Request{
			"get":     func() *http.Request { return request(t, "GET", s.URL+"/v1/models?a=b%2F", nil) },
			"head":    func() *http.Request { return request(t, "HEAD", s.URL+"/", nil) },
			"small":   func() *http.Request { return request(t, "POST", s.URL+"/x", strings.NewReader("{}")) },
			"empty":   func() *http.Request { return request(t, "POST", s.URL+"/x", http.NoBody) },
			"border":  func() *http.Request { return request(t, "POST", s.URL+"/x", bytes.NewReader(large[:smallBody])) },
			"above":   func() *http.Request { return request(t, "POST", s.URL+"/x", bytes.NewReader(large[:smallBody+1])) },
			"large":   func() *http.Request { return request(t, "PUT", s.URL+"/x", bytes.NewReader(large)) },
			"unknown": func() *http.Request { return request(t, "POST", s.URL+"/x", io.MultiReader(bytes.NewReader(large))) },
			"headers": func() *http.Request {
				r := request(t, "POST", s.URL+"/x", strings.NewReader("{}"))
				r.Header = http.Header{"X-Chunked": {"1"}, "User-Agent": {""}, "A": {"1", "2"}}
				return r
			},
			"trailer": func() *http.Request {
				r := request(t, "POST", s.URL+"/x", io.MultiReader(strings.NewReader("{}")))
				r.Trailer = http.Header{"X-T": {"v"}}
				return r
			},
		} {
			t.Run(fmt.Sprint(name, secure), func(t *testing.T) {
				before := mine.connections.Load()
				for range 3 {
					theirs, ours := of(), of()
					theirs.Host, ours.Host = "api.example.com", "api.example.com"
					ours.URL.Host = mine.Listener.Addr().String() // Go's transport opens connections ahead of need
					want, err := other.RoundTrip(theirs)
					if err != nil {
						t.Fatal(err)
					}
					got, err := own.RoundTrip(ours)
					if err != nil {
						t.Fatal(err)
					}
					if a, b := read(t, want), read(t, got); a != b {
						t.Fatalf("%d bytes, want %d", len(b), len(a))
					}
					want.Header.Del("Date")
					got.Header.Del("Date")
					if a, b := fmt.Sprint(want.StatusCode, want.Header, want.Trailer, want.ContentLength, want.TransferEncoding),
						fmt.Sprint(got.StatusCode, got.Header, got.Trailer, got.ContentLength, got.TransferEncoding); a != b {
						t.Fatalf("%s\nwant %s", b, a)
					}
				}
				if opened := mine.connections.Load() - before; opened > 2 {
					t.Errorf("%d connections", opened)
				}
			})
		}
	}
}

// Many calls of all sizes get their own answers.
func TestCallsAtOnce(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" { // what refuses does not read on
			http.Error(w, r.URL.RawQuery, http.StatusTooManyRequests)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}, false)
	tr := provision(t)
	var all sync.WaitGroup
	for client := range 16 {
		all.Go(func() {
			for call := range 60 {
				text := strings.Repeat(fmt.Sprint(client, "-", call, " "), 1+call*call*4)
				path, want, status := "/", text, http.StatusOK
				if call%7 == 3 {
					path, want, status = fmt.Sprint("/early?", client, "-", call), fmt.Sprint(client, "-", call, "\n"), http.StatusTooManyRequests
				}
				ctx, cancel := context.WithCancel(t.Context())
				r, _ := http.NewRequestWithContext(ctx, "POST", s.URL+path, strings.NewReader(text))
				resp, err := tr.RoundTrip(r)
				switch {
				case err != nil && status == http.StatusOK:
					t.Error(err)
				case err != nil: // the provider has closed the connection before its answer was read
				case call%5 == 4: // a client that leaves
					cancel()
					resp.Body.Close()
				default:
					if body, err := io.ReadAll(resp.Body); string(body) != want || resp.StatusCode != status {
						t.Errorf("%d, %d bytes, want %d and %d: %v", resp.StatusCode, len(body), status, len(want), err)
					}
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
}

// A provider that closes a connection which waits costs no call.
func TestClosedConnections(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, false)
	tr := provision(t)
	for range 20 {
		resp, err := tr.RoundTrip(request(t, "POST", s.URL, strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		read(t, resp)
		s.CloseClientConnections()
	}
	if n := s.connections.Load(); n != 20 {
		t.Errorf("%d connections, want one a call", n)
	}
}

// An answer that says why a large request is not taken arrives, although the request is not
// read.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	address := raw(t, func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		time.Sleep(2 * lateAnswer) // the request is not read meanwhile
		_, _ = io.Copy(io.Discard, c)
		closed <- struct{}{}
	})
	tr := provision(t)
	for _, body := range []io.Reader{bytes.NewReader(make([]byte, 64<<20)), io.MultiReader(bytes.NewReader(make([]byte, 64<<20)))} {
		resp, err := tr.RoundTrip(request(t, "POST", address, body))
		if err != nil || resp.StatusCode != 413 || read(t, resp) != "no" {
			t.Fatal(resp, err)
		}
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection stays open")
		}
	}
}

// What a provider sends behind an answer is no answer to the next call, and a connection
// that was not left as it was is closed.
func TestBytesAfterTheEnd(t *testing.T) {
	certificate := serve(t, nil, true).TLS.Certificates
	for _, size := range []int{2, 5000, 40000} {
		for _, secure := range []bool{false, true} {
			closed := make(chan struct{}, 2)
			var number atomic.Int32
			address := raw(t, func(c net.Conn, _ *http.Request) {
				mine := number.Add(1)
				if secure {
					s := tls.Server(c, &tls.Config{Certificates: certificate})
					if _, err := http.ReadRequest(bufio.NewReader(s)); err != nil {
						return
					}
					c = s
				}
				body := fmt.Sprintf("%*d", size, mine)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: "+fmt.Sprint(size)+"\r\n\r\n"+body+
					"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled")
				_, _ = io.Copy(io.Discard, c)
				closed <- struct{}{}
			}, secure)
			tr := provision(t)
			if secure {
				tr = provision(t, trusting)
				address = strings.Replace(address, "http:", "https:", 1)
			}
			for call := range 2 {
				resp, err := tr.RoundTrip(request(t, "GET", address, nil))
				if err != nil {
					t.Fatal(err)
				}
				if body := read(t, resp); strings.TrimSpace(body) != fmt.Sprint(call+1) {
					t.Errorf("%d bytes, TLS %v: %.20q", size, secure, strings.TrimSpace(body))
				}
			}
			_ = tr.Cleanup()
			<-closed
			<-closed
		}
	}
}

// A client that leaves ends the call, wherever the call is, with the reason of its context.
func TestClientsThatLeave(t *testing.T) {
	for name, answer := range map[string]string{
		"before the header": "",
		"in the header":     "HTTP/1.1 200 OK\r\nX-",
		"in the body":       "HTTP/1.1 200 OK\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan error, 1)
			address := raw(t, func(c net.Conn, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(c, answer)
				_, err := c.Read(make([]byte, 1))
				gone <- err
			})
			tr := provision(t)
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, leave)
			r, _ := http.NewRequestWithContext(ctx, "POST", address, strings.NewReader("{}"))
			resp, err := tr.RoundTrip(r)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want the context's", err)
			}
			if err := <-gone; err == nil {
				t.Error("the provider was told nothing")
			}
		})
	}
}

// What a provider says before its answer is passed on, and a header has an end.
func TestHeaders(t *testing.T) {
	address := raw(t, func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	var told []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		told = append(told, fmt.Sprint(code, h.Get("Link")))
		return nil
	}})
	r, _ := http.NewRequestWithContext(ctx, "POST", address, strings.NewReader("{}"))
	resp, err := provision(t).RoundTrip(r)
	if err != nil || read(t, resp) != "ok" || fmt.Sprint(told) != "[103</a>]" {
		t.Error(resp, err, told)
	}

	endless := raw(t, func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(c, "X-A: "+strings.Repeat("a", 1000)+"\r\n"); err != nil {
				return
			}
		}
	})
	tr := provision(t, func(tr *Transport) { tr.MaxResponseHeaderSize = 64 << 10 })
	if _, err := tr.RoundTrip(request(t, "POST", endless, strings.NewReader("{}"))); !errors.Is(err, errHeaderSize) {
		t.Error(err)
	}
	slow := raw(t, func(c net.Conn, _ *http.Request) { _, _ = io.Copy(io.Discard, c) })
	tr = provision(t, func(tr *Transport) { tr.ResponseHeaderTimeout = caddy.Duration(30 * time.Millisecond) })
	_, err = tr.RoundTrip(request(t, "POST", slow, strings.NewReader("{}")))
	if n, ok := errors.AsType[net.Error](err); !ok || !n.Timeout() {
		t.Error(err)
	}
}

// A body that breaks off ends the call with the reason of the body.
func TestBodyThatBreaksOff(t *testing.T) {
	address := raw(t, func(c net.Conn, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	broken := errors.New("broken")
	for _, length := range []int64{100, 1 << 20, -1} {
		r := request(t, "POST", address, io.MultiReader(strings.NewReader("{"), iotestErr{broken}))
		r.ContentLength = length
		if _, err := provision(t).RoundTrip(r); !errors.Is(err, broken) {
			t.Errorf("%d: %v", length, err)
		}
	}
}

type iotestErr struct{ err error }

func (r iotestErr) Read([]byte) (int, error) { return 0, r.err }

// A certificate that nobody has signed is refused, and HTTP/1.1 is spoken with one that is
// trusted.
func TestTLS(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }, true)
	tr := provision(t)
	r := request(t, "POST", s.URL, strings.NewReader("{}"))
	_, err := tr.RoundTrip(r)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Error(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	tr.Transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	r = request(t, "POST", strings.Replace(s.URL, "127.0.0.1", "example.com", 1), strings.NewReader("{}"))
	dial := tr.Transport.DialContext
	tr.Transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial(ctx, network, s.Listener.Addr().String())
	}
	resp, err := tr.RoundTrip(r)
	if err != nil || read(t, resp) != "HTTP/1.1" {
		t.Error(resp, err)
	}
}

// What the transport does not speak goes through Go's.
func TestOtherWays(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }, true)
	tr := provision(t, trusting, func(tr *Transport) { tr.Versions = []string{"1.1", "2"} })
	resp, err := tr.RoundTrip(request(t, "POST", s.URL, strings.NewReader("{}")))
	if err != nil || read(t, resp) != "HTTP/2.0" {
		t.Error(resp, err)
	}

	through := false
	tr = provision(t)
	proxied := serve(t, func(w http.ResponseWriter, r *http.Request) { through = r.URL.IsAbs() }, false)
	tr.Transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxied.URL) }
	resp, err = tr.RoundTrip(request(t, "POST", "http://provider.example/", strings.NewReader("{}")))
	if err != nil || !through {
		t.Error(resp, err)
	}
	read(t, resp)
}

// Connections that nobody uses are closed, and those of a configuration that is gone.
func TestIdleConnections(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {}, false)
	tr := provision(t, func(tr *Transport) {
		tr.KeepAlive = &reverseproxy.KeepAlive{IdleConnTimeout: caddy.Duration(50 * time.Millisecond), MaxIdleConnsPerHost: 2}
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			resp, err := tr.RoundTrip(request(t, "POST", s.URL, strings.NewReader("{}")))
			if err != nil {
				t.Error(err)
				return
			}
			read(t, resp)
		})
	}
	all.Wait()
	waiting := func() (n int) {
		tr.idle.mu.Lock()
		defer tr.idle.mu.Unlock()
		for _, idle := range tr.idle.idle {
			n += len(idle)
		}
		return n
	}
	if n := waiting(); n == 0 || n > 2 {
		t.Errorf("%d wait, want at most 2", n)
	}
	for deadline := time.Now().Add(5 * time.Second); waiting() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("connections wait for ever")
		}
	}
}

// slowly is a body that takes its time, and tells when somebody reads on after it was ended.
type slowly struct {
	left  int
	pause time.Duration
	ended atomic.Bool
	late  atomic.Int32
}

func (b *slowly) Read(p []byte) (int, error) {
	if b.ended.Load() {
		b.late.Add(1)
	}
	time.Sleep(b.pause)
	if b.ended.Load() {
		b.late.Add(1)
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), b.left, 1000)
	b.left -= n
	return n, nil
}

// A caller may send a body again after an error, and use its memory for another request after
// the answer: the transport does not read on.
func TestBodyIsNotReadAfterTheCall(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"error": "", "answer": "HTTP/1.1 429 Slow Down\r\nContent-Length: 2\r\n\r\nno", "empty": "HTTP/1.1 429 Slow Down\r\nContent-Length: 0\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			address := raw(t, func(c net.Conn, _ *http.Request) {
				if _, _ = io.WriteString(c, answer); answer != "" {
					_, _ = io.Copy(io.Discard, c)
				}
			})
			body := &slowly{left: 1 << 20, pause: 20 * time.Millisecond}
			resp, err := provision(t).RoundTrip(request(t, "POST", address, body))
			if (err == nil) != (answer != "") {
				t.Fatal(resp, err)
			}
			may := int32(0)
			if err == nil {
				read(t, resp)
				may = 2 // of the Read that had begun
			}
			body.ended.Store(true)
			time.Sleep(5 * body.pause)
			if n := body.late.Load(); n > may {
				t.Errorf("read %d times after the call", n)
			}
		})
	}
}

// The time that a provider has for its header begins when it has the request, as with
// http.Transport, and does not bound the body.
func TestHeaderTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.(http.Flusher).Flush()
		time.Sleep(300 * time.Millisecond)
		_, _ = io.WriteString(w, "ok")
	}, false)
	tr := provision(t, func(tr *Transport) { tr.ResponseHeaderTimeout = caddy.Duration(200 * time.Millisecond) })
	for _, length := range []int64{10_000, -1} {
		r := request(t, "POST", s.URL, &slowly{left: 10_000, pause: 30 * time.Millisecond})
		r.ContentLength = length
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if body := read(t, resp); body != "ok" {
			t.Errorf("%q", body)
		}
	}
}

// A protocol that nobody asked for is an error.
func TestSwitchedProtocols(t *testing.T) {
	address := raw(t, func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
	})
	if resp, err := provision(t).RoundTrip(request(t, "POST", address, strings.NewReader("{}"))); !errors.Is(err, errSwitched) {
		t.Error(resp, err)
	}
}

// A status that no server can pass on is an error.
func TestStatusThatIsNone(t *testing.T) {
	address := raw(t, func(c net.Conn, _ *http.Request) {
		_, _ = io.WriteString(c, "HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n")
	})
	if resp, err := provision(t).RoundTrip(request(t, "POST", address, strings.NewReader("{}"))); !errors.Is(err, errStatus) {
		t.Error(resp, err)
	}
}

// A client that leaves while the provider is being dialled ends the call with the reason of
// its context: nothing is wrong with the provider.
func TestClientLeavesWhileDialling(t *testing.T) {
	tr := provision(t)
	tr.Transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, reverseproxy.NewDialError(errors.New("operation was canceled"))
	}
	ctx, leave := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, leave)
	r, _ := http.NewRequestWithContext(ctx, "POST", "http://provider.example", strings.NewReader("{}"))
	if _, err := tr.RoundTrip(r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, err := provision(t).RoundTrip(request(t, "POST", "http://127.0.0.1:1", strings.NewReader("{}")))
	if _, ok := errors.AsType[reverseproxy.DialError](err); !ok {
		t.Errorf("%T %v, want one that Caddy tries again", err, err)
	}
}

// No call goes over a connection that has waited for longer than it may.
func TestOldConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {}, false)
	const timeout = 200 * time.Millisecond
	tr := provision(t, func(tr *Transport) {
		tr.KeepAlive = &reverseproxy.KeepAlive{IdleConnTimeout: caddy.Duration(timeout)}
	})
	for _, pause := range []time.Duration{0, timeout * 3 / 4, timeout * 9 / 8} {
		time.Sleep(pause)
		resp, err := tr.RoundTrip(request(t, "POST", s.URL, strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		read(t, resp)
	}
	if n := s.connections.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// counting counts the writes of a connection.
type counting struct {
	net.Conn
	writes atomic.Int32
}

func (c *counting) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// A small request is one write.
func TestSmallRequestIsOneWrite(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, false)
	tr := provision(t)
	var c *counting
	dial := tr.Transport.DialContext
	tr.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		inner, err := dial(ctx, network, address)
		c = &counting{Conn: inner}
		return c, err
	}
	resp, err := tr.RoundTrip(request(t, "POST", s.URL, bytes.NewReader(make([]byte, smallBody))))
	if err != nil {
		t.Fatal(err)
	}
	read(t, resp)
	if n := c.writes.Load(); n != 1 {
		t.Errorf("%d writes", n)
	}
}
