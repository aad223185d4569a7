package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// address is where a connection leads.
type address struct {
	network, host string
	tls           bool
}

// addressOf returns the address that reverse_proxy has chosen for a request, or that of its URL.
func addressOf(req *http.Request) address {
	to := address{"tcp", req.URL.Host, req.URL.Scheme == "https"}
	if chosen, ok := reverseproxy.GetDialInfo(req.Context()); ok {
		to.network, to.host = chosen.Network, chosen.Address
	} else if req.URL.Port() == "" {
		port := "80"
		if to.tls {
			port = "443"
		}
		to.host = net.JoinHostPort(req.URL.Hostname(), port)
	}
	return to
}

// pool has the connections that wait for a call.
type pool struct {
	max     int           // for one address
	timeout time.Duration // after which the provider may close them, 0 if it does not

	mu     sync.Mutex
	idle   map[address][]*conn // those used last behind the others
	sweep  *time.Timer         // nil unless connections wait for it
	closed bool
}

// take returns the connection that was used last, or nil.
func (p *pool) take(to address) *conn {
	for {
		p.mu.Lock()
		waiting := p.idle[to]
		if len(waiting) == 0 {
			p.mu.Unlock()
			return nil
		}
		c := waiting[len(waiting)-1]
		waiting[len(waiting)-1] = nil
		p.idle[to] = waiting[:len(waiting)-1]
		p.mu.Unlock()
		if (p.timeout <= 0 || time.Since(c.since) < p.timeout) && c.open() {
			return c
		}
		_ = c.Conn.Close()
	}
}

// put lets a connection wait for its next call.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.idle[c.to]
	if p.closed || len(waiting) >= p.max {
		_ = c.Conn.Close()
		return
	}
	if p.idle == nil {
		p.idle = make(map[address][]*conn)
	}
	c.since = time.Now()
	p.idle[c.to] = append(waiting, c)
	if p.sweep == nil && p.timeout > 0 {
		p.sweep = time.AfterFunc(p.timeout, p.closeOld)
	}
}

// closeOld closes the connections that have waited for too long.
func (p *pool) closeOld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, left := time.Now(), false
	for to, waiting := range p.idle {
		old := 0
		for old < len(waiting) && now.Sub(waiting[old].since) >= p.timeout {
			_ = waiting[old].Conn.Close()
			old++
		}
		if waiting = slices.Delete(waiting, 0, old); len(waiting) == 0 {
			delete(p.idle, to)
			continue
		}
		p.idle[to], left = waiting, true
	}
	p.sweep = nil
	if left && !p.closed {
		p.sweep = time.AfterFunc(p.timeout, p.closeOld)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, waiting := range p.idle {
		for _, c := range waiting {
			_ = c.Conn.Close()
		}
	}
	p.idle = nil
	if p.sweep != nil {
		p.sweep.Stop()
	}
}

// connect returns a connection for a request: one that was used before, or a new one.
func (t *Transport) connect(req *http.Request) (c *conn, used bool, err error) {
	to := addressOf(req)
	if c := t.idle.take(to); c != nil {
		return c, true, nil
	}
	ctx := req.Context()
	inner, err := t.Transport.DialContext(ctx, to.network, to.host)
	if err != nil {
		return nil, false, cmp.Or(context.Cause(ctx), err) // what the caller ends is no failure to dial
	}
	c = newConn(t, to, inner)
	if !to.tls {
		return c, false, nil
	}
	if timeout := t.Transport.TLSHandshakeTimeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	secured := tls.Client(inner, t.tlsConfig(req.URL.Hostname()))
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = inner.Close()
		return nil, false, cmp.Or(context.Cause(req.Context()), err)
	}
	c.Conn = secured
	return c, false, nil
}

// tlsConfig returns the configuration for a host, with HTTP/1.1 as its only protocol.
func (t *Transport) tlsConfig(host string) *tls.Config {
	config := t.Transport.TLSClientConfig.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = t.sessions
	}
	config.NextProtos = []string{"http/1.1"}
	return config
}
