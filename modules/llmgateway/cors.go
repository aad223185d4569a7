package llmgateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
)

// anyOrigin allows all origins.
const anyOrigin = "*"

// checkOrigins returns an error for what browsers never send as an origin
// (RFC 6454, section 6.1).
func checkOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if origin != anyOrigin && (err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host) {
			return fmt.Errorf("cors %s: want an origin like https://example.com, or %s", origin, anyOrigin)
		}
	}
	return nil
}

// parseOrigins reads the option cors: its mistakes are told with their line.
func (h *Handler) parseOrigins(d *caddyfile.Dispenser) error {
	if err := directive.Texts(&h.CORS)(d); err != nil {
		return err
	}
	if err := checkOrigins(h.CORS); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

// allowOrigin tells a browser that the page which calls may do so, and answers what it
// asks before.
func (h *Handler) allowOrigin(header http.Header, r *http.Request, methods string) {
	origin := r.Header.Get("Origin")
	if origin == "" || len(h.CORS) == 0 {
		return
	}
	switch {
	case slices.Contains(h.CORS, anyOrigin):
		origin = anyOrigin
	default:
		header.Add("Vary", "Origin")
		if !slices.Contains(h.CORS, origin) {
			return
		}
	}
	header.Set("Access-Control-Allow-Origin", origin)
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", methods)
		header.Set("Access-Control-Max-Age", "86400")
		if requested := r.Header.Values("Access-Control-Request-Headers"); requested != nil {
			header["Access-Control-Allow-Headers"] = requested
		}
		return
	}
	header.Set("Access-Control-Expose-Headers", "Service-Id, Service-Warnings, Service-Cost, "+
		"Service-Prompt-Tokens, Service-Completion-Tokens, Retry-After, X-Request-Id, Request-Id")
}
