package llmgateway

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler is the gateway to the providers of the app `llm`:
//
// Endpoint | Description
// ---------|------------
// `POST /v1/responses` | Calls a model, in the format of OpenAI's Responses whoever serves it
// `POST /v1/chat/completions` | Calls a model whose provider speaks Chat Completions
// `POST /v1/messages` | Calls a model whose provider speaks Anthropic's Messages
// `POST /v1/messages/count_tokens` | Counts the tokens of a request to such a model, for free
// `POST /v1/embeddings` | Calls a model whose provider speaks OpenAI's Embeddings
// `GET /v1/models` | Lists the models that can be called; `?detail=true` tells more
// `GET /v1/models/multimodal` | Those with more than one kind of input or output
//
// Callers authenticate with `Authorization: Bearer <API key>`, and for Messages
// with `X-Api-Key: <API key>` if they like; the lists need no key. The model is
// an alias, `label/model`, the id of a model that a provider serves, or several
// of these with commas, which are tried in this order. Until an answer has begun,
// what fails is tried again, there or elsewhere. Each attempt is a record, and
// `Service-Id` names the one that answered. The control headers and placeholders
// are those of `llm_log`.
//
// Requests for other paths go to the next handler.
type Handler struct {
	// Store names the store of the records. Only keys of organisations that
	// live in it are taken. Default: `default`.
	Store string `json:"store,omitempty"`

	// Retries is how often a failed attempt is repeated at the same provider
	// before the next is tried. Default: 1.
	Retries *int `json:"retries,omitempty"`

	// TryDuration is for how long attempts may begin. One that has begun may
	// take its time. Default: 60s.
	TryDuration caddy.Duration `json:"try_duration,omitempty"`

	// MaxBody is how many bytes of each body are kept at most. Default: 8 MiB.
	MaxBody int64 `json:"max_body,omitempty"`

	app     *llmapp.App
	open    recording.Opener
	credits func() (*credits.Ledger, error)
	sealer  func() (*sealer, error)
	store   string
	policy  policy
	models  []*modelEntry
	logger  *zap.Logger
}

const (
	defaultRetries     = 1
	defaultTryDuration = 60 * time.Second
	defaultMaxBody     = 8 << 20
)

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_gateway", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	app, store, err := llmapp.Use(ctx, h.Store)
	if err != nil {
		return err
	}
	h.app = app
	h.open, h.credits = recording.Open(store), store.Credits
	h.sealer = sync.OnceValues(func() (*sealer, error) {
		secret, err := h.app.Secret(store)
		if err != nil {
			return nil, err
		}
		return newSealer(secret)
	})
	h.store = cmp.Or(h.Store, llmapp.DefaultName)
	h.policy = policy{retries: defaultRetries, tryDuration: time.Duration(h.TryDuration)}
	if h.Retries != nil {
		h.policy.retries = *h.Retries
	}
	if h.policy.tryDuration == 0 {
		h.policy.tryDuration = defaultTryDuration
	}
	if h.MaxBody == 0 {
		h.MaxBody = defaultMaxBody
	}
	h.models = models(h.app.Catalog(), h.app.Offered())
	return nil
}

// Validate checks the settings.
func (h *Handler) Validate() error {
	if h.policy.retries < 0 {
		return fmt.Errorf("retries %d: want 0 or more", h.policy.retries)
	}
	if h.policy.tryDuration < 0 {
		return fmt.Errorf("try_duration %s: want a time to try", h.policy.tryDuration)
	}
	if h.MaxBody < 0 {
		return fmt.Errorf("max_body %d: want a number of bytes", h.MaxBody)
	}
	return nil
}

// dialects are those of the endpoints that call models.
var dialects = map[string]plugins.Dialect{
	"/v1/responses":             plugins.Responses,
	"/v1/chat/completions":      plugins.Chat,
	"/v1/messages":              plugins.Messages,
	"/v1/messages/count_tokens": plugins.CountTokens,
	"/v1/embeddings":            plugins.Embeddings,
}

// anthropics reports whether a dialect has Anthropic's headers and errors.
func anthropics(d plugins.Dialect) bool { return d == plugins.Messages || d == plugins.CountTokens }

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	switch r.URL.Path {
	case "/v1/models", "/v1/models/multimodal":
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return methodNotAllowed(w, plugins.Responses, "GET, HEAD")
		}
		return h.serveModels(w, r, r.URL.Path == "/v1/models/multimodal")
	}
	if dialect, ok := dialects[r.URL.Path]; ok {
		if r.Header.Get("Upgrade") != "" {
			return writeError(w, dialect, &plugins.Error{
				Status: http.StatusUpgradeRequired, Type: "invalid_request_error", Code: "websocket_unsupported",
				Message: "This endpoint speaks no WebSocket: send a POST.",
			}, nil)
		}
		if r.Method != http.MethodPost {
			return methodNotAllowed(w, dialect, "POST")
		}
		return h.serveCall(w, r, dialect)
	}
	if strings.HasPrefix(r.URL.Path, "/v1/responses/") {
		return writeError(w, plugins.Responses, &plugins.Error{
			Status: http.StatusNotFound, Type: "invalid_request_error", Code: "not_found",
			Message: "Responses are not kept for retrieval here.",
		}, nil)
	}
	return next.ServeHTTP(w, r)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	llm_gateway [<matcher>] {
//		store        <name>
//		retries      <number>
//		try_duration <duration>
//		max_body     <size>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		option := d.Val()
		var arg string
		if !d.AllArgs(&arg) {
			return d.ArgErr()
		}
		var err error
		switch option {
		case "store":
			h.Store = arg
		case "retries":
			h.Retries = new(int)
			*h.Retries, err = strconv.Atoi(arg)
		case "try_duration":
			var duration time.Duration
			duration, err = caddy.ParseDuration(arg)
			h.TryDuration = caddy.Duration(duration)
		case "max_body":
			var size uint64
			size, err = humanize.ParseBytes(arg)
			h.MaxBody = int64(size)
		default:
			return d.Errf("unrecognized subdirective '%s'", option)
		}
		if err != nil {
			return d.Errf("%s: %v", option, err)
		}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
