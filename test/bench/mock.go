//go:build linux

package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// provider is the mock: it answers each request with the answer of its exchange.
type provider struct {
	address   string // host:port
	secure    string // host:port for TLS, with HTTP/2 and HTTP/1.1
	authority []byte // PEM of the certificate that secure has
	exchanges []exchange
	// altered counts requests that are not, byte for byte, what a client sent.
	altered atomic.Int64
	// handshakes counts the connections to secure.
	handshakes atomic.Int64

	server  http.Server
	tls     *httptest.Server
	buffers sync.Pool
}

// newProvider starts a provider on the loopback interface.
func newProvider(exchanges []exchange) (*provider, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{address: l.Addr().String(), exchanges: exchanges}
	p.buffers.New = func() any { return new(bytes.Buffer) }
	p.server.Handler = p
	go func() { _ = p.server.Serve(l) }() // returns when closed
	p.tls = httptest.NewUnstartedServer(p)
	p.tls.EnableHTTP2 = true
	p.tls.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streamsOfConnection}
	p.tls.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.handshakes.Add(1)
		}
	}
	p.tls.StartTLS()
	p.secure = p.tls.Listener.Addr().String()
	p.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.tls.Certificate().Raw})
	return p, nil
}

// streamsOfConnection is how many streams a connection of HTTP/2 may have, as with providers
// (https://nginx.org/en/docs/http/ngx_http_v2_module.html#http2_max_concurrent_streams).
const streamsOfConnection = 128

func (p *provider) close() {
	p.server.Close()
	p.tls.CloseClientConnections()
	p.tls.Close()
}

// ServeHTTP implements http.Handler.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, err := p.read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply := &x.reply
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		reply = &x.messages
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		reply = &x.gemini
	}
	if reply.ends == nil {
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(reply.answer))}
		if x.status != 0 {
			w.WriteHeader(x.status)
		}
		_, _ = w.Write(reply.answer) // the client may have left
		return
	}
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	reply.stream(w, r, x.gap)
}

// read tells which exchange a request belongs to.
func (p *provider) read(r *http.Request) (*exchange, error) {
	b := p.buffers.Get().(*bytes.Buffer)
	defer p.buffers.Put(b)
	b.Reset()
	if _, err := b.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	number, err := exchangeOf(b.Bytes())
	if err != nil {
		return nil, err
	}
	if number < 0 || number >= len(p.exchanges) {
		return nil, fmt.Errorf("there is no exchange %d", number)
	}
	x := &p.exchanges[number]
	if b.Len() == len(x.request) {
		for _, at := range x.serials {
			setSerial(b.Bytes()[at:at+serialBytes], 0)
		}
	}
	if !bytes.Equal(b.Bytes(), x.request) {
		p.altered.Add(1)
	}
	return x, nil
}

// stream writes each event when its time has come, whatever became of the event
// before.
func (s *reply) stream(w http.ResponseWriter, r *http.Request, gap time.Duration) {
	flusher := w.(http.Flusher)
	began, from := time.Now(), 0
	for i, end := range s.ends {
		if gap > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * gap)))
		}
		if _, err := w.Write(s.answer[from:end]); err != nil || r.Context().Err() != nil {
			return
		}
		flusher.Flush()
		from = end
	}
}
