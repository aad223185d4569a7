// Package llmecho is a mock provider of models, as a Caddy handler.
package llmecho

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/echo"
	"github.com/weirhq/weir/plugins/observe"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler answers as a model provider would, with no network and no key: it
// repeats the last user message, streaming or not. It serves quickstarts,
// examples and tests of proxies in front of a provider.
//
// The end of the path tells the endpoint, so that it works under any prefix:
// `/chat/completions`, `/responses`, `/embeddings` and `/models` speak OpenAI's
// formats, `/messages` speaks Anthropic's. Other paths are answered with 404 in
// the format of a provider's error; no further handler is invoked.
//
// The answer calls a tool of the request when `tool_choice` requires one or
// when the message names it with parentheses, as in `get_weather()`, with
// arguments made from the required properties of its schema. It begins with
// reasoning when the request turns it on, and `max_tokens` or the dialect's name
// for it cuts it off. Usage counts one token for each 4 bytes of text, rounded
// up. The model is the one asked for, or `echo-1`.
//
// Credentials are not looked at, and requests over 32 MiB are refused.
type Handler struct {
	provider *echo.Handler
	intake   intake.Reader
}

// maxBody is the length in bytes of the largest request, Anthropic's own limit.
const maxBody = 32 << 20

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.llm_echo",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision sets up the handler.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.provider = new(echo.Handler)
	h.intake.Limit = maxBody
	app, err := ctx.AppIfConfigured("llm")
	switch {
	case err == nil:
		h.intake.Memory = app.(*llmapp.App).Memory("")
	case errors.Is(err, caddy.ErrNotConfigured):
		h.intake.Memory = admission.NewMemory(0)
		err = nil
	}
	return err
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	llm_echo [<matcher>]
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{}.Directive(d)
}

// Routes implements paths.Router.
func (*Handler) Routes() (all []paths.Route) {
	for method, path := range echo.Endpoints {
		all = append(all, paths.Route{Method: method, Path: path})
	}
	return all
}

// ServeHTTP answers every request itself.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	body, err := h.intake.Read(w, r)
	defer body.Release()
	if refused, ok := errors.AsType[*plugins.Error](err); ok {
		return apierror.Write(w, observe.Detect("echo", r.URL.Path), refused)
	}
	h.provider.Answer(w, r, body.Bytes)
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
