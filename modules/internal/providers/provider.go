// Package providers makes the accounts by which models are called: a provider with an address, a
// transport and credentials, for all organisations or for one.
package providers

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/weirhq/weir/internal/position"
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

	// Tags are what the vendor's invoice says of whoever made a call, where the vendor has that:
	// `user`, `project`, `key`, `organization` or `property.<name>`, as verified by the caller's key.
	// Calls of which one is not known are refused. Default: the vendor is told of nobody.
	Tags []string `json:"tags,omitempty"`

	// TransportRaw is any transport of `reverse_proxy`. Default: `llm`, which connects
	// within 5 seconds or fails.
	TransportRaw json.RawMessage `json:"transport,omitempty" caddy:"namespace=http.reverse_proxy.transport inline_key=protocol"`

	kind      string
	api       API
	settings  string // of the API, as configured; "" when it is inherited
	transport http.RoundTripper
}

// provision loads the provider's modules, or takes over what it inherits, which is everything but
// credentials. shared returns the transport of providers that have none of their own.
func (p *Provider) provision(ctx caddy.Context, inherited *Provider, shared func(caddy.Context) (http.RoundTripper, error)) error {
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
		if p.Tags == nil {
			p.Tags = inherited.Tags
		}
	}
	return p.provisionTransport(ctx, inherited, shared)
}

func (p *Provider) provisionTransport(ctx caddy.Context, inherited *Provider, shared func(caddy.Context) (http.RoundTripper, error)) (err error) {
	transport, answersItself := p.api.(http.RoundTripper)
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
		p.transport = transport
	default:
		p.transport, err = shared(ctx)
	}
	return err
}

// Check finds what is wrong with a provider, whatever the values of its
// placeholders.
func (p *Provider) Check() error {
	if strings.ContainsAny(p.Label, "/, ") {
		return fmt.Errorf("its label stands in lists of models like label/model: it can have no slash, comma or space")
	}
	for i, name := range p.Tags {
		property, ok := strings.CutPrefix(name, "property.")
		if !slices.Contains(attributes, name) && (!ok || property == "") {
			return fmt.Errorf("tags: '%s' is none of %s or property.<name>", name, strings.Join(attributes, ", "))
		}
		if slices.Contains(p.Tags[:i], name) {
			return fmt.Errorf("tags: %s is named twice", name)
		}
	}
	if p.BaseURL != "" && !strings.Contains(p.BaseURL, "{") {
		return checkBaseURL(p.BaseURL)
	}
	return nil
}

// attributes are the tags of each caller that has them.
var attributes = []string{"user", "project", "key", "organization"}

func checkBaseURL(baseURL string) error {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("base_url %q: want an address like https://api.example.com/v1", plugins.RedactURL(baseURL))
	}
	return nil
}

// account is the provider with its credentials, for an organisation, or for all where
// org is "". A placeholder without a value is an error, because otherwise the first call
// would fail.
func (p *Provider) account(lines *position.Lines, models *catalog.Catalog, org string) (*Account, error) {
	within := []string{"org " + org, "provider " + p.Label}
	baseURL, keyEnv := defaultTarget(p.api)
	if p.BaseURL != "" {
		var err error
		if baseURL, err = lines.Expand("base_url", p.BaseURL, within...); err != nil {
			return nil, err
		}
	}
	baseURL = strings.TrimRight(baseURL, "/")
	if _, local := p.api.(http.RoundTripper); !local || baseURL != "" {
		if err := checkBaseURL(baseURL); err != nil {
			return nil, lines.Wrap(err, append(within, "base_url")...)
		}
	}
	key, err := lines.Expand("api_key", p.APIKey, within...)
	if err != nil {
		return nil, err
	}
	if p.APIKey == "" && org == "" && keyEnv != "" {
		key = os.Getenv(keyEnv)
	}
	account := &Account{
		ID:    sha256.Sum256([]byte(p.kind + "\x00" + baseURL + "\x00" + key + "\x00" + p.settings)),
		Label: p.Label, Provider: p.name(models, baseURL), Platform: org == "", Models: p.Models,
		API: p.api, BaseURL: baseURL, key: key, tags: p.Tags, Transport: Transport{p.transport},
	}
	if key != "" {
		account.standIn = "weir-" + rand.Text()
	}
	if err := account.checkTags(); err != nil {
		return nil, lines.Wrap(err, append(within, "tags")...)
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
