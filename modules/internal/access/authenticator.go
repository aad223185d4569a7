package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage/control"
)

// Authenticator finds whose a key or a token is, for all organisations of a configuration.
type Authenticator struct {
	homes      map[string]string // the name of the store of each organisation that is configured
	configs    map[string]*stores.Config
	keys       keyring // of the configuration
	identities []*Identity
	created    map[string]*createdKeys // by the name of the store
	logger     *zap.Logger             // for what callers can repeat
}

// NewAuthenticator returns one without keys and identities for organisations that live in stores.
func NewAuthenticator(homes map[string]string, configs map[string]*stores.Config, logger *zap.Logger) Authenticator {
	a := Authenticator{homes: homes, configs: configs, created: make(map[string]*createdKeys), logger: logger}
	for name, config := range configs {
		a.created[name] = &createdKeys{store: config.Store()}
	}
	return a
}

// AddKey admits the bearers of a key, whose secret has no placeholders any more.
func (a *Authenticator) AddKey(k *Key, secret, org string) error {
	if err := (&Key{Secret: secret, Scopes: k.Scopes}).Check(); err != nil {
		return fmt.Errorf("org %s: a key: %w", org, err)
	}
	hash := sha256.Sum256([]byte(secret))
	if digest, ok := strings.CutPrefix(secret, hashPrefix); ok {
		if _, err := hex.Decode(hash[:], []byte(digest)); err != nil { // Check has read it
			return err
		}
	}
	k.org, k.store = org, a.StoreOf(org)
	k.hashed(hash)
	if other, ok := a.keys.find(hash); ok {
		return fmt.Errorf("org %s has a key that org %s has already: each key belongs to one organisation", org, other.org)
	}
	a.keys = append(a.keys, k)
	return nil
}

// ErrUnknownKey means that a secret is that of no key.
var ErrUnknownKey = errors.New("the API key is not known")

// Authenticate returns the key whose secret this is, or that of the bearer of a token. The
// error is ErrUnknownKey, ErrKeysUnavailable, identity.ErrUnavailable, or says what is wrong with the token.
func (a *Authenticator) Authenticate(ctx context.Context, secret string) (*Key, error) {
	hash := sha256.Sum256([]byte(secret))
	if key, ok := a.keys.find(hash); ok {
		return key, nil
	}
	if strings.HasPrefix(secret, control.SecretPrefix) {
		return a.createdKey(ctx, hash)
	}
	return a.verify(ctx, secret)
}

// Knows reports whether a secret is a key or a token for Weir, also one that has expired, or cannot
// be checked now.
func (a *Authenticator) Knows(ctx context.Context, secret string) bool {
	_, err := a.Authenticate(ctx, secret)
	return !errors.Is(err, ErrUnknownKey)
}

// KeyByHash returns the key that has this Hash.
func (a *Authenticator) KeyByHash(hash string) (*Key, bool) {
	var sum [sha256.Size]byte
	if n, err := hex.Decode(sum[:], []byte(hash)); err != nil || n != len(sum) {
		return nil, false
	}
	if key, ok := a.keys.find(sum); ok {
		return key, true
	}
	key, err := a.createdKey(context.Background(), sum)
	return key, err == nil
}

// KeyOf returns a key without a secret, for a user whom Caddy has authenticated as a member of an
// organisation. It allows to ask and to annotate. Its Hash is the user's own: turns go by it.
func (a *Authenticator) KeyOf(org, user string) *Key {
	return (&Key{Scopes: []string{ScopeQuery, ScopeWrite}, org: org, store: a.StoreOf(org), user: user}).hashed(sha256.Sum256([]byte("caddy\x00" + org + "\x00" + user)))
}

// HasKeys reports whether any key, or the token of an issuer, opens the store of that name.
func (a *Authenticator) HasKeys(store string) bool {
	store = cmp.Or(store, stores.DefaultName)
	return slices.ContainsFunc(a.keys, func(k *Key) bool { return k.store == store }) ||
		slices.ContainsFunc(a.identities, func(i *Identity) bool { return i.OrgClaim != "" || a.StoreOf(i.org) == store }) ||
		a.configs[store].HasControl()
}

// StoreOf returns the name of an organisation's store. Records may be kept for
// organisations without keys and settings; theirs is the default store.
func (a *Authenticator) StoreOf(org string) string { return cmp.Or(a.homes[org], stores.DefaultName) }

// IsAlone reports whether the store of an organisation has the records of no other one. The default
// store always has those of the organisation default.
func (a *Authenticator) IsAlone(org string) bool {
	store := a.StoreOf(org)
	for other := range a.homes {
		if other != org && a.StoreOf(other) == store {
			return false
		}
	}
	return org == stores.DefaultName || store != a.StoreOf(stores.DefaultName)
}

// has reports whether an organisation is configured.
func (a *Authenticator) has(org string) bool { return a.homes[org] != "" }

// ServesOthers reports whether anyone outside of an organisation may call models.
func (a *Authenticator) ServesOthers(org string) bool {
	return slices.ContainsFunc(a.keys, func(k *Key) bool { return k.org != org && k.Allows(ScopeGateway) }) ||
		slices.ContainsFunc(a.identities, func(i *Identity) bool { return i.org != org || i.OrgClaim != "" }) || a.mayHaveCreatedKeys()
}

// RecheckInterval is how often the key of a WebSocket is checked again.
const RecheckInterval = time.Second

// Recheck returns ErrUnknownKey if a key has ended since it was authenticated. The keys of the
// configuration end with it, and tokens when they expire.
func (a *Authenticator) Recheck(ctx context.Context, k *Key) error {
	switch {
	case k == nil:
		return nil
	case !k.endsAt.IsZero() && time.Now().After(k.endsAt):
		return ErrUnknownKey
	case k.created == nil:
		return nil
	}
	_, err := a.createdKey(ctx, k.hash)
	return err
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
