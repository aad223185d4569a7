// Package access decides who may call, and for which organisation: by the keys of the
// configuration, by keys and members that administrators make while Weir runs, and by the tokens
// of issuers. Every handler asks a Checker, so that a key has the same rights at each of them.
package access

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
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

// Scopes are all of them.
var Scopes = []string{ScopeGateway, ScopeLog, ScopeMetrics, ScopeQuery, ScopeWrite, ScopeAdmin}

// CheckScopes finds a scope that there is not.
func CheckScopes(named []string) error {
	for _, s := range named {
		if !slices.Contains(Scopes, s) {
			return fmt.Errorf("there is no scope %s, only %s", s, strings.Join(Scopes, ", "))
		}
	}
	return nil
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

	// Mask says what is masked in the content that is stored of the key's calls, besides what is
	// masked of its organisation. Default: nothing.
	Mask []*mask.Rule `json:"mask,omitempty"`

	org, store string
	hash       [sha256.Size]byte
	text       string // the hash, which each record has
	user       string // "" if calls name their user by themselves
	project    string
	created    *control.Key     // at run time; nil for keys of the configuration, and for tokens
	inProject  *control.Project // the project of a created key, or of a token; nil for none
	creator    *control.Key     // the key that created this one as its own, nil for any other key
	member     string           // the id of the member whose role a token has, "" for nobody's
	issuer     string           // of a token, "" for keys
	endsAt     time.Time        // of a token that was sent, zero for keys and for browser sessions
	masker     *mask.Masker     // what Mask masks, nil for nothing
	used       atomic.Int64     // when it was last noted that a created key is used, in milliseconds
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
	if k.created == nil {
		return
	}
	r.KeyID = k.created.ID
	if len(k.created.Properties) > 0 {
		if r.Properties == nil {
			r.Properties = make(map[string]string)
		}
		maps.Copy(r.Properties, k.created.Properties)
	}
}

// ProvisionMask reads what the key has masked.
func (k *Key) ProvisionMask() error {
	m, err := mask.New(k.Mask)
	k.masker = m.OfContent()
	return err
}

// Masker returns what masks the content of the key's calls, nil for nothing. A nil key has none.
func (k *Key) Masker() *mask.Masker {
	if k == nil {
		return nil
	}
	return k.masker
}

// Created is the key as it was created while Weir runs, nil for a key of the configuration and for
// a token.
func (k *Key) Created() *control.Key { return k.created }

// Member is the id of the member whose role a token has, "" for any other key.
func (k *Key) Member() string { return k.member }

// User is the user of the key's calls, "" if calls name their user by themselves.
func (k *Key) User() string { return k.user }

// Made reports whether whoever has the key made the call of a record. A user whom the call named
// without the issuer of the token is nobody's.
func (k *Key) Made(r *storage.Record) bool {
	return r.AuthHash == k.Hash() || k.created != nil && r.KeyID == k.created.ID ||
		k.issuer != "" && r.VerifiedBy == k.issuer && k.user != "" && r.UserID == k.user
}

// Verified returns what is known of whoever has the key, and not only said by the call: the
// `organization`, the `project`, the `user` of a token, the id of a created `key`, or a
// `property.<name>` of one. "" is nothing.
func (k *Key) Verified(attribute string) string {
	if k == nil {
		return ""
	}
	switch attribute {
	case "organization":
		return k.org
	case "project":
		return k.project
	case "user":
		return k.user
	}
	if k.created == nil {
		return ""
	}
	if name, ok := strings.CutPrefix(attribute, "property."); ok {
		return k.created.Properties[name]
	}
	return k.created.ID // of "key"
}

// Name names the key in the audit log: by the id of the key, by the id of the member who has
// the token, or by the beginning of the hash.
func (k *Key) Name() string {
	if k.created != nil {
		return k.created.ID
	}
	if k.member != "" {
		return k.member
	}
	return "sha256:" + k.Hash()[:12]
}

// Allowed returns the scopes of the key.
func (k *Key) Allowed() []string {
	return slices.DeleteFunc(slices.Clone(Scopes), func(s string) bool { return !k.Allows(s) })
}

// MayCall reports whether the key may call a model of a provider, "" for what is no model.
func (k *Key) MayCall(provider, model string) bool {
	if k == nil {
		return true
	}
	named := func(list []string) bool { return accepts(list, model) || accepts(list, provider+"/"+model) }
	if k.inProject != nil && k.inProject.Models != nil && (model == "" || !k.inProject.Allow(named)) {
		return false
	}
	return k.MayUse(provider) && k.settingsAllow(func(s *control.Settings) bool { return len(s.Models) == 0 || named(s.Models) })
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
	return k == nil || k.settingsAllow(func(s *control.Settings) bool {
		return len(s.Providers) == 0 || slices.Contains(s.Providers, provider)
	})
}

// settingsAllow reports whether the settings of the key, and those of its creator, allow something.
func (k *Key) settingsAllow(allow func(*control.Settings) bool) bool {
	return (k.created == nil || allow(&k.created.Settings)) && (k.creator == nil || allow(&k.creator.Settings))
}

// Hash is the hexadecimal SHA-256 of the key, or of the bearer of a token.
func (k *Key) Hash() string { return k.text }

// hashed gives the key its hash.
func (k *Key) hashed(hash [sha256.Size]byte) *Key {
	k.hash, k.text = hash, hex.EncodeToString(hash[:])
	return k
}

// Allows reports whether the key has a scope. "" is what any key has. A key that is in a project
// does not administer.
func (k *Key) Allows(scope string) bool {
	if scope == ScopeAdmin && k.created != nil && k.created.Project != "" {
		return false
	}
	return scope == "" || len(k.Scopes) == 0 && scope != ScopeAdmin || includes(k.Scopes, scope)
}

// Check finds what is wrong with a key, whatever the values of its placeholders.
// The error does not repeat any of it: what follows a space may be part of the
// secret.
func (k *Key) Check() error {
	for _, s := range k.Scopes {
		if !slices.Contains(Scopes, s) {
			return fmt.Errorf("what follows the secret are scopes, out of %s", strings.Join(Scopes, ", "))
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

// ClearClaims clears the fields of a record that the caller set, unless the key is trusted to set
// them.
func (k *Key) ClearClaims(r *storage.Record) {
	if !k.trusts(control.TrustUser) {
		r.UserID = ""
	}
	if !k.trusts(control.TrustSession) {
		r.SessionID, r.SessionName, r.SessionPath = "", "", ""
	}
	if k.trusts(control.TrustProperties) {
		r.Properties = maps.Clone(r.Properties) // which the record keeps
	} else {
		r.Properties = nil
	}
	if k != nil {
		k.Stamp(r)
	}
}

// trusts reports whether callers of the key are trusted to say something of their calls.
func (k *Key) trusts(what string) bool {
	return k != nil && k.created != nil && slices.Contains(k.created.Trust, what)
}
