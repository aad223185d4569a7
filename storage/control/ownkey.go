package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir/storage"
)

// KeyPermissions say who of a project creates keys of their own in it, without an administrator.
type KeyPermissions struct {
	// Creators are some of CreatorOwners, CreatorMembers and CreatorKeys.
	Creators []string `json:"creators"`
	// MaxKeys is how many such keys each creator has at most.
	MaxKeys int `json:"max_keys"`
	// MaxLifetime is how long such a key lives at most, in seconds.
	MaxLifetime int64 `json:"max_lifetime_seconds"`
}

// Who creates keys of their own.
const (
	CreatorOwners  = "owners"  // members who are owners of the project
	CreatorMembers = "members" // all members of the project
	CreatorKeys    = "keys"    // the keys of the project that administrators create
)

// Creator is the member or the key that created a key as its own. Such a key may never do more
// than its creator, whatever its settings say, and budgets count its calls as the creator's.
type Creator struct {
	// ID is the id of the member or the key.
	ID string `json:"id"`
	// AuthHash is the AuthHash of records of the member's own calls, "" for a key.
	AuthHash string `json:"auth_hash,omitempty"`
}

// AsCaller returns the record of a call of the created key as if the creator had made the call.
func (c *Creator) AsCaller(r *storage.Record) *storage.Record {
	as := *r
	as.KeyID, as.AuthHash = c.ID, ""
	if !c.isKey() { // a member, whose calls have no key
		as.KeyID, as.AuthHash = "", c.AuthHash
	}
	return &as
}

func (c *Creator) isKey() bool { return strings.HasPrefix(c.ID, keyPrefix) }

// keyPrefix begins the ids of keys, and of no other object.
const keyPrefix = "key_"

// ownKeyChanges lets the creations of one creator follow each other: creations at once would each
// find that one more key is allowed. Each node that shares a log counts by itself.
var ownKeyChanges sync.Map // *sync.Mutex by the id of the creator

// TooManyKeysError is the error for a creator who has as many keys as a project allows.
type TooManyKeysError int

// Error implements error.
func (e TooManyKeysError) Error() string {
	return fmt.Sprintf("you have %d keys of your own, as many as the project allows: delete one first", int(e))
}

// CreateOwnKey creates a key for its creator, in a project whose permissions the caller has
// checked. The error may be a TooManyKeysError, or ErrNotFound if the creator has ended.
func (o *Organisation) CreateOwnKey(ctx context.Context, by Creator, s Settings, maxKeys int) (k *Key, secret string, err error) {
	mu, _ := ownKeyChanges.LoadOrStore(by.ID, new(sync.Mutex))
	mu.(*sync.Mutex).Lock()
	defer mu.(*sync.Mutex).Unlock()
	own, err := o.OwnKeys(ctx, by.ID)
	if err != nil {
		return nil, "", err
	}
	if len(own) >= maxKeys {
		return nil, "", TooManyKeysError(len(own))
	}
	s.OwnerID = by.ID
	return o.createKey(ctx, s, &by)
}

// OwnKeys returns the keys that a member or a key has created as their own, the oldest first.
func (o *Organisation) OwnKeys(ctx context.Context, creator string) ([]Listed[Key], error) {
	all, err := All[Key](ctx, o, Page{List: OwnedBy(creator)})
	return slices.DeleteFunc(all, func(k Listed[Key]) bool { return k.Object.Creator == nil || k.Object.Creator.ID != creator }), err
}

// FindCreator returns who created a key of their own: the member, or else the key. Both are nil for a key
// of an administrator. The error may be ErrNotFound.
func FindCreator(ctx context.Context, log Log, k *Key) (m *Member, by *Key, err error) {
	if k.Creator == nil {
		return nil, nil, nil
	}
	o := &Organisation{Log: log, Name: k.Org}
	if k.Creator.isKey() {
		found, err := Get[Key](ctx, o, k.Creator.ID)
		return nil, found.Object, err
	}
	found, err := Get[Member](ctx, o, k.Creator.ID)
	return found.Object, nil, err
}

// CreatorOf returns who created the key with an id as their own, nil for any other key and for an id
// that is no key's. A deleted key is in the event that ended it.
func (o *Organisation) CreatorOf(ctx context.Context, id string) (*Creator, error) {
	found, err := Get[Key](ctx, o, id)
	if !errors.Is(err, ErrNotFound) {
		if err != nil {
			return nil, err
		}
		return found.Object.Creator, nil
	}
	events, err := o.Log.Events(ctx, o.Name, id, "", 1)
	if err != nil || len(events) == 0 || events[0].Before == nil {
		return nil, err
	}
	k, err := read[Key](*events[0].Before, nil)
	if err != nil {
		return nil, err
	}
	return k.Creator, nil
}
