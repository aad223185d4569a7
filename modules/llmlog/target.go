package llmlog

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/redact"
)

// targetURL is where a request went: the upstream that reverse_proxy chose,
// without one the path alone. Caddy tells no scheme, so it is https on port 443
// and http on any other.
func targetURL(hostport string, u *url.URL) string {
	target := u.EscapedPath()
	if u.RawQuery != "" {
		target += "?" + redact.Query(u.RawQuery)
	}
	if hostport == "" {
		return target
	}
	if host, ok := strings.CutSuffix(hostport, ":443"); ok {
		return "https://" + host + target
	}
	return "http://" + strings.TrimSuffix(hostport, ":80") + target
}
