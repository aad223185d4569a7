// Package transport is the transport of `reverse_proxy` that carries calls to providers.
package transport

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func init() {
	caddy.RegisterModule(new(Transport))
}

// Transport carries requests to a provider over HTTP/1.1, for two thirds of the processor
// time of the transport `http`. It takes the options of `http`.
//
// A connection of Go's own transport has two goroutines: one takes each request, the other
// hands over each answer. Here the goroutine of the call writes the request and reads the
// answer by itself. Calls that run at the same time have a connection each.
//
// Upgrades, requests with `Expect`, and all requests if an option asks for what HTTP/1.1 over
// connections of this kind does not have, go through the transport `http`: other `versions`, a
// proxy, `compression`, `proxy_protocol`, `write_buffer`, `read_timeout`,
// `write_timeout`, `max_conns_per_host`, `keepalive off` and `keepalive_idle_conns`.
type Transport struct {
	reverseproxy.HTTPTransport

	plain    bool // no option asks for what only HTTPTransport has
	idle     pool
	sessions tls.ClientSessionCache // makes another connection to a host cheaper
}

// maxIdle is how many connections to one address wait for the next call, unless the
// configuration says how many. Caddy's 32 make a burst of calls connect anew.
const maxIdle = 1024

// CaddyModule returns the Caddy module information.
func (*Transport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.llm", New: func() caddy.Module { return new(Transport) }}
}

// Provision implements caddy.Provisioner.
func (t *Transport) Provision(ctx caddy.Context) error {
	if t.Compression == nil {
		t.Compression = new(bool) // the client's own Accept-Encoding alone counts
	}
	if t.KeepAlive == nil {
		t.KeepAlive = new(reverseproxy.KeepAlive)
	}
	if t.KeepAlive.MaxIdleConnsPerHost == 0 {
		t.KeepAlive.MaxIdleConnsPerHost = maxIdle
	}
	t.plain = canTellClosed && !*t.Compression && t.MaxConnsPerHost == 0 && t.WriteBufferSize == 0 && t.ReadTimeout == 0 && t.WriteTimeout == 0 && t.ProxyProtocol == "" &&
		(t.KeepAlive.Enabled == nil || *t.KeepAlive.Enabled) && t.KeepAlive.MaxIdleConns == 0 &&
		(len(t.Versions) == 0 || slices.Equal(t.Versions, []string{"1.1"})) &&
		(t.TLS == nil || !strings.Contains(t.TLS.ServerName, "{"))
	if err := t.HTTPTransport.Provision(ctx); err != nil {
		return err
	}
	t.sessions = tls.NewLRUClientSessionCache(0)
	t.idle.max, t.idle.timeout = t.Transport.MaxIdleConnsPerHost, t.Transport.IdleConnTimeout
	return nil
}

// Cleanup implements caddy.CleanerUpper. Calls in flight go on.
func (t *Transport) Cleanup() error {
	t.idle.close()
	return t.HTTPTransport.Cleanup()
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.SetScheme(req)
	if !t.plain || !simple(req) {
		return t.HTTPTransport.RoundTrip(req)
	}
	if proxy, err := t.Transport.Proxy(req); proxy != nil || err != nil {
		return t.HTTPTransport.RoundTrip(req)
	}
	for {
		c, used, err := t.connect(req)
		if err != nil {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
		resp, err := c.roundTrip(req)
		if err == nil || !used || hasBody(req) || !repeatable(req.Method) || req.Context().Err() != nil {
			return resp, err
		} // the provider has closed the connection meanwhile
	}
}

func hasBody(req *http.Request) bool {
	return req.Body != nil && req.Body != http.NoBody
}

func repeatable(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// simple reports whether a request and its answer are one message each.
func simple(req *http.Request) bool {
	_, upgrade := req.Header["Upgrade"]
	_, expect := req.Header["Expect"]
	return !upgrade && !expect && req.Method != http.MethodConnect && !req.Close
}

// Interface guards
var (
	_ caddy.Provisioner         = (*Transport)(nil)
	_ caddy.CleanerUpper        = (*Transport)(nil)
	_ caddyfile.Unmarshaler     = (*Transport)(nil)
	_ http.RoundTripper         = (*Transport)(nil)
	_ reverseproxy.TLSTransport = (*Transport)(nil)
)
