package llmapp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/masking"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins/catalog"
)

// Tenant is what an organisation says of itself in its block, and the organisation `default` outside of
// the blocks, too.
type Tenant struct {
	// Keys are the organisation's API keys.
	Keys []*access.Key `json:"keys,omitempty"`

	// Budgets bound what the calls of the organisation may cost.
	Budgets []*money.Budget `json:"budgets,omitempty"`

	// Channels are where messages about alerts of the organisation go.
	Channels []*alert.Channel `json:"channels,omitempty"`

	// AlertRules say when alerts of the organisation fire.
	AlertRules []*alert.Rule `json:"alerts,omitempty"`

	// Bills are the bills of providers that are compared with the records of the organisation.
	Bills []*bills.Bill `json:"bills,omitempty"`

	// Identities admit people and workloads to the organisation by the tokens of an issuer.
	Identities []*access.Identity `json:"identities,omitempty"`
}

// join returns what t and then other say.
func (t *Tenant) join(other *Tenant) Tenant {
	return Tenant{
		Keys:       slices.Concat(t.Keys, other.Keys),
		Budgets:    slices.Concat(t.Budgets, other.Budgets),
		Channels:   slices.Concat(t.Channels, other.Channels),
		AlertRules: slices.Concat(t.AlertRules, other.AlertRules),
		Bills:      slices.Concat(t.Bills, other.Bills),
		Identities: slices.Concat(t.Identities, other.Identities),
	}
}

// organisations returns all organisations by name: those with a block, and `default`, which also has t.
func (t *Tenant) organisations(blocks map[string]*Organisation) map[string]*Organisation {
	all := maps.Clone(blocks)
	if all == nil {
		all = make(map[string]*Organisation)
	}
	byDefault := new(Organisation)
	if own := all[stores.DefaultName]; own != nil {
		*byDefault = *own
	}
	byDefault.Tenant = t.join(&byDefault.Tenant)
	all[stores.DefaultName] = byDefault
	return all
}

// Organisation is one tenant.
type Organisation struct {
	// Store names the one store that keeps the organisation's records. Default:
	// the store `default`.
	Store string `json:"store,omitempty"`

	Tenant

	// Providers are the providers for which the organisation has its own keys. They are
	// tried before the platform's. A provider with the label of a platform provider
	// inherits everything from it but the credentials.
	Providers []*providers.Provider `json:"providers,omitempty"`

	// Mask says what is masked in all that is stored of the organisation, besides what is masked
	// for all.
	Mask []*mask.Rule `json:"mask,omitempty"`

	// Credits are what the organisation may spend on calls with platform credentials, in
	// US dollars, as a plain decimal like `50.00`. They are granted when the organisation
	// is first seen; `weir credits` grants more. Default: no limit.
	Credits string `json:"credits,omitempty"`
}

// organisations are the tenants: who may call, by which accounts and for how much, and what is masked
// and told of it. The methods provision them in the order in which they stand here.
type organisations struct {
	env        *environment
	stores     map[string]*stores.Config
	byName     map[string]*Organisation // has `default`
	maskers    *masking.Maskers
	keys       access.Authenticator
	accounts   providers.Accounts
	resolvers  map[string]*routing.Resolver // of organisations with accounts of their own, and of "" for the others
	money      *money.Budgets
	counts     lineage.Counts
	reconciler Reconciler
	alerts     map[string]*alert.Engine // of organisations with channels
}

// errorAt adds to an error of an organisation where in the Caddyfile it stands.
func (o *organisations) errorAt(org string, err error, path ...string) error {
	return o.env.lines.Wrap(fmt.Errorf("org %s: %w", org, err), append([]string{"org " + org}, path...)...)
}

// storeOf returns the store of an organisation.
func (o *organisations) storeOf(org string) *stores.Store {
	return o.stores[o.keys.StoreOf(org)].Store()
}

// provisionMask reads what is masked of all, and of whom. secretOf returns the secret of a store.
func (o *organisations) provisionMask(ofAll []*mask.Rule, secretOf func(*stores.Store) ([]byte, error)) (err error) {
	secret := func(org string) ([]byte, error) { return secretOf(o.storeOf(org)) }
	if o.maskers, err = masking.New(ofAll, secret, o.env.bounded); err != nil {
		return o.env.lines.Wrap(err, "mask")
	}
	for name, org := range sorted(o.byName) {
		if err := o.maskers.AddOrganisation(name, org.Mask); err != nil {
			return o.errorAt(name, err, "mask")
		}
		for _, key := range org.Keys {
			if err := key.ProvisionMask(); err != nil {
				return fmt.Errorf("org %s: %w", name, o.env.lines.Wrap(err, "key"))
			}
			o.maskers.AddKey(key.Masker())
		}
	}
	return nil
}

// provisionStores provisions the stores. Without a configured secret, nodes that share one are warned of.
func (o *organisations) provisionStores(hasSecret bool) error {
	for name, config := range sorted(o.stores) {
		config.Mask = o.maskers.Of
		if err := config.Provision(o.env.ctx, name, o.env.logger); err != nil {
			return o.env.lines.Wrap(fmt.Errorf("store %s: %w", name, err), config.Lines(name)...)
		}
		if config.IsShared() && !hasSecret {
			o.env.logger.Warn("nodes cannot read what others remember: give all of them the same `secret`", zap.String("store", name))
		}
	}
	return nil
}

// provisionKeys admits the keys and the identities. Only the configured organisations have a home.
func (o *organisations) provisionKeys(configured map[string]*Organisation) error {
	homes := make(map[string]string)
	for name, org := range sorted(configured) {
		homes[name] = cmp.Or(org.Store, stores.DefaultName)
		if o.stores[homes[name]] == nil {
			return o.errorAt(name, errNoStore(homes[name], o.stores), "store "+homes[name])
		}
	}
	o.keys = access.NewAuthenticator(homes, o.stores, o.env.bounded)
	for name, org := range sorted(o.byName) {
		for _, key := range org.Keys {
			secret, err := o.env.lines.Expand("key", key.Secret, "org "+name)
			if err != nil {
				return fmt.Errorf("org %s: %w", name, err)
			}
			if err := o.keys.AddKey(key, secret, name); err != nil {
				return o.env.lines.Wrap(err, "org "+name, "key "+key.Secret)
			}
		}
		for _, i := range org.Identities {
			if err := o.keys.AddIdentity(i, name); err != nil {
				return o.env.lines.Wrap(err, "org "+name, "identity jwt "+i.Issuer)
			}
		}
	}
	return nil
}

// provisionProviders makes the accounts of the platform and of each organisation, and what finds the
// targets of models among them.
func (o *organisations) provisionProviders(models *catalog.Catalog, platform []*providers.Provider, aliases map[string]*routing.Alias) error {
	o.accounts = providers.New(models, o.env.lines, o.env.logger)
	o.reconciler = Reconciler{catalog: models, orgs: o}
	for _, p := range platform {
		if err := o.accounts.Add(o.env.ctx, p); err != nil {
			return err
		}
	}
	for name, org := range sorted(o.byName) {
		for _, p := range org.Providers {
			if err := o.accounts.AddOwn(o.env.ctx, name, p); err != nil {
				return fmt.Errorf("org %s: %w", name, err)
			}
		}
	}
	o.resolvers = make(map[string]*routing.Resolver)
	addResolver := func(org string) {
		o.resolvers[org] = &routing.Resolver{Catalog: models, Accounts: o.accounts.Of(org), Keyless: o.accounts.Keyless(org), Aliases: aliases}
	}
	addResolver("")
	for name, org := range o.byName {
		if len(org.Providers) > 0 {
			addResolver(name)
		}
	}
	return nil
}

// provisionBudgets collects the budgets and the credits.
func (o *organisations) provisionBudgets(isAlias func(string) bool) error {
	o.money = money.New(&o.keys, o.stores, isAlias, &o.counts, o.env.bounded)
	o.money.Mask = o.maskers.Of
	for name, org := range sorted(o.byName) {
		if org.Credits != "" {
			if err := o.money.Grant(name, org.Credits); err != nil {
				return err
			}
		}
		for _, b := range org.Budgets {
			if err := o.money.Add(name, b); err != nil {
				return o.errorAt(name, err, "budget "+b.Name)
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
