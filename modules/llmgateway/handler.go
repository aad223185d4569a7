// Package llmgateway is the handler that calls the models of all providers: it selects
// the provider, translates, retries, fails over, bills and records.
package llmgateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/mcptools"
	"github.com/weirhq/weir/modules/llmgateway/models"
	"github.com/weirhq/weir/modules/llmgateway/responsesapi"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/storage/shared"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler is the gateway to the providers of the app `llm`. It serves OpenAI's Responses,
// with kept responses and conversations, Chat Completions and Anthropic's Messages for any
// model; OpenAI's other endpoints of models, Realtime, files and batches, and Cohere's Rerank
// at providers that have them; and the list of models. `GET /v1/openapi.json` describes
// each endpoint.
//
// Callers authenticate with `Authorization: Bearer <API key>`, and for Messages
// also with `X-Api-Key: <API key>`; the lists need no key. With a key, a list has the
// models that the key's organisation can call. The model is an alias, `label/model`, the id
// of a model that a provider serves, or several of these with commas, which are
// tried in this order. Until an answer has begun, a failed attempt is repeated, at the
// same provider or at the next. Each attempt is a record, and `Service-Id` names
// the one that answered. The control headers and placeholders are the same as in
// `llm_log`.
//
// Requests for other paths go to the next handler.
type Handler struct {
	// Store names the store of the records. Keys of organisations in other stores are
	// refused. Default: `default`.
	Store string `json:"store,omitempty"`

	// Retries is how often a failed attempt is repeated at the same provider
	// before the next is tried. Default: 1.
	Retries *int `json:"retries,omitempty"`

	// TryDuration is how long after the request new attempts may begin. Running attempts
	// may continue. Default: 60s.
	TryDuration caddy.Duration `json:"try_duration,omitempty"`

	// FirstByteTimeout is how long a provider may take to begin its answer before the next
	// provider is tried. Default: 30s for a stream if another provider is left, else no
	// limit, because an answer without streaming begins when the model has finished.
	FirstByteTimeout caddy.Duration `json:"first_byte_timeout,omitempty"`

	// MaxItems is how many items the input of a request of Responses may have.
	// Default: 20000.
	MaxItems int `json:"max_items,omitempty"`

	// MaxTools is how many tools a request of Responses may have. Default: 1024.
	MaxTools int `json:"max_tools,omitempty"`

	// Mask says what is masked in the content that is stored of this site, besides what is masked
	// of the organisation. Default: nothing.
	Mask []*mask.Rule `json:"mask,omitempty"`

	// MaxBody bounds the bytes of each body that a record keeps, 1 or more.
	// Default: 8 MiB.
	MaxBody directive.Size `json:"max_body,omitempty"`

	// Cache lets Weir's cache answer calls whose clients do not ask for it. Default: it answers
	// those with `Service-Cache-Enabled: true`.
	Cache *cache.Config `json:"cache,omitempty"`

	// MCP are the URLs of MCP servers that the gateway calls if a request of Responses names
	// one in a tool `mcp`, and the target does not call MCP servers itself. A tool with any
	// other URL is left out with a warning. Default: none.
	MCP mcptools.Servers `json:"mcp,omitempty"`

	// CORS are the origins of web pages that may call, like `https://example.com`, or
	// `*` for all. Callers are identified by the key that they send, not by a cookie.
	// Default: none; browsers then refuse calls of pages of other origins.
	CORS []string `json:"cors,omitempty"`

	gateway
}

// gateway is what Provision builds from the configuration of a Handler.
type gateway struct {
	site      *recording.Site
	responses responsesapi.Deps
	policy    routing.Policy
	models    models.List
	breakers  func() shared.Breakers
	affinity  func() shared.Affinity // nil if nodes share nothing
	unloaded  <-chan struct{}        // closed when another configuration takes over
	// secrets returns the keys that are derived from the secret of the nodes. It logs errors.
	secrets func() (*secret.Secrets, error)
}

const (
	defaultRetries     = 1
	backoff            = 250 * time.Millisecond
	defaultTryDuration = 60 * time.Second
	defaultMaxBody     = 8 << 20
	defaultMaxItems    = 20_000
	defaultMaxTools    = 1024
)

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_gateway", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	site, store, err := recording.NewSite(ctx, h.Store, h.Mask)
	if err != nil {
		return err
	}
	h.site = site
	app := site.App
	h.unloaded = ctx.Done()
	h.secrets = sync.OnceValues(func() (*secret.Secrets, error) {
		text, err := app.Secret(store)
		if err != nil {
			site.Logger.Error("the secret of the gateway cannot be read", zap.Error(err))
			return nil, err
		}
		return secret.New(text, store.Memory)
	})
	h.responses = responsesapi.Deps{
		Journal: func() (history.Journal, error) { return store.Journal() }, Mask: app.Maskers().Of,
		Secrets: h.secrets, Nodes: store.Runs, Runs: &backgroundRuns, Logger: site.Logger,
	}
	h.breakers, h.affinity = store.Breakers, store.Affinity
	h.policy = routing.Policy{
		Retries: defaultRetries, Backoff: backoff, TryDuration: time.Duration(h.TryDuration), FirstByteTimeout: time.Duration(h.FirstByteTimeout),
	}
	if h.Retries != nil {
		h.policy.Retries = *h.Retries
	}
	if h.policy.TryDuration == 0 {
		h.policy.TryDuration = defaultTryDuration
	}
	h.MaxBody = cmp.Or(h.MaxBody, defaultMaxBody)
	h.MaxItems = cmp.Or(h.MaxItems, defaultMaxItems)
	h.MaxTools = cmp.Or(h.MaxTools, defaultMaxTools)
	h.models = models.New(app)
	recording.Poll(site, store)
	return h.checkProviders()
}

// checkProviders rejects a configuration without providers, and one with an alias that no
// provider can serve.
func (h *Handler) checkProviders() error {
	app := h.site.App
	everybody := routing.Resolver{Catalog: app.Catalog(), Accounts: app.Accounts().All()}
	if len(everybody.Accounts) == 0 {
		return errors.New("no provider is configured: name one in the global option llm, as in `provider openai`")
	}
	for _, alias := range slices.Sorted(maps.Keys(app.Aliases)) {
		for _, model := range app.Aliases[alias].AllModels() {
			if _, _, err := everybody.Resolve(model); err != nil {
				return app.At(fmt.Errorf("alias %s: %w", alias, err), "alias "+alias)
			}
		}
	}
	return nil
}

func (h *Handler) checker() access.Checker {
	return access.Checker{Keys: h.site.App.Authenticator(), Store: h.site.Store}
}

// Validate checks the settings.
func (h *Handler) Validate() error {
	if h.policy.Retries < 0 {
		return fmt.Errorf("retries %d: want 0 or more", h.policy.Retries)
	}
	if h.policy.TryDuration < 0 {
		return fmt.Errorf("try_duration %s: want a time to try", h.policy.TryDuration)
	}
	if h.policy.FirstByteTimeout < 0 {
		return fmt.Errorf("first_byte_timeout %s: want a time to wait", h.policy.FirstByteTimeout)
	}
	if err := h.Cache.Validate(); err != nil {
		return err
	}
	if err := checkOrigins(h.CORS); err != nil {
		return err
	}
	if err := h.MCP.Check(); err != nil {
		return err
	}
	if h.MaxItems < 0 || h.MaxTools < 0 {
		return fmt.Errorf("max_items %d, max_tools %d: want numbers above 0", h.MaxItems, h.MaxTools)
	}
	return nil
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	llm_gateway [<matcher>] {
//		store              <name>
//		retries            <number>
//		try_duration       <duration>
//		first_byte_timeout <duration>
//		max_items          <number>
//		max_tools          <number>
//		max_body           <size>
//		mask               <kinds...> {
//			...
//		}
//		cache              [<max_age>]
//		mcp                <url>...
//		cors               <origin>...
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{
		"store":              directive.Text(&h.Store),
		"retries":            directive.Number(&h.Retries),
		"try_duration":       directive.Duration(&h.TryDuration),
		"first_byte_timeout": directive.Duration(&h.FirstByteTimeout),
		"max_items":          directive.Positive(&h.MaxItems),
		"max_tools":          directive.Positive(&h.MaxTools),
		"max_body":           directive.Bytes(&h.MaxBody),
		"mask":               llmapp.MaskOption(&h.Mask),
		"cache":              cache.Option(&h.Cache),
		"mcp":                directive.Texts((*[]string)(&h.MCP)),
		"cors":               h.parseOrigins,
	}.Directive(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
