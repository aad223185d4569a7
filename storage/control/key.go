package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/storage"
)

// Key is an API key that was created while Weir runs. Its id stays when its secret changes.
type Key struct {
	// ID begins with `key_`, and is used once.
	ID string `json:"id"`
	// Org is the organisation that the key opens.
	Org string `json:"organization"`
	Settings
	// Creator is who created the key as their own, nil for a key of an administrator.
	Creator *Creator `json:"creator,omitempty"`
	// CreatedAt is when the key was created.
	CreatedAt storage.Timestamp `json:"created_at"`
	// Secrets are the secrets that the key has, and the secrets that ended since the newest
	// secret was made. The newest is the last.
	Secrets []Secret `json:"secrets"`
}

// Settings are the properties of a key that an administrator sets.
type Settings struct {
	// Name tells people which key it is.
	Name string `json:"name"`
	// Owner is the responsible person, team or service; "" for nobody.
	Owner string `json:"owner,omitempty"`
	// OwnerID is the service account, the member or the key that owns the key, "" for nobody. The
	// key ends with its owner.
	OwnerID string `json:"owner_id,omitempty"`
	// Project is the label of the key's project, which is in the records of the key's calls;
	// "" for no project. A project with the label is made if there is none.
	Project string `json:"project,omitempty"`
	// User is the user of the key's calls, in place of the user that a call names; "" if
	// calls name their user by themselves.
	User string `json:"user,omitempty"`
	// Scopes are what the key allows.
	Scopes []string `json:"scopes"`
	// Models and Providers are what the key may call; an empty list allows all. A model
	// that ends in `*` stands for all models that begin like it.
	Models    []string `json:"models,omitempty"`
	Providers []string `json:"providers,omitempty"`
	// Properties are in the records of the key's calls, in place of the properties that a call
	// sets.
	Properties map[string]string `json:"properties,omitempty"`
	// Trust lists what the callers of the key are trusted to claim: TrustUser, TrustSession
	// and TrustProperties. Budgets count calls by trusted claims alone.
	Trust []string `json:"trust,omitempty"`
	// Mask has rules for the stored content of the key's calls, in addition to its organisation's;
	// nil for none.
	Mask []*mask.Rule `json:"mask,omitempty"`
	// ExpiresAt is when the key ends, nil for never.
	ExpiresAt *storage.Timestamp `json:"expires_at"`
	// Disabled keys are refused until they are enabled again.
	Disabled bool `json:"disabled"`
}

// The values of Settings.Trust.
const (
	TrustUser       = "user"
	TrustSession    = "session"
	TrustProperties = "properties"
)

// Claims are all values of Settings.Trust.
var Claims = []string{TrustUser, TrustSession, TrustProperties}

// Secret is a secret of a key. Its text is not stored, but its last characters and its hash.
type Secret struct {
	// Last4 are the last four characters, by which people know the secret.
	Last4 string `json:"last4"`
	// CreatedAt is when the secret was created.
	CreatedAt storage.Timestamp `json:"created_at"`
	// EndsAt is when the secret ends because another secret took its place, nil for never.
	EndsAt *storage.Timestamp `json:"ends_at"`

	hash Hash
}

func (k *Key) object() Object {
	o := Object{ID: k.ID, Kind: KindKey}
	if k.Project != "" {
		o.Lists = append(o.Lists, InProject(k.Project))
	}
	if k.OwnerID != "" {
		o.Lists = append(o.Lists, OwnedBy(k.OwnerID))
	}
	for _, scope := range k.Scopes {
		if list := OfScope(scope); !slices.Contains(o.Lists, list) {
			o.Lists = append(o.Lists, list)
		}
	}
	for _, s := range k.Secrets {
		o.Hashes = append(o.Hashes, s.hash)
	}
	return o
}

// SecretPrefix begins all secrets that Weir creates.
const SecretPrefix = "weir_"

// newSecret returns a random secret, and the form in which it is stored.
func newSecret() (text string, s Secret) {
	text = SecretPrefix + rand.Text() + rand.Text() // 260 bits
	return text, Secret{Last4: text[len(text)-4:], CreatedAt: now(), hash: sha256.Sum256([]byte(text))}
}

// newKey returns a key with its first secret.
func (o *Organisation) newKey(settings Settings) (k *Key, secret string) {
	secret, first := newSecret()
	return &Key{ID: newID(keyPrefix), Org: o.Name, Settings: settings, CreatedAt: now(), Secrets: []Secret{first}}, secret
}

// CreateKey stores a new key and returns its secret, which cannot be read later. The error may be
// ErrArchived, ErrOwnsItself, or ErrNotFound if the owner is unknown.
func (o *Organisation) CreateKey(ctx context.Context, settings Settings) (k *Key, secret string, err error) {
	return o.createKey(ctx, settings, nil)
}

func (o *Organisation) createKey(ctx context.Context, settings Settings, by *Creator) (k *Key, secret string, err error) {
	k, secret = o.newKey(settings)
	k.Creator = by
	err = o.retry(ctx, func() error {
		b, err := o.bonds(ctx, k.ID, &k.Settings)
		if err != nil {
			return err
		}
		e, err := created(o, k)
		if err != nil {
			return err
		}
		return b.commit(ctx, o, e)
	})
	return k, secret, err
}

// UpdateKey changes the settings of a key. set may be called again, with the new settings,
// if somebody else changes the key meanwhile. The error may be ErrArchived, ErrOwnsItself, or
// ErrNotFound.
func (o *Organisation) UpdateKey(ctx context.Context, id string, set func(*Settings) error) (k *Key, err error) {
	err = o.retry(ctx, func() error {
		object, err := o.get(ctx, KindKey, id)
		if k, err = read[Key](object, err); err != nil {
			return err
		}
		project, owner := k.Project, k.OwnerID
		if err := set(&k.Settings); err != nil {
			return err
		}
		var b bonds
		if k.Project != project || k.OwnerID != owner {
			if b, err = o.bonds(ctx, id, &k.Settings); err != nil {
				return err
			}
		}
		after, err := write(k)
		if err != nil {
			return err
		}
		return b.commit(ctx, o, o.event(Updated, &object, &after))
	})
	return k, err
}

// RotateKey gives a key another secret. The secrets that the key has end after overlap.
func (o *Organisation) RotateKey(ctx context.Context, id string, overlap time.Duration) (k *Key, secret string, err error) {
	secret, next := newSecret()
	ends := next.CreatedAt + storage.Timestamp(overlap.Milliseconds())
	k, err = update(ctx, o, id, Rotated, func(k *Key) error {
		k.Secrets = slices.DeleteFunc(k.Secrets, func(s Secret) bool { return s.EndsAt != nil && *s.EndsAt <= next.CreatedAt })
		for i := range k.Secrets {
			if s := &k.Secrets[i]; s.EndsAt == nil || *s.EndsAt > ends {
				s.EndsAt = &ends
			}
		}
		k.Secrets = append(k.Secrets, next)
		return nil
	})
	return k, secret, err
}

// FindKey returns the key that has a secret with this hash, even if it is disabled or has ended, and
// the key's project, nil for none.
func FindKey(ctx context.Context, log Log, hash Hash) (k *Key, project *Project, err error) {
	if k, err = read[Key](log.Find(ctx, hash)); err != nil || k.Project == "" {
		return k, nil, err
	}
	project, err = read[Project](log.Named(ctx, k.Org, KindProject, k.Project))
	return k, project, err
}

// Opens reports whether the secret with this hash is valid at a time.
func (k *Key) Opens(hash Hash, now storage.Timestamp) bool { return now < k.ends(hash) }

// ends returns when the secret with this hash ends, 0 if it is not valid now.
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

// bonds are what a key depends on: its project and its owner, with the owners of a key that owns it.
type bonds struct {
	creation  []Event // make the project, if the key is its first
	unchanged []Object
}

// bonds finds the project and the owner of the key with an id, "" for no key. A key of a service
// account is in the account's project.
func (o *Organisation) bonds(ctx context.Context, id string, s *Settings) (b bonds, err error) {
	if s.OwnerID != "" {
		if err := b.bindOwner(ctx, o, id, s); err != nil {
			return b, err
		}
	}
	if s.Project == "" {
		return b, nil
	}
	object, err := o.Log.Named(ctx, o.Name, KindProject, s.Project)
	p, err := read[Project](object, err)
	switch {
	case errors.Is(err, ErrNotFound):
		e, err := o.ProjectCreated(s.Project)
		b.creation = append(b.creation, e)
		return b, err
	case err != nil:
		return b, err
	case p.ArchivedAt != nil:
		return b, ErrArchived
	}
	b.unchanged = append(b.unchanged, object)
	return b, nil
}

// bindOwner finds the owner of the key, and sets the project of a service account's key.
func (b *bonds) bindOwner(ctx context.Context, o *Organisation, id string, s *Settings) error {
	kind := KindMember
	switch {
	case strings.HasPrefix(s.OwnerID, AccountPrefix):
		kind = KindServiceAccount
	case strings.HasPrefix(s.OwnerID, keyPrefix):
		kind = KindKey
	}
	object, err := o.get(ctx, kind, s.OwnerID)
	if err != nil {
		return err
	}
	if kind == KindServiceAccount {
		a, err := read[ServiceAccount](object, nil)
		if err != nil {
			return err
		}
		s.Project = a.Project
	}
	b.unchanged = append(b.unchanged, object)
	if kind == KindKey {
		return b.bindOwners(ctx, o, id, object)
	}
	return nil
}

// bindOwners finds the keys that own the owner of a key, and refuses the key among them.
func (b *bonds) bindOwners(ctx context.Context, o *Organisation, id string, owner Object) error {
	for seen := make(map[string]bool); !seen[owner.ID]; {
		seen[owner.ID] = true
		k, err := read[Key](owner, nil)
		switch {
		case err != nil:
			return err
		case k.ID == id:
			return ErrOwnsItself
		case !strings.HasPrefix(k.OwnerID, keyPrefix):
			return nil
		}
		owner, err = o.Log.Get(ctx, o.Name, KindKey, k.OwnerID)
		if errors.Is(err, ErrNotFound) { // it ends now, and so does what it owns
			return nil
		}
		if err != nil {
			return err
		}
		b.unchanged = append(b.unchanged, owner)
	}
	return nil // an older version let these keys own each other
}

// commit commits the event if the project and the owners have not changed meanwhile.
func (b bonds) commit(ctx context.Context, o *Organisation, e Event) error {
	err := o.Log.Commit(ctx, o.Name, append(b.creation, e), b.unchanged...)
	if errors.Is(err, ErrTaken) { // by a project that somebody else made meanwhile
		err = ErrChanged
	}
	return err
}
