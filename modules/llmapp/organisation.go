package llmapp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/internal/stores"
)

// Organisation is one tenant.
type Organisation struct {
	// Store names the one store that keeps the organisation's records. Default:
	// the store `default`.
	Store string `json:"store,omitempty"`

	// Keys are the organisation's API keys.
	Keys []*access.Key `json:"keys,omitempty"`

	// Providers are the providers for which the organisation has its own keys. They are
	// tried before the platform's. A provider with the label of a platform provider
	// inherits everything from it but the credentials.
	Providers []*providers.Provider `json:"providers,omitempty"`

	// Identities admit people and workloads to the organisation by the tokens of an issuer.
	Identities []*access.Identity `json:"identities,omitempty"`

	// Budgets bound what the calls of the organisation may cost.
	Budgets []*money.Budget `json:"budgets,omitempty"`

	// Channels are where messages about alerts of the organisation go.
	Channels []*alert.Channel `json:"channels,omitempty"`

	// AlertRules say when alerts of the organisation fire.
	AlertRules []*alert.Rule `json:"alerts,omitempty"`

	// Bills are the bills of providers that are compared with the records of the organisation.
	Bills []*bills.Bill `json:"bills,omitempty"`

	// Mask says what is masked in all that is stored of the organisation, besides what is masked
	// for all.
	Mask []*mask.Rule `json:"mask,omitempty"`

	// Credits are what the organisation may spend on calls with platform credentials, in
	// US dollars, as a plain decimal like `50.00`. They are granted when the organisation
	// is first seen; `weir credits` grants more. Default: no limit.
	Credits string `json:"credits,omitempty"`
}

// provisionKeys admits the keys and the identities of all organisations.
func (a *App) provisionKeys() error {
	orgs := maps.Clone(a.Organisations)
	if orgs == nil {
		orgs = make(map[string]*Organisation)
	}
	homes := make(map[string]string)
	for name, org := range sorted(orgs) {
		org.Store = cmp.Or(org.Store, stores.DefaultName)
		if _, err := a.Store(org.Store); err != nil {
			return a.At(fmt.Errorf("org %s: %w", name, err), "org "+name, "store "+org.Store)
		}
		homes[name] = org.Store
	}
	if orgs[stores.DefaultName] == nil {
		orgs[stores.DefaultName] = new(Organisation)
	}
	a.keys = access.NewAuthenticator(homes, a.Stores, a.bounded)
	for name, org := range sorted(orgs) {
		keys, identities := org.Keys, org.Identities
		if name == stores.DefaultName {
			keys, identities = slices.Concat(a.Keys, keys), slices.Concat(a.Identities, identities)
		}
		for _, key := range keys {
			secret, err := a.lines.Expand("key", key.Secret, "org "+name)
			if err != nil {
				return fmt.Errorf("org %s: %w", name, err)
			}
			if err := a.keys.AddKey(key, secret, name); err != nil {
				return a.At(err, "org "+name, "key "+key.Secret)
			}
		}
		for _, i := range identities {
			if err := a.keys.AddIdentity(i, name); err != nil {
				return a.At(err, "org "+name, "identity jwt "+i.Issuer)
			}
		}
	}
	return nil
}

// provisionProviders makes the accounts of the platform and of each organisation.
func (a *App) provisionProviders(ctx caddy.Context) error {
	a.accounts = providers.New(a.catalog, a.lines, a.logger)
	for _, p := range a.Providers {
		if err := a.accounts.Add(ctx, p); err != nil {
			return err
		}
	}
	for name, org := range sorted(a.Organisations) {
		for _, p := range org.Providers {
			if err := a.accounts.AddOwn(ctx, name, p); err != nil {
				return fmt.Errorf("org %s: %w", name, err)
			}
		}
	}
	return nil
}

// provisionBudgets collects the budgets and the credits of all organisations.
func (a *App) provisionBudgets() error {
	a.money = money.New(&a.keys, a.Stores, func(name string) bool { return a.Aliases[name] != nil }, &a.counts, a.bounded)
	a.money.Mask = a.maskers.Of
	budgets := map[string][]*money.Budget{stores.DefaultName: a.Budgets}
	for name, org := range sorted(a.Organisations) {
		budgets[name] = slices.Concat(budgets[name], org.Budgets)
		if org.Credits != "" {
			if err := a.money.Grant(name, org.Credits); err != nil {
				return err
			}
		}
	}
	for org, list := range sorted(budgets) {
		for _, b := range list {
			if err := a.money.Add(org, b); err != nil {
				return a.At(fmt.Errorf("org %s: %w", org, err), "org "+org, "budget "+b.Name)
			}
		}
	}
	return nil
}

// checkAlias rejects an alias that nobody could call.
func checkAlias(name string, alias *routing.Alias, isAlias func(name string) bool) error {
	if name == "" || strings.Contains(name, ",") {
		return fmt.Errorf("alias %q: a name has no comma, which separates models", name)
	}
	if alias == nil {
		return fmt.Errorf("alias %s: name at least one model", name)
	}
	if err := alias.Check(isAlias); err != nil {
		return fmt.Errorf("alias %s: %w", name, err)
	}
	return nil
}
