// Package transport is the transport of `reverse_proxy` that carries calls to providers.
package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func init() {
	caddy.RegisterModule(new(Transport))
}

// Transport is the transport `http` with defaults for calls of models, and takes its options.
// The defaults are: no compression that the client did not ask for, 256 KiB for the header of an
// answer, a read buffer of 16 KiB, 1024 idle connections to a host, and for each stream of HTTP/2
// 256 KiB that the client has not taken yet.
//
// A provider may close an idle connection at the moment when a request is sent on it. A request
// that was sent on a used connection, and got no byte of an answer, is sent once more on a new
// connection, if its whole body can be had again (https://github.com/golang/go/issues/22158).
type Transport struct {
	reverseproxy.HTTPTransport

	fresh *http.Transport // has a new connection for each request, nil if nothing is sent again
	via   string          // the configuration, for interceptors
}

const (
	// maxIdle is how many connections to one host wait for the next call. Caddy's 32 make a
	// burst of calls connect anew.
	maxIdle = 1024
	// maxHeader bounds the header of an answer, in bytes: Go's default of 10 MiB for each of a
	// few answers would be the memory of a small machine.
	maxHeader = 256 << 10
	// readBuffer is how many bytes are read at once: events that come close together leave
	// together.
	readBuffer = 16 << 10
	// streamWindow is how many bytes of a stream of HTTP/2 wait for a slow client. Go's default
	// is 4 MiB, which 100 clients that do not read would fill.
	streamWindow = 256 << 10
	// pingAfter is how long a connection of HTTP/2 may be silent before it is tested, because
	// all calls to a host share a few.
	pingAfter = 30 * time.Second
)

// CaddyModule returns the Caddy module information.
func (*Transport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.llm", New: func() caddy.Module { return new(Transport) }}
}

// Provision implements caddy.Provisioner.
func (t *Transport) Provision(ctx caddy.Context) error {
	via, err := json.Marshal(t)
	if err != nil {
		return err
	}
	t.via = string(via)
	if t.Compression == nil {
		t.Compression = new(bool) // the client's own Accept-Encoding alone counts
	}
	if t.MaxResponseHeaderSize == 0 {
		t.MaxResponseHeaderSize = maxHeader
	}
	if t.ReadBufferSize == 0 {
		t.ReadBufferSize = readBuffer
	}
	if t.KeepAlive == nil {
		t.KeepAlive = new(reverseproxy.KeepAlive)
	}
	if t.KeepAlive.MaxIdleConnsPerHost == 0 {
		t.KeepAlive.MaxIdleConnsPerHost = maxIdle
	}
	if err := t.HTTPTransport.Provision(ctx); err != nil {
		return err
	}
	t.Transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow, SendPingTimeout: pingAfter}
	if t.Versions[0] != "3" {
		t.fresh = t.Transport.Clone()
		t.fresh.DisableKeepAlives = true
	}
	return nil
}

var (
	errStatus   = errors.New("the provider's status is below 100, which is no status of HTTP")
	errSwitched = errors.New("the provider has switched to another protocol, which nobody asked for")
)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if resp := Intercept(req, t.via); resp != nil {
		return resp, nil
	}
	resp, err := t.send(req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode < 100: // Go's servers panic when they write it
		err = errStatus
	case resp.StatusCode == http.StatusSwitchingProtocols && !upgrades(req): // reverse_proxy would answer an empty 200
		err = errSwitched
	default:
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, err
}

func upgrades(req *http.Request) bool { return req.Header.Get("Upgrade") != "" }

// send sends a request, and once more if the provider has closed the connection meanwhile.
func (t *Transport) send(req *http.Request) (*http.Response, error) {
	hasBody := req.Body != nil && req.Body != http.NoBody
	if t.fresh == nil || hasBody && req.GetBody == nil || upgrades(req) {
		return t.HTTPTransport.RoundTrip(req)
	}
	try := new(attempt)
	try.trace.GotConn, try.trace.GotFirstResponseByte = try.gotConn, try.gotByte
	out := req.WithContext(httptrace.WithClientTrace(req.Context(), &try.trace))
	if hasBody {
		out.Body = try.body(req)
	}
	resp, err := t.HTTPTransport.RoundTrip(out)
	if err == nil || !try.mayRepeat(err) || req.Context().Err() != nil {
		return resp, err
	}
	again := *req
	if hasBody {
		body, bodyErr := req.GetBody()
		if bodyErr != nil {
			return nil, err
		}
		again.Body = body
	}
	return t.fresh.RoundTrip(&again)
}

// attempt is the first try of a request, and its body.
type attempt struct {
	io.ReadCloser
	trace    httptrace.ClientTrace
	used     atomic.Bool // the connection had an earlier request
	answered atomic.Bool // a byte of an answer has come
	broken   atomic.Bool // the client's body could not be read
}

// maxShort is how long a body is at most that http.Transport writes together with the header, in one system
// call, if it is in memory. Its buffer has 4 KB.
const maxShort = 3 << 10

// body returns the body of the first try. A short one is read before.
func (a *attempt) body(req *http.Request) io.ReadCloser {
	if isInMemory(req.Body) {
		return req.Body
	}
	a.ReadCloser = req.Body
	if req.ContentLength <= 0 || req.ContentLength > maxShort || req.Header["Expect"] != nil {
		return a
	}
	short := bytes.NewBuffer(make([]byte, 0, req.ContentLength+bytes.MinRead)) // which ReadFrom needs to see the end
	_, err := short.ReadFrom(a)
	if err == nil && int64(short.Len()) == req.ContentLength {
		_ = req.Body.Close()
		return io.NopCloser(short)
	}
	a.ReadCloser = brokenBody{short, req.Body, err}
	return a
}

// inMemory is the type of bodies that http.Transport takes for bytes in memory.
var inMemory = reflect.TypeOf(io.NopCloser(new(bytes.Reader)))

// isInMemory reports whether a body is bytes in memory, which cannot break off.
func isInMemory(body io.ReadCloser) bool {
	if reflect.TypeOf(body) != inMemory {
		return false
	}
	_, is := reflect.ValueOf(body).Field(0).Interface().(*bytes.Reader)
	return is
}

// brokenBody is a body of which a part was read before it broke off.
type brokenBody struct {
	part *bytes.Buffer
	io.Closer
	err error // nil if the body ended too soon
}

func (b brokenBody) Read(p []byte) (int, error) {
	if b.part.Len() == 0 && b.err != nil {
		return 0, b.err
	}
	return b.part.Read(p)
}

func (a *attempt) gotConn(c httptrace.GotConnInfo) { a.used.Store(c.Reused) }
func (a *attempt) gotByte()                        { a.answered.Store(true) }

// Read implements io.Reader.
func (a *attempt) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.broken.Store(true)
	}
	return n, err
}

// mayRepeat reports whether the connection was lost before the provider answered anything.
func (a *attempt) mayRepeat(err error) bool {
	var timeout net.Error
	return a.used.Load() && !a.answered.Load() && !a.broken.Load() && !(errors.As(err, &timeout) && timeout.Timeout())
}

// Interface guards
var (
	_ caddy.Provisioner         = (*Transport)(nil)
	_ caddy.CleanerUpper        = (*Transport)(nil)
	_ caddyfile.Unmarshaler     = (*Transport)(nil)
	_ http.RoundTripper         = (*Transport)(nil)
	_ reverseproxy.TLSTransport = (*Transport)(nil)
)
