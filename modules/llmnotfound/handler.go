// Package llmnotfound is the last handler of a site: it answers 404 to requests that no
// other handler serves.
package llmnotfound

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/nearest"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/plugins"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler answers every request with 404 and an error in JSON, in the format that
// the client expects. The error names the paths that are like the requested path, or the
// directive that serves it. The
// handler stands behind the other handlers of a site: without it, Caddy answers what they
// do not serve with 200 and an empty body, which clients take for success.
type Handler struct{}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_not_found", New: func() caddy.Module { return new(Handler) }}
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	message := "There is no " + strconv.QuoteToASCII(r.URL.Path) + " here." + advice(r)
	if isQuery(r.URL.Path) {
		return apierror.Envelope{Error: &message}.Write(w, http.StatusNotFound)
	}
	return apierror.Write(w, dialectOf(r), plugins.Rejected(http.StatusNotFound, "not_found", "%s", message))
}

// maxTypos is how many letters of a path may be wrong, missing or swapped: /v1/videos is no
// mistyped /v1/files.
const maxTypos = 2

// maxListed is how many paths a message names.
const maxListed = 8

// advice says which path was meant, or which directive serves it, or what there is.
func advice(r *http.Request) string {
	path, offered := r.URL.Path, slices.Compact(slices.Sorted(slices.Values(paths.Offered(r.Context()))))
	found := near(path, offered)
	if len(found) == 0 {
		if name := nearest.Name(path, offered); name != "" && nearest.Distance(path, name) <= maxTypos {
			found = []string{name}
		}
	}
	if len(found) > 0 {
		return " Did you mean " + strings.Join(found, " or ") + "?"
	}
	if directives := servedBy(path); len(directives) > 0 {
		return " The directive " + strings.Join(directives, " or ") + " serves it: add it to this site of the Caddyfile."
	}
	switch more := len(offered) - maxListed; {
	case len(offered) == 0:
		return ""
	case more > 0:
		return " This site has " + strings.Join(offered[:maxListed], ", ") + " and " + strconv.Itoa(more) + " more."
	default:
		return " This site has " + strings.Join(offered, ", ") + "."
	}
}

// servedBy returns the directives whose handlers serve a path: not the provider of tests, nor
// the proxies, which serve any.
func servedBy(path string) (directives []string) {
	for _, m := range caddy.GetModules("http.handlers") {
		router, ok := m.New().(paths.Router)
		if ok && m.ID.Name() != "llm_echo" && slices.ContainsFunc(router.Routes(), func(route paths.Route) bool {
			return !strings.HasPrefix(route.Path, "/{") && route.Matches(path)
		}) {
			directives = append(directives, m.ID.Name())
		}
	}
	return directives
}

// isQuery reports whether a path is like a path of the query endpoints. These
// endpoints answer in an envelope.
func isQuery(path string) bool {
	return slices.ContainsFunc([]string{
		"/v1/request", "/v1/user", "/v1/session", "/v1/dashboard", "/v1/metrics", "/v1/facets", "/v1/export", "/v1/view",
	}, func(prefix string) bool {
		return strings.HasPrefix(path, prefix)
	})
}

// dialectOf is the dialect that the client expects.
func dialectOf(r *http.Request) plugins.Dialect {
	switch path := r.URL.Path; {
	case r.Header.Get("Anthropic-Version") != "", strings.Contains(path, "/messages"):
		return plugins.Messages
	case r.Header.Get("X-Goog-Api-Key") != "", strings.Contains(path, ":generateContent"), strings.Contains(path, ":streamGenerateContent"):
		return plugins.GenerateContent
	}
	return plugins.Responses
}

// near returns the offered paths that end with the asked path, or that the asked path ends
// with. Extra slashes do not count.
func near(requested string, offered []string) []string {
	requested = segments(requested)
	var found []string
	for _, path := range offered {
		parts := segments(path)
		if requested != "/" && (strings.HasSuffix(parts, requested) || strings.HasSuffix(requested, parts)) {
			found = append(found, path)
		}
	}
	return found
}

// segments is a path without its empty segments.
func segments(path string) string {
	return "/" + strings.Join(strings.FieldsFunc(path, func(c rune) bool { return c == '/' }), "/")
}

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_not_found [<matcher>]
func (*Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{}.Directive(d)
}

// Interface guards
var (
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
