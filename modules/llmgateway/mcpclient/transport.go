package mcpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
)

// transport sends the requests of one session. They end with it.
type transport struct {
	header http.Header
	origin string // of the server; requests go nowhere else
	client *http.Client
	ctx    context.Context
	cancel context.CancelFunc

	status   atomic.Int64 // of the latest answer, 0 before the first
	tooLong  atomic.Bool  // an answer was too long
	requests atomic.Int64 // how many were made
}

// newTransport makes a transport whose client has no cookies and follows no redirects, which
// could lead to another host.
func newTransport(server Server) *transport {
	t := &transport{header: server.Header, origin: originOf(server.URL)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.client = &http.Client{
		Transport: t, Timeout: server.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return t
}

// originOf returns the scheme and the host of a URL.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil { // no request can be made to this address
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// connections holds the connections to all servers.
var connections = http.DefaultTransport.(*http.Transport).Clone()

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.requests.Add(1) > maxRequests && r.Method != http.MethodDelete { // DELETE ends the session
		return nil, errTooMany
	}
	if r.URL.Scheme+"://"+r.URL.Host != t.origin {
		return nil, errElsewhere
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.ctx, cancel)
	end := func() {
		stop()
		cancel()
	}
	r = r.Clone(ctx)
	for name, values := range t.header {
		if len(r.Header[name]) == 0 { // what the protocol needs wins
			r.Header[name] = values
		}
	}
	resp, err := connections.RoundTrip(r)
	if err != nil {
		t.status.Store(0)
		end()
		return nil, err
	}
	t.status.Store(int64(resp.StatusCode))
	resp.Body = &boundedBody{ReadCloser: resp.Body, transport: t, remaining: maxAnswer + 1, end: end}
	return resp, nil
}

var (
	errTooLong   = errors.New("the answer is too long")
	errElsewhere = errors.New("the server names an address at another host")
	errTooMany   = errors.New("the session has too many requests")
)

// boundedBody is the body of an answer.
type boundedBody struct {
	io.ReadCloser
	transport *transport
	remaining int
	end       func()
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.remaining == 0 {
		b.transport.tooLong.Store(true)
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.remaining)])
	b.remaining -= n
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
