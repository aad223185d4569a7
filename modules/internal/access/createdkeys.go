package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// ErrKeysUnavailable means that the keys of the store cannot be read.
var ErrKeysUnavailable = errors.New("the keys cannot be read")

// maxCached bounds the keys and members of a store in memory. The others are read from the disk.
const maxCached = 100_000

// usedInterval is how often the use of a key is logged.
const usedInterval = time.Minute

// isUseDue reports, once every usedInterval, that the use of a key or a member must be logged.
func isUseDue(used *atomic.Int64, now storage.Timestamp) bool {
	last := used.Load()
	return int64(now)-last > usedInterval.Milliseconds() && used.CompareAndSwap(last, int64(now))
}

// createdKeys caches the keys and members in the control log of a store, once calls have asked for
// them. The keys of the configuration are not among them.
type createdKeys struct {
	store *stores.Store

	mu      sync.RWMutex // guards the fields below
	log     control.Log  // the source of keys and members
	version uint64       // of the log, when they were read
	keys    map[control.Hash]*Key
	members map[string]*cachedMember // by the organisation and the email
}

// isCurrent reports whether the cache has what the log has now. It needs the mutex.
func (k *createdKeys) isCurrent(log control.Log) bool {
	return log != nil && k.log == log && k.version == log.Version() && log.Trusted()
}

// prepare empties the cache if it is full, or has another log or version. It needs the mutex.
func (k *createdKeys) prepare(log control.Log, version uint64) {
	if k.log != log || k.version != version || len(k.keys)+len(k.members) >= maxCached {
		k.log, k.version = log, version
		k.keys, k.members = make(map[control.Hash]*Key), make(map[string]*cachedMember)
	}
}

// NewKey returns the Key of a key in the control log, with its project, nil for none. store is the
// name of its organisation's store. It fails if this version cannot mask what the key masks.
func NewKey(created *control.Key, project *control.Project, store string) (*Key, error) {
	k := &Key{
		Scopes: created.Scopes, Mask: created.Mask,
		org: created.Org, store: store, user: created.User, project: created.Project, created: created, inProject: project,
	}
	return k, k.ProvisionMask()
}

// findKey returns the key that has a secret with this hash, even if it is disabled or has ended.
// name is the store's in the configuration.
func (k *createdKeys) findKey(ctx context.Context, name string, hash control.Hash) (*Key, error) {
	opened := k.store.OpenedControl()
	k.mu.RLock()
	key := k.keys[hash]
	isCached := key != nil && k.isCurrent(opened)
	k.mu.RUnlock()
	if isCached {
		return key, nil
	}
	if !k.store.HasControl() {
		return nil, control.ErrNotFound
	}
	log, err := k.store.Control()
	if err != nil {
		return nil, err
	}
	version := log.Version()
	created, project, err := control.FindKey(ctx, log, hash)
	if err != nil {
		return nil, err
	}
	member, creator, err := control.FindCreator(ctx, log, created)
	if err != nil {
		return nil, err
	}
	if key, err = NewKey(limitToCreator(created, member, creator), project, name); err != nil {
		return nil, err
	}
	key.creator = creator
	key = key.hashed(hash)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prepare(log, version)
	k.keys[hash] = key
	return key, nil
}

// enterProject finds the project of a token, which limits the token as it limits its keys. A name
// without a project limits nothing.
func (a *Authenticator) enterProject(ctx context.Context, k *Key) error {
	store := a.configs[k.store].Store()
	if k.project == "" || !store.HasControl() {
		return nil
	}
	log, err := store.Control()
	if err == nil {
		k.inProject, err = control.Named[control.Project](ctx, &control.Organisation{Log: log, Name: k.org}, k.project)
	}
	switch {
	case errors.Is(err, control.ErrNotFound):
		return nil
	case err != nil:
		a.logger.Error("projects cannot be read", zap.String("store", k.store), zap.Error(err))
		return fmt.Errorf("%w: %w", ErrKeysUnavailable, err)
	case k.isArchived():
		return fmt.Errorf("the project %s is archived", k.project)
	}
	return nil
}

// isArchived reports whether the project of the key has ended.
func (k *Key) isArchived() bool { return k.inProject != nil && k.inProject.ArchivedAt != nil }

// mayHaveCreatedKeys reports whether a store has a control log, which may have keys of any
// organisation.
func (a *Authenticator) mayHaveCreatedKeys() bool {
	for _, config := range a.configs {
		if config.Store().HasControl() {
			return true
		}
	}
	return false
}

// createdKey returns the key in a control log that has a secret with this hash, and may be used now.
func (a *Authenticator) createdKey(ctx context.Context, hash control.Hash) (*Key, error) {
	for name, keys := range a.created {
		key, err := keys.findKey(ctx, name, hash)
		now := storage.Millis(time.Now())
		switch {
		case errors.Is(err, control.ErrNotFound):
			continue
		case err != nil:
			a.logger.Error("keys cannot be read", zap.String("store", name), zap.Error(err))
			return nil, fmt.Errorf("%w: %w", ErrKeysUnavailable, err)
		case !key.created.Opens(hash, now), key.isArchived(), a.StoreOf(key.org) != name, !a.has(key.org) && key.org != stores.DefaultName:
			return nil, ErrUnknownKey
		}
		if isUseDue(&key.used, now) {
			if log, err := keys.store.Control(); err == nil {
				log.Used(key.created.ID, now)
			}
		}
		return key, nil
	}
	return nil, ErrUnknownKey
}
