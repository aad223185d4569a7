package llmforward

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// prefix begins the placeholders of reverse_proxy.
const prefix = "http.reverse_proxy."

// placeholders are those of reverse_proxy. They are looked up when somebody asks for one.
type placeholders struct {
	*direct
	hostport string
	latency  time.Duration  // until the header of the answer, 0 before
	total    time.Duration  // until the end of the answer, 0 before
	duration time.Duration  // until the end of the attempt, 0 before
	resp     *http.Response // nil before it has come
}

// newest is the variable that has the placeholders of the request's newest proxy: a request
// that failed at one may go to another.
const newest = "llm_forward.newest"

// offer makes the placeholders known to the request. Those of the answer to an earlier proxy stay known
// until forget, because the header for this provider may refer to them.
func (p *placeholders) offer(repl *caddy.Replacer) {
	repl.DeleteByPrefix(prefix + "upstream.")
	_, offered := repl.Get(newest)
	repl.Set(newest, p)
	if offered {
		return
	}
	repl.Map(func(key string) (any, bool) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			return nil, false
		}
		p, _ := repl.Get(newest)
		return p.(*placeholders).get(name)
	})
}

// forget removes the placeholders that reverse_proxy has set for the request: they would win.
func forget(repl *caddy.Replacer) { repl.DeleteByPrefix(prefix) }

// get returns the value of a placeholder, and false if it is not known, or not yet.
func (p *placeholders) get(name string) (any, bool) {
	if field, ok := strings.CutPrefix(name, "header."); ok {
		if p.resp == nil || p.resp.Header[field] == nil {
			return nil, false
		}
		return strings.Join(p.resp.Header[field], ","), true
	}
	switch name {
	case "upstream.address":
		return "tcp/" + p.hostport, true
	case "upstream.hostport":
		return p.hostport, true
	case "upstream.host":
		host, _, _ := net.SplitHostPort(p.hostport)
		return host, true
	case "upstream.port":
		_, port, _ := net.SplitHostPort(p.hostport)
		return port, true
	case "upstream.latency":
		return p.latency, p.latency > 0
	case "upstream.latency_ms":
		return p.latency.Seconds() * 1e3, p.latency > 0
	case "upstream.duration":
		return p.total, p.total > 0
	case "upstream.duration_ms":
		return p.total.Seconds() * 1e3, p.total > 0
	case "duration":
		return p.duration, p.duration > 0
	case "duration_ms":
		return p.duration.Seconds() * 1e3, p.duration > 0
	case "retries":
		return 0, p.duration > 0
	case "status_code":
		if p.resp != nil {
			return p.resp.StatusCode, true
		}
	case "status_text":
		if p.resp != nil {
			return p.resp.Status, true
		}
	}
	return nil, false
}
