// Package llmforward is `reverse_proxy` with a fast path for one fixed upstream.
package llmforward

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/transport"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler is `reverse_proxy` with a fast path for most calls of models. It takes the options of
// `reverse_proxy`. The provider and the client get what `reverse_proxy` would send.
//
// `reverse_proxy` is ready to repeat a request at another upstream: it copies the header three
// times, and prepares a log entry and about thirty placeholders. That is a fifth of the
// processor time of a small call over TLS. Requests go the shorter way if the handler has one upstream
// with a fixed address and the transport `llm`, or the transport `llm_account`, and no option
// asks for what only `reverse_proxy` does: load balancing, health checks, rewrites, buffers,
// response handlers and headers, `X-Forwarded-*` and `Via`. Others go through `reverse_proxy`,
// and so do upgrades, requests in chunks, and those with trailers, `Expect`, `Te` or `Incremental`.
//
// The placeholders are those of `reverse_proxy`, but without `upstream.requests`,
// `upstream.max_requests` and `upstream.fails` of `http.reverse_proxy` on the shorter way, where
// Caddy's admin endpoint `/reverse_proxy/upstreams` counts no requests either.
type Handler struct {
	reverseproxy.Handler

	logger *zap.Logger
	direct *direct // nil if all requests go through reverse_proxy
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_forward", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	simple := h.simple() // before reverse_proxy fills in its defaults
	if err := h.Handler.Provision(ctx); err != nil {
		return err
	}
	if simple {
		h.direct = h.newDirect()
	}
	return nil
}

// simple reports whether the handler sends each request once, and changes neither it nor its answer.
func (h *Handler) simple() bool {
	return len(h.Upstreams) == 1 && h.Upstreams[0].MaxRequests == 0 && h.DynamicUpstreamsRaw == nil &&
		h.LoadBalancing == nil && h.HealthChecks == nil && h.CBRaw == nil &&
		h.Rewrite == nil && len(h.HandleResponse) == 0 && h.RequestBuffers == 0 && h.ResponseBuffers == 0 &&
		h.FlushInterval <= 0 && !h.VerboseLogs &&
		h.Headers != nil && h.Headers.Request != nil && h.Headers.Response == nil &&
		len(h.Headers.Request.Add) == 0 && len(h.Headers.Request.Replace) == 0
}

// direct is the fast path to the one upstream.
type direct struct {
	address  string // of the upstream, as in the configuration
	hostport string // its host and port, "" if each request has its own
	set      []field
	remove   []string
}

// field is a header field that each request gets.
type field struct {
	name   string
	values []string
	varies bool // the value has braces: a placeholder, or an escape
}

// newDirect returns nil if the address, the transport or the header needs reverse_proxy.
func (h *Handler) newDirect() *direct {
	d := &direct{address: h.Upstreams[0].Dial}
	ops := h.Headers.Request
	switch t := h.Transport.(type) {
	case *transport.Transport:
		to, err := caddy.ParseNetworkAddress(d.address)
		if err != nil || strings.Contains(d.address, "{") || to.Network != "tcp" || to.PortRangeSize() != 1 || t.ProxyProtocolEnabled() || ops.Set.Get("Host") == "" {
			return nil
		}
		d.hostport = to.JoinHostPort(0)
	case *money.AccountTransport: // knows the address by itself
	default:
		return nil
	}
	for _, name := range ops.Delete {
		if strings.ContainsAny(name, "*{}") || strings.EqualFold(name, "Host") {
			return nil
		}
		d.remove = append(d.remove, http.CanonicalHeaderKey(name))
	}
	for name, values := range ops.Set {
		if strings.ContainsAny(name, "{}") || name == "Set-Cookie" {
			return nil
		}
		value := strings.Join(values, ",")
		d.set = append(d.set, field{http.CanonicalHeaderKey(name), []string{value}, strings.ContainsAny(value, "{}")})
	}
	for _, name := range []string{"Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if !slices.Contains(d.remove, name) && ops.Set.Get(name) == "" {
			return nil // reverse_proxy adds the field
		}
	}
	return d
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.direct == nil || !isPlain(r) {
		return h.Handler.ServeHTTP(w, r, next)
	}
	return h.forward(w, r)
}

// isPlain reports whether a request and its answer are one message each, of which the request
// has a length.
func isPlain(r *http.Request) bool {
	for _, name := range []string{"Upgrade", "Expect", "Te", "Trailer", "Incremental"} {
		if _, ok := r.Header[name]; ok {
			return false
		}
	}
	return r.ContentLength >= 0 && len(r.Trailer) == 0 && r.Method != http.MethodConnect && (r.TLS == nil || r.TLS.HandshakeComplete)
}

// Proxy returns the reverse_proxy of the slow path.
func (h *Handler) Proxy() *reverseproxy.Handler { return &h.Handler }

// withoutHops returns a header without its hop-by-hop fields (RFC 9110, section 7.6.1).
func withoutHops(header http.Header, extra int) http.Header {
	passed := make(http.Header, len(header)+extra)
	for name, values := range header {
		switch name {
		case "Alt-Svc", "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		default:
			passed[name] = values
		}
	}
	for _, list := range header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(passed, http.CanonicalHeaderKey(textproto.TrimString(name)))
		}
	}
	return passed
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
