// Package llmapp is the Caddy app `llm`: what the handlers of one configuration
// share. It owns the named stores, the organisations with their keys, the
// providers of the gateway, the spelling of control headers, the catalogue and
// the metrics.
package llmapp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/position"
	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/masking"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins/catalog"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App configures what Weir's handlers share.
type App struct {
	// Stores keep the records, by name. Organisations and handlers that name no store
	// use `default`. Unless configured, `default` is an SQLite database in Caddy's data
	// directory.
	Stores map[string]*stores.Config `json:"stores,omitempty"`

	// Tenant configures the organisation `default`. Its identities can also admit callers to another
	// organisation, which a claim of the token names.
	Tenant

	// Organisations are the organisations by name. No query sees the records of another
	// organisation.
	Organisations map[string]*Organisation `json:"orgs,omitempty"`

	// Providers are the model providers that all organisations can call through the
	// gateway. If several serve a model at the same price, the earlier one is called first.
	Providers []*providers.Provider `json:"providers,omitempty"`

	// Aliases are names for one or more models, with a rule that chooses among them. A list
	// is tried in order: `"fast": ["openai/gpt-5-mini"]`.
	Aliases map[string]*routing.Alias `json:"aliases,omitempty"`

	// Mask says what is masked before anything is stored, for all organisations. Default: nothing.
	Mask []*mask.Rule `json:"mask,omitempty"`

	// SecretText encrypts what clients send back to the gateway in later calls, such as
	// the reasoning of models. Best use a placeholder like `{env.WEIR_SECRET}`. Gateways that
	// share traffic need the same secret. Default: a secret that is generated once, and kept
	// beside the store.
	SecretText string `json:"secret,omitempty"`

	// AuditReads writes to the audit log who reads the content of other callers' calls. Only a store
	// with `llm_control` has an audit log. Default: true.
	AuditReads *bool `json:"audit_reads,omitempty"`

	// RequestMemory bounds the memory of all requests together, in bytes. Further requests
	// wait, and then get a 503. Default: a quarter of the process's memory, at most 1 GiB.
	RequestMemory directive.Size `json:"request_memory,omitempty"`

	// HeaderPrefixes are prefixes of control headers in addition to `Service`: with
	// `Helicone`, the header `Helicone-User-Id` means `Service-User-Id`.
	HeaderPrefixes []string `json:"header_prefixes,omitempty"`

	// PropertyNames are the exact spellings of properties that arrive as headers. They are
	// needed because header names have no letter case: with `userTier`, the header
	// `Service-Property-Usertier` sets the property `userTier`.
	PropertyNames []string `json:"property_names,omitempty"`

	// CatalogFile names a file of models and prices that take precedence over the
	// built-in ones.
	CatalogFile string `json:"catalog,omitempty"`

	// CatalogKey is a public key of minisign. Weir accepts catalogues that are signed with it. The
	// newest one replaces the built-in catalogue if that is older. Default: none is accepted.
	CatalogKey string `json:"catalog_key,omitempty"`

	// Queries is how many queries run at once, and QueriesPerKey how many of one API key.
	// Others wait; if too many wait, they get a 429. Default: half of the processors, but
	// at least 3; and half of that, rounded up.
	Queries       int `json:"queries,omitempty"`
	QueriesPerKey int `json:"queries_per_key,omitempty"`

	env      environment
	orgs     organisations
	prices   Prices
	requests requestRules
	metrics  *Metrics
	jobs     jobs
}

// environment is what the app gets from Caddy.
type environment struct {
	ctx     caddy.Context
	lines   *position.Lines // where the Caddyfile has each option
	logger  *zap.Logger
	bounded *zap.Logger   // for messages that callers can cause often: it drops repetitions
	claimed addressClaims // the addresses of the sites; empty until Start
}

// requestRules bound the requests of all handlers, and say how their headers are spelled.
type requestRules struct {
	headers *control.Headers
	memory  *admission.Memory
	turns   Turns
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm", New: func() caddy.Module { return new(App) }}
}

// Provision sets the app up. It opens no store: `caddy validate` provisions too.
func (a *App) Provision(ctx caddy.Context) error {
	a.env = environment{ctx: ctx, logger: ctx.Logger(), bounded: BoundedLogger(ctx.Logger())}
	if err := checkNulls(a); err != nil {
		return err
	}
	for name, org := range sorted(a.Organisations) {
		if err := checkNulls(org); err != nil {
			return fmt.Errorf("org %s: %w", name, err)
		}
	}
	config, err := json.Marshal(a)
	if err != nil {
		return err
	}
	a.env.lines = position.Of(config)

	a.addDefaultStore()
	a.orgs = organisations{env: &a.env, stores: a.Stores, byName: a.Tenant.organisations(a.Organisations)}
	if err := a.orgs.provisionMask(a.Mask, a.Secret); err != nil {
		return err
	}
	if err := a.orgs.provisionStores(a.SecretText != ""); err != nil {
		return err
	}
	if err := a.provisionRequests(); err != nil {
		return err
	}
	if err := a.orgs.provisionKeys(a.Organisations); err != nil {
		return err
	}
	if a.prices, err = newPrices(&a.env, a.CatalogKey, a.CatalogFile, a.Stores[stores.DefaultName].Store().Dir()); err != nil {
		return err
	}
	if err := a.orgs.provisionProviders(a.Catalog(), a.Providers, a.Aliases); err != nil {
		return err
	}
	isAlias := func(name string) bool { return a.Aliases[name] != nil }
	if err := a.orgs.provisionBudgets(isAlias); err != nil {
		return err
	}
	if err := a.orgs.provisionBills(); err != nil {
		return err
	}
	if err := a.orgs.provisionAlerts(); err != nil {
		return err
	}
	a.orgs.money.CheckProperties(a.requests.headers)
	a.metrics = newMetrics(a.Catalog(), a.orgs.accounts.All())
	for name, alias := range sorted(a.Aliases) {
		if err := checkAlias(name, alias, isAlias); err != nil {
			return a.At(err, "alias "+name)
		}
	}
	return registerMetrics(ctx.GetMetricsRegistry())
}

func (a *App) addDefaultStore() {
	if a.Stores == nil {
		a.Stores = make(map[string]*stores.Config)
	}
	if a.Stores[stores.DefaultName] == nil {
		a.Stores[stores.DefaultName] = new(stores.Config)
	}
}

func (a *App) provisionRequests() (err error) {
	if a.requests.turns, err = newTurns(a.Queries, a.QueriesPerKey); err != nil {
		return a.At(err, "queries")
	}
	if a.requests.headers, err = control.NewHeaders(a.HeaderPrefixes, a.PropertyNames); err != nil {
		option, _, _ := strings.Cut(err.Error(), " ") // the error begins with the option
		return a.At(err, strings.TrimSuffix(option, ":"))
	}
	a.requests.memory = admission.NewMemory(int64(a.RequestMemory))
	return nil
}

// Validate rejects stores that share a directory, and stores that cannot be written.
func (a *App) Validate() error {
	names := make(map[string]string)
	for name, config := range sorted(a.Stores) {
		key := config.Store().Place()
		if other, ok := names[key]; ok {
			return a.At(fmt.Errorf("stores %s and %s are the same place: %s; give each a path of its own", other, name, key), config.Lines(name)...)
		}
		names[key] = name
		if err := config.CheckWritable(); err != nil {
			return a.At(fmt.Errorf("store %s: %w", name, err), config.Lines(name)...)
		}
	}
	return nil
}

// Start opens the stores. A store that the earlier configuration has open gets its new settings only when
// that configuration is cleaned up: until then, this one may still fail.
func (a *App) Start() error {
	redact.StandardLog()
	a.orgs.maskers.MaskLogs()
	if err := a.env.checkRecorders(); err != nil {
		return err
	}
	if err := a.env.claimed.claimSites(a.env.ctx); err != nil {
		return err
	}
	for name, config := range sorted(a.Stores) {
		if err := config.Start(); err != nil {
			return a.At(fmt.Errorf("store %s: %w", name, err), config.Lines(name)...)
		}
	}
	if err := a.orgs.money.Seed(context.Background()); err != nil {
		return err
	}
	for _, config := range a.Stores {
		config.Store().SetServing()
	}
	for _, e := range a.orgs.alerts {
		e.Start()
	}
	a.jobs.start()
	return nil
}

// Stop stops the alerts and the jobs. Requests of this configuration may still be in flight, so Cleanup
// releases its stores.
func (a *App) Stop() error {
	for _, e := range a.orgs.alerts {
		e.Stop()
	}
	a.jobs.end()
	return nil
}

// Cleanup releases the app's addresses and stores, and closes unused connections.
func (a *App) Cleanup() error {
	a.env.claimed.release()
	a.orgs.accounts.Cleanup()
	for _, config := range a.Stores {
		if config != nil { // it is nil in a configuration that Provision has refused
			config.Release()
		}
	}
	return nil
}

// Use returns the app of the configuration that ctx loads, and the named store. Handlers call it when they are
// provisioned.
func Use(ctx caddy.Context, store string) (*App, *stores.Store, error) {
	loaded, err := ctx.App("llm")
	if err != nil {
		return nil, nil, err
	}
	app := loaded.(*App)
	s, err := app.Store(store)
	return app, s, err
}

// sorted yields the entries of a map in the order of their names.
func sorted[V any](configured map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(configured)) {
			if !yield(name, configured[name]) {
				return
			}
		}
	}
}

// Store returns the store of that name; "" is the default one.
func (a *App) Store(name string) (*stores.Store, error) {
	name = cmp.Or(name, stores.DefaultName)
	config, ok := a.Stores[name]
	if !ok {
		return nil, errNoStore(name, a.Stores)
	}
	return config.Store(), nil
}

func errNoStore(name string, configured map[string]*stores.Config) error {
	return fmt.Errorf("no store is named %s (have %v)", name, slices.Sorted(maps.Keys(configured)))
}

// StoreOf returns the store of an organisation.
func (a *App) StoreOf(org string) (*stores.Store, error) { return a.Store(a.orgs.keys.StoreOf(org)) }

// Organisation returns the named organisation, or nil if it is not configured; `default` always is.
func (a *App) Organisation(name string) *Organisation { return a.orgs.byName[name] }

// Authenticator finds the caller of a key or a token.
func (a *App) Authenticator() *access.Authenticator { return &a.orgs.keys }

// Accounts returns the accounts at providers.
func (a *App) Accounts() *providers.Accounts { return &a.orgs.accounts }

// Resolver finds the targets of a model's name for an organisation.
func (a *App) Resolver(org string) *routing.Resolver {
	if own := a.orgs.resolvers[org]; own != nil {
		return own
	}
	return a.orgs.resolvers[""]
}

// Money decides what calls may cost.
func (a *App) Money() *money.Budgets { return a.orgs.money }

// Counts returns how many tokens providers counted for the turns of conversations.
func (a *App) Counts() *lineage.Counts { return &a.orgs.counts }

// Maskers mask the records of organisations.
func (a *App) Maskers() *masking.Maskers { return a.orgs.maskers }

// Alerts evaluates the alerts of an organisation. It is nil if the organisation has no channel.
func (a *App) Alerts(org string) *alert.Engine { return a.orgs.alerts[org] }

// Reconciler compares the bills of providers with records.
func (a *App) Reconciler() *Reconciler { return &a.orgs.reconciler }

// Prices returns the catalogue in use, and replaces it when a newer one is installed.
func (a *App) Prices() *Prices { return &a.prices }

// Catalog returns the models and prices in use.
func (a *App) Catalog() *catalog.Catalog { return a.prices.catalog }

// Memory bounds the requests of an organisation that are in memory. "" stands for all callers without
// a key.
func (a *App) Memory(org string) *admission.Memory { return a.requests.memory.Of(org) }

// Turns bounds how many queries run at once.
func (a *App) Turns() Turns { return a.requests.turns }

// Headers returns the spellings of control headers.
func (a *App) Headers() *control.Headers { return a.requests.headers }

// Metrics counts calls for Prometheus.
func (a *App) Metrics() *Metrics { return a.metrics }

// Secret returns the configured secret, or else the store's, which the first call creates.
func (a *App) Secret(s *stores.Store) ([]byte, error) {
	if a.SecretText == "" {
		return s.Secret()
	}
	secret, err := a.env.lines.Expand("secret", a.SecretText)
	if err != nil {
		return nil, err
	}
	return []byte(secret), nil
}

// At adds the Caddyfile's line to an error of the configuration. path are the first words of lines, each
// in the block of the one before. If the configuration is JSON, At returns err unchanged.
func (a *App) At(err error, path ...string) error { return a.env.lines.Wrap(err, path...) }

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
