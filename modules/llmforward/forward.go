package llmforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirhq/weir/storage"
)

var errUpgraded = errors.New("the provider has switched to another protocol, which nobody asked for")

// passage is one request on the shorter way.
type passage struct {
	w     http.ResponseWriter
	began time.Time

	mu       sync.Mutex // guards answered
	answered bool       // the provider's answers before the last one come too late

	placeholders
}

// forward passes a plain request on, and the answer back.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request) error {
	p := &passage{w: w, began: time.Now()}
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	p.direct, p.hostport = h.direct, h.direct.hostport
	if p.hostport == "" {
		p.hostport = repl.ReplaceAll(h.direct.address, "")
	}
	p.offer(repl)
	defer func() { p.duration = time.Since(p.began) }()

	out := h.request(r, repl, p)
	forget(repl)
	resp, err := h.Transport.RoundTrip(out)
	p.mu.Lock()
	p.answered = true
	p.mu.Unlock()
	latency := time.Since(p.began)
	if c := h.logger.Check(zapcore.DebugLevel, "upstream roundtrip"); c != nil {
		h.logRoundTrip(c, latency, out, resp, err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		w.WriteHeader(storage.StatusClientLeft)
		return nil
	case err != nil:
		return caddyhttp.Error(statusOf(err), err)
	case resp.StatusCode == http.StatusSwitchingProtocols:
		_ = resp.Body.Close()
		return caddyhttp.Error(http.StatusBadGateway, errUpgraded)
	}
	p.resp, p.latency = resp, latency
	if err := p.answer(h.FlushInterval < 0); err != nil {
		level := zapcore.WarnLevel
		if r.Context().Err() != nil { // the client has left
			level = zapcore.DebugLevel
		}
		if c := h.logger.Check(level, "aborting with incomplete response"); c != nil {
			c.Write(zap.Error(err))
		}
		_ = http.NewResponseController(w).Flush() // what has come
		panic(http.ErrAbortHandler)
	}
	p.total = time.Since(p.began)
	return nil
}

// request returns the request for the provider.
func (h *Handler) request(r *http.Request, repl *caddy.Replacer, p *passage) *http.Request {
	d := h.direct
	out := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: p.inform}))
	to := *r.URL
	to.Scheme, to.Host = "", p.hostport // the transport knows the scheme
	out.URL, out.Close = &to, false
	if r.ContentLength == 0 {
		out.Body = nil
	} else {
		out.Body = io.NopCloser(r.Body) // the server closes the body
	}
	out.Header = withoutHops(r.Header, len(d.set)+1)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // keeps net/http from sending its own
	}
	for _, f := range d.set {
		values := f.values
		if f.varies {
			values = []string{repl.ReplaceKnown(values[0], "")}
		}
		if f.name == "Host" {
			out.Host = values[0]
		} else {
			out.Header[f.name] = values
		}
	}
	for _, name := range d.remove {
		delete(out.Header, name)
	}
	return out
}

// inform passes on an answer before the last one, such as 103 (RFC 9110, section 15.2).
func (p *passage) inform(status int, header textproto.MIMEHeader) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered {
		return nil
	}
	clone := p.w.Header().Clone()
	add(p.w.Header(), withoutHops(http.Header(header), 0))
	p.w.WriteHeader(status)
	clear(p.w.Header())
	maps.Copy(p.w.Header(), clone)
	return nil
}

// answer passes the answer on.
func (p *passage) answer(flush bool) error {
	header := p.w.Header()
	delete(header, "Server")
	header["Via"] = append(header["Via"], strconv.Itoa(p.resp.ProtoMajor)+"."+strconv.Itoa(p.resp.ProtoMinor)+" Caddy")
	add(header, withoutHops(p.resp.Header, 0))
	announced := len(p.resp.Trailer)
	if announced > 0 {
		header.Add("Trailer", strings.Join(slices.Sorted(maps.Keys(p.resp.Trailer)), ", "))
	}
	p.w.WriteHeader(p.resp.StatusCode)

	flush = flush || p.resp.ContentLength < 0 || isStream(p.resp.Header)
	err := p.copy(flush)
	_ = p.resp.Body.Close() // fills in the trailers
	if err != nil || len(p.resp.Trailer) == 0 {
		return err
	}
	_ = http.NewResponseController(p.w).Flush() // else a short answer would get a length, and no trailers
	if len(p.resp.Trailer) == announced {
		add(header, p.resp.Trailer)
		return nil
	}
	for name, values := range p.resp.Trailer {
		header[http.TrailerPrefix+name] = values
	}
	return nil
}

// isStream reports whether each part of an answer is to arrive at once.
func isStream(header http.Header) bool {
	mediaType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "text/event-stream") || caddyhttp.IsIncremental(header)
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// copy passes the body on, and with flush each part at once, the header too.
func (p *passage) copy(flush bool) error {
	if p.resp.Body == http.NoBody {
		return nil
	}
	if complete, ok := p.resp.Body.(io.WriterTo); ok && !flush { // it is in memory, as an answer of the cache is
		if _, err := complete.WriteTo(p.w); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		return nil
	}
	controller := http.NewResponseController(p.w)
	if flush {
		_ = controller.Flush()
	}
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	for {
		n, err := p.resp.Body.Read(buffer[:])
		if n > 0 {
			if _, err := p.w.Write(buffer[:n]); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
			if flush {
				if err := controller.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
					return fmt.Errorf("writing: %w", err)
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading: %w", err)
		}
	}
}

// add adds fields to a header.
func add(to, from http.Header) {
	for name, values := range from {
		if len(values) > 0 { // a trailer that did not come has none
			to[name] = slices.Concat(to[name], values)
		}
	}
}

// statusOf is the status of an answer to a call that could not be passed on.
func statusOf(err error) int {
	var timeout net.Error
	switch {
	case strings.Contains(err.Error(), "operation was canceled"): // net hides context.Canceled
		return storage.StatusClientLeft
	case errors.As(err, &timeout) && timeout.Timeout():
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

func (h *Handler) logRoundTrip(c *zapcore.CheckedEntry, latency time.Duration, out *http.Request, resp *http.Response, err error) {
	server, _ := out.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	credentials := server != nil && server.Logs != nil && server.Logs.ShouldLogCredentials
	fields := []zap.Field{
		zap.String("upstream", h.direct.address),
		zap.Duration("duration", latency),
		zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: out, ShouldLogCredentials: credentials}),
	}
	if err != nil {
		fields = append(fields, zap.Error(err))
	} else {
		fields = append(fields, zap.Object("headers", caddyhttp.LoggableHTTPHeader{Header: resp.Header, ShouldLogCredentials: credentials}), zap.Int("status", resp.StatusCode))
	}
	c.Write(fields...)
}
