package providers

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/position"
	"github.com/weirhq/weir/modules/internal/transport"
	"github.com/weirhq/weir/plugins/catalog"
)

// dialTimeout bounds how long a provider may take to accept a connection.
const dialTimeout = 5 * time.Second

// Accounts are the accounts of a configuration: of the platform, which all organisations call, and
// of single organisations.
type Accounts struct {
	models *catalog.Catalog
	lines  *position.Lines
	logger *zap.Logger

	providers []*Provider           // of the platform
	platform  []*Account            // with a key
	keyless   []*Account            // without a key
	byOrg     map[string][]*Account // by organisation
	transport *transport.Transport  // of providers that have none of their own, nil if there is no such provider
}

// New returns Accounts without accounts. Errors name the lines of the configuration.
func New(models *catalog.Catalog, lines *position.Lines, logger *zap.Logger) Accounts {
	return Accounts{models: models, lines: lines, logger: logger, byOrg: make(map[string][]*Account)}
}

// Add adds the account of a provider of the platform.
func (a *Accounts) Add(ctx caddy.Context, p *Provider) error {
	if err := p.provision(ctx, nil, a.sharedTransport); err != nil {
		return a.lines.Wrap(fmt.Errorf("provider %s: %w", p.Label, err), "provider "+p.Label)
	}
	if a.labelled(p.Label) != nil {
		return fmt.Errorf("two providers are labelled %s", p.Label)
	}
	a.providers = append(a.providers, p)
	account, err := p.account(a.lines, a.models, "")
	if err != nil {
		return fmt.Errorf("provider %s: %w", p.Label, err)
	}
	if !account.usable() {
		a.logger.Warn("the API key of this provider is not set: calls to it will fail; set the environment variable or api_key",
			zap.String("provider", p.Label), zap.String("environment", account.KeyEnv()))
		a.keyless = append(a.keyless, account)
		return nil
	}
	a.platform = append(a.platform, account)
	return nil
}

// AddOwn adds an account of an organisation, after those of the platform.
func (a *Accounts) AddOwn(ctx caddy.Context, org string, p *Provider) error {
	if err := p.provision(ctx, a.labelled(p.Label), a.sharedTransport); err != nil {
		return a.lines.Wrap(fmt.Errorf("provider %s: %w", p.Label, err), "org "+org, "provider "+p.Label)
	}
	account, err := p.account(a.lines, a.models, org)
	if err != nil {
		return fmt.Errorf("provider %s: %w", p.Label, err)
	}
	if !account.payable(p.settings != "") {
		return a.lines.Wrap(fmt.Errorf("provider %s: set an api_key of its own; the credentials for all are not inherited", p.Label), "org "+org, "provider "+p.Label)
	}
	a.byOrg[org] = append(a.byOrg[org], account)
	return nil
}

// labelled returns the provider of the platform that has a label, nil if there is none.
func (a *Accounts) labelled(label string) *Provider {
	i := slices.IndexFunc(a.providers, func(p *Provider) bool { return p.Label == label })
	if i < 0 {
		return nil
	}
	return a.providers[i]
}

// sharedTransport returns the transport of providers that have none of their own.
func (a *Accounts) sharedTransport(ctx caddy.Context) (http.RoundTripper, error) {
	if a.transport == nil {
		t := &transport.Transport{HTTPTransport: reverseproxy.HTTPTransport{DialTimeout: caddy.Duration(dialTimeout)}}
		if err := t.Provision(ctx); err != nil {
			return nil, err
		}
		a.transport = t
	}
	return a.transport, nil
}

// Cleanup closes the connections that nobody uses.
func (a *Accounts) Cleanup() {
	if a.transport != nil {
		_ = a.transport.Cleanup() // never fails
	}
}

// Of returns what an organisation can call, in the order of preference where nothing else
// decides: its own accounts, then those of the platform.
func (a *Accounts) Of(org string) []*Account {
	accounts := a.byOrg[org]
	if len(accounts) == 0 {
		return a.platform
	}
	return append(accounts[:len(accounts):len(accounts)], a.platform...)
}

// Keyless returns the accounts that an organisation cannot call because they have no key, neither
// its own nor one of the platform.
func (a *Accounts) Keyless(org string) []*Account {
	accounts := a.byOrg[org]
	if len(accounts) == 0 {
		return a.keyless
	}
	return slices.DeleteFunc(slices.Clone(a.keyless), func(k *Account) bool {
		return slices.ContainsFunc(accounts, func(account *Account) bool { return account.Label == k.Label })
	})
}

// All returns those of the platform, with and without a key, and of all organisations.
func (a *Accounts) All() []*Account {
	all := slices.Concat(a.platform, a.keyless)
	for _, org := range slices.Sorted(maps.Keys(a.byOrg)) {
		all = append(all, a.byOrg[org]...)
	}
	return all
}
