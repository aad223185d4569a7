package llmapp

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/transport"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// API is what a module of the namespace `llm.providers` provides. One that is an
// http.RoundTripper too answers its own requests, without a network.
//
// One that has other credentials than a key, such as those of a cloud's account,
// says so with two more methods: KeyOptional() bool is true where it finds some
// on the machine, which are the operator's, and HasCredentials() bool where some
// are configured, which an organisation's own account needs.
type API interface {
	translate.Provider
	caddy.Module
}

// defaultTarget returns the base URL of the vendor's public API, "" if there is none, and the
// environment variable from which the vendor's own tools take the key, "" if the provider
// needs no key. An API whose settings decide has a method of that name.
func defaultTarget(api API) (baseURL, keyEnv string) {
	if t, ok := api.(interface {
		DefaultTarget() (baseURL, keyEnv string)
	}); ok {
		return t.DefaultTarget()
	}
	return plugins.DefaultTarget(api.CaddyModule().ID.Name())
}

type (
	keyOptional interface{ KeyOptional() bool }
	credentials interface{ HasCredentials() bool }
)

// Provider configures how the gateway reaches a provider of models.
type Provider struct {
	// Label names the provider in models like `lab/llama-4`. Default: its kind.
	Label string `json:"label,omitempty"`

	// APIRaw is the kind of provider, like `{"kind": "openai"}`, with its own settings.
	// Default: the label is the kind; in an organisation, the platform provider with the
	// same label.
	APIRaw json.RawMessage `json:"api,omitempty" caddy:"namespace=llm.providers inline_key=kind"`

	// BaseURL is the base URL that the vendor's own SDK takes: with `/v1` for APIs like
	// OpenAI's. Default: the vendor's public address.
	BaseURL string `json:"base_url,omitempty"`

	// APIKey is the credential, best as a placeholder like `{env.OPENAI_API_KEY}`.
	// Default: the environment variable of the vendor's own tools. An organisation's
	// provider has no default.
	APIKey string `json:"api_key,omitempty"`

	// Models are the models that the provider serves, if the catalogue does not know the
	// provider. Default: those of the catalogue.
	Models []string `json:"models,omitempty"`

	// TransportRaw is any transport of `reverse_proxy`. Default: `llm`, which connects
	// within 5 seconds or fails.
	TransportRaw json.RawMessage `json:"transport,omitempty" caddy:"namespace=http.reverse_proxy.transport inline_key=protocol"`

	kind      string
	api       API
	settings  string // of the API, as configured; "" when it is inherited
	transport http.RoundTripper
}

// Account is a provider with the credentials by which it is called.
type Account struct {
	// ID is the same for the same kind, settings, address and key in any
	// configuration.
	ID [sha256.Size]byte
	// Label names the account in models like `lab/llama-4`.
	Label string
	// Provider is the provider's name, as records and the catalogue have it: the
	// kind, or the label where the catalogue has models under it.
	Provider string
	// Platform is true of an account that is configured for all organisations,
	// with the platform's credentials.
	Platform bool
	// Models are those that it serves; nil stands for those of the catalogue.
	Models []string

	API       API
	BaseURL   string
	Transport Transport

	key     string
	standIn string // for key in requests, until a ticket sends them
}

// Target returns where requests for a model go. Its key only stands for that of the
// account, which Bill.Send puts in its place: who has no ticket cannot spend.
func (a *Account) Target(model string, c *plugins.Capabilities) translate.Target {
	return translate.Target{Model: model, BaseURL: a.BaseURL, Key: a.standIn, Capabilities: c}
}

// sign returns a request with the key of the account in place of what stands for it.
func (a *Account) sign(req *http.Request) *http.Request {
	if a.key == "" {
		return req
	}
	signed := *req
	signed.Header = maps.Clone(req.Header)
	for name, values := range req.Header {
		for i, value := range values {
			if strings.Contains(value, a.standIn) {
				values = slices.Clone(values)
				values[i] = strings.ReplaceAll(value, a.standIn, a.key)
				signed.Header[name] = values
			}
		}
	}
	if strings.Contains(req.URL.RawQuery, a.standIn) {
		to := *req.URL
		to.RawQuery = strings.ReplaceAll(to.RawQuery, a.standIn, url.QueryEscape(a.key))
		signed.URL = &to
	}
	return &signed
}

// dialTimeout bounds how long a provider may take to accept a connection.
const dialTimeout = 5 * time.Second

// accounts are the accounts that are configured for all organisations.
type accounts struct {
	platform  []*Account // with a key
	keyless   []*Account // without a key
	transport *transport.Transport
}

// provisionProviders makes the accounts of the platform and of each organisation.
func (a *App) provisionProviders(ctx caddy.Context) error {
	labels := make(map[string]bool)
	for _, p := range a.Providers {
		if err := a.provisionProvider(ctx, p, nil); err != nil {
			return a.At(fmt.Errorf("provider %s: %w", p.Label, err), "provider "+p.Label)
		}
		if labels[p.Label] {
			return fmt.Errorf("two providers are labelled %s", p.Label)
		}
		labels[p.Label] = true
		account, err := p.account(a, "")
		if err != nil {
			return fmt.Errorf("provider %s: %w", p.Label, err)
		}
		if !account.usable() {
			a.logger.Warn("this provider has no API key, only organisations with a key of their own can use it; set the environment variable or api_key",
				zap.String("provider", p.Label), zap.String("environment", account.KeyEnv()))
			a.keyless = append(a.keyless, account)
			continue
		}
		a.platform = append(a.platform, account)
	}
	for name, org := range sorted(a.Organisations) {
		if err := a.provisionOwn(ctx, name, org); err != nil {
			return fmt.Errorf("org %s: %w", name, err)
		}
	}
	return nil
}

// provisionOwn makes the accounts that an organisation has keys of its own for.
func (a *App) provisionOwn(ctx caddy.Context, name string, org *Organisation) error {
	for _, p := range org.Providers {
		var inherited *Provider
		for _, global := range a.Providers {
			if global.Label == p.Label {
				inherited = global
			}
		}
		if err := a.provisionProvider(ctx, p, inherited); err != nil {
			return a.At(fmt.Errorf("provider %s: %w", p.Label, err), "org "+name, "provider "+p.Label)
		}
		account, err := p.account(a, name)
		if err != nil {
			return fmt.Errorf("provider %s: %w", p.Label, err)
		}
		if !account.payable(p.settings != "") {
			return a.At(fmt.Errorf("provider %s: set an api_key of its own; the credentials for all are not inherited", p.Label), "org "+name, "provider "+p.Label)
		}
		org.accounts = append(org.accounts, account)
	}
	return nil
}

// provisionProvider loads a provider's modules, or takes over what it inherits,
// which is everything but credentials.
func (a *App) provisionProvider(ctx caddy.Context, p, inherited *Provider) error {
	if p.APIRaw == nil && inherited != nil {
		p.api, p.kind = inherited.api, inherited.kind
	} else {
		if p.APIRaw == nil {
			p.APIRaw, _ = json.Marshal(map[string]string{"kind": p.Label}) // one string always marshals
		}
		var inline struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(p.APIRaw, &inline); err != nil {
			return err
		}
		p.settings = string(p.APIRaw)
		mod, err := ctx.LoadModule(p, "APIRaw")
		if err != nil {
			return fmt.Errorf("loading its kind: %w", err)
		}
		api, ok := mod.(API)
		if !ok {
			return fmt.Errorf("module %T is no provider", mod)
		}
		p.api, p.kind = api, inline.Kind
	}
	p.Label = cmp.Or(p.Label, p.kind)
	if err := p.Check(); err != nil {
		return err
	}
	if inherited != nil {
		p.BaseURL = cmp.Or(p.BaseURL, inherited.BaseURL)
		if p.Models == nil {
			p.Models = inherited.Models
		}
	}
	return p.provisionTransport(ctx, a, inherited)
}

func (p *Provider) provisionTransport(ctx caddy.Context, a *App, inherited *Provider) error {
	own, answersItself := p.api.(http.RoundTripper)
	switch {
	case p.TransportRaw != nil:
		mod, err := ctx.LoadModule(p, "TransportRaw")
		if err != nil {
			return fmt.Errorf("loading its transport: %w", err)
		}
		var ok bool
		if p.transport, ok = mod.(http.RoundTripper); !ok {
			return fmt.Errorf("module %T is no transport", mod)
		}
		if t, ok := mod.(reverseproxy.ProxyProtocolTransport); ok && t.ProxyProtocolEnabled() {
			return errors.New("its transport has proxy_protocol, which names one client for each connection, and calls of all clients share connections to a provider: leave proxy_protocol out")
		}
	case inherited != nil && inherited.TransportRaw != nil:
		p.transport = inherited.transport
	case answersItself:
		p.transport = own
	default:
		if a.transport == nil {
			t := &transport.Transport{HTTPTransport: reverseproxy.HTTPTransport{DialTimeout: caddy.Duration(dialTimeout)}}
			if err := t.Provision(ctx); err != nil {
				return err
			}
			a.transport = t
		}
		p.transport = a.transport
	}
	return nil
}

// Check finds what is wrong with a provider, whatever the values of its
// placeholders.
func (p *Provider) Check() error {
	if strings.ContainsAny(p.Label, "/, ") {
		return fmt.Errorf("its label stands in lists of models like label/model: it can have no slash, comma or space")
	}
	if p.BaseURL != "" && !strings.Contains(p.BaseURL, "{") {
		return checkBaseURL(p.BaseURL)
	}
	return nil
}

func checkBaseURL(baseURL string) error {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("base_url %q: want an address like https://api.example.com/v1", baseURL)
	}
	return nil
}

// account is the provider with its credentials, for an organisation, or for all where
// org is "". A placeholder without a value is an error, because otherwise the first call
// would fail.
func (p *Provider) account(a *App, org string) (*Account, error) {
	within := []string{"org " + org, "provider " + p.Label}
	baseURL, keyEnv := defaultTarget(p.api)
	if p.BaseURL != "" {
		var err error
		if baseURL, err = a.expand("base_url", p.BaseURL, within...); err != nil {
			return nil, err
		}
	}
	baseURL = strings.TrimRight(baseURL, "/")
	if _, local := p.api.(http.RoundTripper); !local || baseURL != "" {
		if err := checkBaseURL(baseURL); err != nil {
			return nil, a.At(err, append(within, "base_url")...)
		}
	}
	key, err := a.expand("api_key", p.APIKey, within...)
	if err != nil {
		return nil, err
	}
	if p.APIKey == "" && org == "" && keyEnv != "" {
		key = os.Getenv(keyEnv)
	}
	account := &Account{
		ID:    sha256.Sum256([]byte(p.kind + "\x00" + baseURL + "\x00" + key + "\x00" + p.settings)),
		Label: p.Label, Provider: p.name(a.catalog, baseURL), Platform: org == "", Models: p.Models,
		API: p.api, BaseURL: baseURL, key: key, Transport: Transport{p.transport},
	}
	if key != "" {
		account.standIn = "weir-" + rand.Text()
	}
	return account, nil
}

// name is the provider's name in records and in the catalogue: that of the vendor whose
// host it is, as in the proxy, else the label where the catalogue has it, else the kind.
func (p *Provider) name(c *catalog.Catalog, baseURL string) string {
	if u, err := url.Parse(baseURL); err == nil {
		if vendor := observe.Provider(u.Host); vendor != "" {
			return vendor
		}
	}
	for m := range c.Models() {
		if m.Provider == p.Label {
			return p.Label
		}
	}
	return p.kind
}

// usable reports whether the account has the credentials that it needs.
func (a *Account) usable() bool {
	o, ok := a.API.(keyOptional)
	return a.key != "" || a.KeyEnv() == "" || ok && o.KeyOptional()
}

// payable reports whether an organisation's account has credentials of its own,
// so that nobody else pays for its calls. ownAPI is true of an API that was
// configured for the organisation.
func (a *Account) payable(ownAPI bool) bool {
	c, ok := a.API.(credentials)
	return a.key != "" || a.KeyEnv() == "" || ownAPI && ok && c.HasCredentials()
}

// KeyEnv returns the environment variable from which the account takes its key
// unless one is configured, "" for a provider that needs none.
func (a *Account) KeyEnv() string {
	_, keyEnv := defaultTarget(a.API)
	return keyEnv
}

// Accounts returns what an organisation can call, in the order of preference
// where nothing else decides: its own, and then those of the platform.
func (a *App) Accounts(org string) []*Account {
	o := a.Organisations[org]
	if o == nil || len(o.accounts) == 0 {
		return a.platform
	}
	return append(o.accounts[:len(o.accounts):len(o.accounts)], a.platform...)
}

// Keyless returns the accounts that an organisation cannot call because they have
// no key, neither its own nor one of the platform.
func (a *App) Keyless(org string) []*Account {
	o := a.Organisations[org]
	if o == nil || len(o.accounts) == 0 {
		return a.keyless
	}
	return slices.DeleteFunc(slices.Clone(a.keyless), func(k *Account) bool {
		return slices.ContainsFunc(o.accounts, func(own *Account) bool { return own.Label == k.Label })
	})
}

// AllAccounts returns those of the platform, with and without a key, and of all
// organisations.
func (a *App) AllAccounts() []*Account {
	all := slices.Concat(a.platform, a.keyless)
	for _, org := range sorted(a.Organisations) {
		all = append(all, org.accounts...)
	}
	return all
}

// provisionAliases rejects aliases that nobody could call.
func (a *App) provisionAliases() error {
	for name, models := range a.Aliases {
		if name == "" || strings.Contains(name, ",") {
			return a.At(fmt.Errorf("alias %q: a name has no comma, which separates models", name), "alias "+name)
		}
		if len(models) == 0 {
			return a.At(fmt.Errorf("alias %s: name at least one model", name), "alias "+name)
		}
		for _, model := range models {
			if a.Aliases[model] != nil {
				return a.At(fmt.Errorf("alias %s: %s is an alias, too: name its models", name, model), "alias "+name)
			}
		}
	}
	return nil
}
