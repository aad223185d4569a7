package llmapp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"
)

// The scopes of a key: what it allows.
const (
	ScopeQuery   = "query"   // ask the query endpoints
	ScopeWrite   = "write"   // add scores, feedback, properties and tags
	ScopeGateway = "gateway" // call models through the gateway
	ScopeLog     = "log"     // record proxy traffic and traces
	ScopeAdmin   = "admin"   // create and change keys
	ScopeMetrics = "metrics" // ask the query endpoints for all but content; ScopeQuery includes it
)

var scopes = []string{ScopeQuery, ScopeWrite, ScopeGateway, ScopeLog, ScopeAdmin, ScopeMetrics}

// CheckScopes finds a scope that there is not.
func CheckScopes(named []string) error {
	for _, s := range named {
		if !slices.Contains(scopes, s) {
			return fmt.Errorf("there is no scope %s, only %s", s, strings.Join(scopes, ", "))
		}
	}
	return nil
}

// Organisation is one tenant.
type Organisation struct {
	// Store names the one store that keeps the organisation's records. Default:
	// the store `default`.
	Store string `json:"store,omitempty"`

	// Keys are the organisation's API keys.
	Keys []*Key `json:"keys,omitempty"`

	// Providers are the providers for which the organisation has its own keys. They are
	// tried before the platform's. A provider with the label of a platform provider
	// inherits everything from it but the credentials.
	Providers []*Provider `json:"providers,omitempty"`

	// Identities admit people and workloads to the organisation by the tokens of an issuer.
	Identities []*Identity `json:"identities,omitempty"`

	// Budgets bound what the calls of the organisation may cost.
	Budgets []*Budget `json:"budgets,omitempty"`

	// Credits are what the organisation may spend on calls with platform credentials, in
	// US dollars, as a plain decimal like `50.00`. They are granted when the organisation
	// is first seen; `weir credits` grants more. Default: no limit.
	Credits string `json:"credits,omitempty"`

	accounts []*Account
	grant    plugins.Nanodollars // Credits in billionths of a US dollar
}

// Key is an API key of one organisation.
type Key struct {
	// Secret is the key itself, or `sha256:` and the hexadecimal SHA-256 of it,
	// as `weir hash-key` prints it. Placeholders like `{env.WEIR_KEY}` keep it
	// out of the configuration.
	Secret string `json:"secret,omitempty"`

	// Scopes are what the key allows: `query`, `metrics`, `write`, `gateway`, `log` or
	// `admin`. Default: all of them but `admin`.
	Scopes []string `json:"scopes,omitempty"`

	org, store string
	hash       [sha256.Size]byte
	text       string // the hash, which each record has
	user       string // "" if calls name their user by themselves
	project    string
	kept       *control.Key     // nil for keys of the configuration, and for tokens
	within     *control.Project // the project of a kept key, or of a token; nil for none
	member     string           // the id of the member whose role a token has, "" for nobody's
	issuer     string           // of a token, "" for keys
	used       atomic.Int64     // when it was last noted that a kept key is used, in milliseconds
}

// Org is the organisation that the key belongs to.
func (k *Key) Org() string { return k.org }

// Store is the name of the organisation's store.
func (k *Key) Store() string { return k.store }

// Stamp writes whose call it is into a record. The user whom a token names stands in place
// of the one that the call names.
func (k *Key) Stamp(r *storage.Record) {
	r.Org, r.AuthHash, r.Project, r.VerifiedBy = k.org, k.Hash(), k.project, cmp.Or(k.issuer, storage.ByKey)
	if k.user != "" {
		r.UserID = k.user
	}
	if k.kept == nil {
		return
	}
	r.KeyID = k.kept.ID
	if len(k.kept.Properties) > 0 {
		if r.Properties == nil {
			r.Properties = make(map[string]string)
		}
		maps.Copy(r.Properties, k.kept.Properties)
	}
}

// Kept is what was said of the key while Weir ran, nil for a key of the configuration and for
// a token.
func (k *Key) Kept() *control.Key { return k.kept }

// Name names the key in the audit log: by the id of the key, by the id of the member who has
// the token, or by the beginning of the hash.
func (k *Key) Name() string {
	if k.kept != nil {
		return k.kept.ID
	}
	if k.member != "" {
		return k.member
	}
	return "sha256:" + k.Hash()[:12]
}

// Allowed returns the scopes of the key.
func (k *Key) Allowed() []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !k.Allows(s) })
}

// MayCall reports whether the key may call a model of a provider, "" for what is no model.
func (k *Key) MayCall(provider, model string) bool {
	if k == nil {
		return true
	}
	named := func(list []string) bool { return accepts(list, model) || accepts(list, provider+"/"+model) }
	if k.within != nil && k.within.Models != nil && (model == "" || !k.within.Allow(named)) {
		return false
	}
	return k.MayUse(provider) && (k.kept == nil || len(k.kept.Models) == 0 || named(k.kept.Models))
}

// CheckModels refuses models that a request names beside its own, unless the key may call them
// of a provider, by its label.
func (k *Key) CheckModels(r bound.Request, label string) error {
	if k.MayCall(label, "") {
		return nil
	}
	for _, model := range r.ToolModels() {
		if !k.MayCall(label, model) {
			return NotAllowed(model)
		}
	}
	return r.Refuse(bound.ModelFields, "names models that the API key may not call")
}

// MayUse reports whether the key may use what a provider keeps, such as files.
func (k *Key) MayUse(provider string) bool {
	return k == nil || k.kept == nil || len(k.kept.Providers) == 0 || slices.Contains(k.kept.Providers, provider)
}

// Hash is the hexadecimal SHA-256 of the key, or of the bearer of a token.
func (k *Key) Hash() string { return k.text }

// hashed gives the key its hash.
func (k *Key) hashed(hash [sha256.Size]byte) *Key {
	k.hash, k.text = hash, hex.EncodeToString(hash[:])
	return k
}

// Allows tells whether the key has a scope. "" is what any key has. A key that is in a project
// does not administer.
func (k *Key) Allows(scope string) bool {
	if scope == ScopeAdmin && k.kept != nil && k.kept.Project != "" {
		return false
	}
	return scope == "" || len(k.Scopes) == 0 && scope != ScopeAdmin || slices.Contains(k.Scopes, scope) ||
		scope == ScopeMetrics && slices.Contains(k.Scopes, ScopeQuery)
}

// Check finds what is wrong with a key, whatever the values of its placeholders.
// The error does not repeat any of it: what follows a space may be part of the
// secret.
func (k *Key) Check() error {
	for _, s := range k.Scopes {
		if !slices.Contains(scopes, s) {
			return fmt.Errorf("what follows the secret are scopes, out of %s", strings.Join(scopes, ", "))
		}
	}
	if digest, hashed := strings.CutPrefix(k.Secret, hashPrefix); hashed && !strings.Contains(digest, "{") {
		if sum, err := hex.DecodeString(digest); err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("sha256: wants %d hexadecimal digits, as `weir hash-key` prints them", 2*sha256.Size)
		}
	}
	return nil
}

// hashPrefix begins what stands for a key in the configuration.
const hashPrefix = "sha256:"

func (k *Key) provision(a *App, org, store string) error {
	k.org, k.store = org, store
	secret, err := a.expand("key", k.Secret, "org "+org)
	if err != nil {
		return err
	}
	if err := (&Key{Secret: secret, Scopes: k.Scopes}).Check(); err != nil {
		return fmt.Errorf("a key: %w", err)
	}
	hash := sha256.Sum256([]byte(secret))
	if digest, ok := strings.CutPrefix(secret, hashPrefix); ok {
		if _, err := hex.Decode(hash[:], []byte(digest)); err != nil { // Check has read it
			return err
		}
	}
	k.hashed(hash)
	return nil
}

// provisionKeys collects the keys of all organisations.
func (a *App) provisionKeys() error {
	orgs := maps.Clone(a.Organisations)
	if orgs == nil {
		orgs = make(map[string]*Organisation)
	}
	if orgs[DefaultName] == nil {
		orgs[DefaultName] = new(Organisation)
	}
	for name, org := range sorted(orgs) {
		org.Store = cmp.Or(org.Store, DefaultName)
		if _, err := a.Store(org.Store); err != nil {
			return a.At(fmt.Errorf("org %s: %w", name, err), "org "+name, "store "+org.Store)
		}
		keys := org.Keys
		if name == DefaultName {
			keys = slices.Concat(a.Keys, org.Keys)
		}
		for _, key := range keys {
			if err := key.provision(a, name, org.Store); err != nil {
				return fmt.Errorf("org %s: %w", name, err)
			}
			if other, ok := a.keys.find(key.hash); ok {
				return a.At(fmt.Errorf("org %s has a key that org %s has already: each key belongs to one organisation", name, other.org), "org "+name, "key "+key.Secret)
			}
			a.keys = append(a.keys, key)
		}
		identities := org.Identities
		if name == DefaultName {
			identities = slices.Concat(a.Identities, identities)
		}
		for _, i := range identities {
			if err := i.provision(a, name); err != nil {
				return err
			}
			a.identities = append(a.identities, i)
		}
	}
	return nil
}

// ErrUnknownKey means that a secret is that of no key.
var ErrUnknownKey = errors.New("the API key is not known")

// Authenticate returns the key whose secret this is, or that of the bearer of a token. The
// error is ErrUnknownKey, ErrKeysUnavailable, identity.ErrUnavailable, or says what is wrong with the token.
func (a *App) Authenticate(ctx context.Context, secret string) (*Key, error) {
	hash := sha256.Sum256([]byte(secret))
	if key, ok := a.keys.find(hash); ok {
		return key, nil
	}
	if strings.HasPrefix(secret, control.SecretPrefix) {
		return a.keptKey(ctx, hash)
	}
	return a.verify(ctx, secret)
}

// KeyByHash returns the key that has this Hash.
func (a *App) KeyByHash(hash string) (*Key, bool) {
	var sum [sha256.Size]byte
	if n, err := hex.Decode(sum[:], []byte(hash)); err != nil || n != len(sum) {
		return nil, false
	}
	if key, ok := a.keys.find(sum); ok {
		return key, true
	}
	key, err := a.keptKey(context.Background(), sum)
	return key, err == nil
}

// KeyOf returns a key without a secret, for callers whom Caddy has authenticated
// as members of an organisation. It allows to ask and to annotate.
func (a *App) KeyOf(org string) *Key {
	return (&Key{Scopes: []string{ScopeQuery, ScopeWrite}, org: org, store: a.StoreOf(org)}).hashed([sha256.Size]byte{})
}

// HasKeys tells whether any key, or the token of an issuer, opens the store of that name.
func (a *App) HasKeys(store string) bool {
	store = cmp.Or(store, DefaultName)
	return slices.ContainsFunc(a.keys, func(k *Key) bool { return k.store == store }) ||
		slices.ContainsFunc(a.identities, func(i *Identity) bool { return i.OrgClaim != "" || a.StoreOf(i.org) == store }) ||
		a.Stores[store].shared != nil || embedded.Exists(a.Stores[store].store.Dir())
}

// StoreOf returns the name of an organisation's store. Records may be kept for
// organisations without keys and settings; theirs is the default store.
func (a *App) StoreOf(org string) string {
	if o := a.Organisations[org]; o != nil {
		return o.Store
	}
	return DefaultName
}

// keyring finds keys by their hash, always in the time that all of them take.
type keyring []*Key

func (ring keyring) find(hash [sha256.Size]byte) (*Key, bool) {
	var found *Key
	for _, key := range ring {
		if subtle.ConstantTimeCompare(key.hash[:], hash[:]) == 1 {
			found = key
		}
	}
	return found, found != nil
}
