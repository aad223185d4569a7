package paths

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Base is the address of a handler as the client of a request knows it, without a slash at its
// end. path is that of the request below the handler.
func Base(r *http.Request, path string) string {
	u := url.URL{Path: r.URL.Path}
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		u.Path = original.URL.Path // in which handle_path has left the prefix
	}
	u.Path = strings.TrimSuffix(u.Path, path)
	return Site(r) + u.String()
}

// Site is the address of the site to which a client sent a request, without a path.
func Site(r *http.Request) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if Secure(r) {
		u.Scheme = "https"
	}
	return u.String()
}

// Below is the address of a part of the path of a request, as its client knows it: all before
// that part, and the part.
func Below(r *http.Request, part string) string {
	path := r.URL.Path
	return Base(r, path[max(strings.Index(path, part), 0):]) + part
}

// Secure reports whether the client speaks TLS: to Weir, or to a balancer before it that
// the server trusts, and that says so.
// https://caddyserver.com/docs/caddyfile/options#trusted-proxies
func Secure(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return r.TLS != nil || trusted && r.Header.Get("X-Forwarded-Proto") == "https"
}
