// Package keys keeps what administrators change while Weir runs: API keys, and the events
// that made them what they are. The events are the audit log. Both are in one SQLite file
// beside the journal, and a change is on the disk when it returns, whole or not at all.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/weirhq/weir/storage"
)

// ErrNotFound means that the organisation has no such key.
var ErrNotFound = errors.New("there is no such key")

// ErrNoPlace means that a page shall begin at a key or an event that the organisation does
// not have, or has no more.
var ErrNoPlace = errors.New("there is nothing of the id at which the page begins: ask for the first page again")

// Key is an API key that was created while Weir runs. Its id stays when its secret changes.
type Key struct {
	// ID begins with `key_`, and is used once.
	ID string `json:"id"`
	// Org is the organisation that the key opens.
	Org string `json:"organization"`
	Settings
	// CreatedAt is when the key was created.
	CreatedAt storage.Timestamp `json:"created_at"`
	// Secrets are those that the key has, and those that ended since the last one was made,
	// the newest last.
	Secrets []Secret `json:"secrets"`
}

// Settings are what an administrator says of a key.
type Settings struct {
	// Name tells people which key it is.
	Name string `json:"name"`
	// Owner is who answers for the key, such as a team or a service; "" for nobody.
	Owner string `json:"owner,omitempty"`
	// Project groups keys, and is in the records of their calls; "" for none.
	Project string `json:"project,omitempty"`
	// User is the user of the key's calls, in place of the one that a call names; "" if
	// calls name their user by themselves.
	User string `json:"user,omitempty"`
	// Scopes are what the key allows.
	Scopes []string `json:"scopes"`
	// Models and Providers are those that the key may call; all if there are none. A model
	// that ends in `*` stands for all that begin like it.
	Models    []string `json:"models,omitempty"`
	Providers []string `json:"providers,omitempty"`
	// Properties are in the records of the key's calls, in place of those that a call sets.
	Properties map[string]string `json:"properties,omitempty"`
	// ExpiresAt is when the key ends, nil for never.
	ExpiresAt *storage.Timestamp `json:"expires_at"`
	// Disabled keys open nothing until they are enabled again.
	Disabled bool `json:"disabled"`
}

// Secret is one secret of a key, of which only the end and the hash are kept.
type Secret struct {
	// Last4 are the last four characters, by which people know it.
	Last4 string `json:"last4"`
	// CreatedAt is when it was created.
	CreatedAt storage.Timestamp `json:"created_at"`
	// EndsAt is when it ends because another one took its place, nil for never.
	EndsAt *storage.Timestamp `json:"ends_at"`

	hash Hash
}

// Hash is the SHA-256 of a secret.
type Hash [sha256.Size]byte

// newSecret returns a random secret, which nobody can read from what is kept.
func newSecret(now storage.Timestamp) (text string, s Secret) {
	text = "weir_" + rand.Text() + rand.Text() // 260 bits
	return text, Secret{Last4: text[len(text)-4:], CreatedAt: now, hash: sha256.Sum256([]byte(text))}
}

// newID returns an id with a prefix.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// Opens reports whether the secret of this hash opens anything at a time.
func (k *Key) Opens(hash Hash, now storage.Timestamp) bool { return now < k.ends(hash) }

// ends is when the secret of this hash stops to open anything, 0 if it does not open now.
func (k *Key) ends(hash Hash) storage.Timestamp {
	if k.Disabled {
		return 0
	}
	ends := storage.Timestamp(0)
	for i := range k.Secrets {
		if s := &k.Secrets[i]; s.hash == hash {
			ends = storage.Always.To
			if s.EndsAt != nil {
				ends = *s.EndsAt
			}
		}
	}
	if k.ExpiresAt != nil {
		ends = min(ends, *k.ExpiresAt)
	}
	return ends
}

// Actor is who changes something.
type Actor struct {
	// Key is the id of an API key, or what else names the actor.
	Key string `json:"key"`
	// Address is the network address that the change came from.
	Address string `json:"address"`
}

// Event is one change.
type Event struct {
	// ID begins with `evt_`.
	ID string `json:"id"`
	// At is when the change was made.
	At    storage.Timestamp `json:"at"`
	Actor Actor             `json:"actor"`
	// Action is what was done, such as `key.created`.
	Action Action `json:"action"`
	// Object is the id of what was changed.
	Object string `json:"object"`
	// Before and After are the key, nil where there was none.
	Before *Key `json:"before"`
	After  *Key `json:"after"`
}

// Action names a kind of change.
type Action string

// The actions.
const (
	Created Action = "key.created"
	Updated Action = "key.updated"
	Rotated Action = "key.rotated"
	Deleted Action = "key.deleted"
)
