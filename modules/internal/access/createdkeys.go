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

// ErrKeysUnavailable means that the keys that were created while Weir runs cannot be read.
var ErrKeysUnavailable = errors.New("the keys cannot be read")

// maxCached is how many keys and members of a store are in memory. Others are read from the disk.
const maxCached = 100_000

// usedInterval is how often it is noted that a key is used.
const usedInterval = time.Minute

// isUseDue reports, once every usedInterval, that the use of a key or a member is to be noted.
func isUseDue(used *atomic.Int64, now storage.Timestamp) bool {
	last := used.Load()
	return int64(now)-last > usedInterval.Milliseconds() && used.CompareAndSwap(last, int64(now))
}

// createdKeys are the keys and members of a store that were created while Weir runs, as far as
// calls have asked for them.
type createdKeys struct {
	store *stores.Store

	mu      sync.RWMutex
	log     control.Log // that the keys were read of
	version uint64      // of the log
	keys    map[control.Hash]*Key
	members map[string]*cachedMember // by the organisation and the email
}

// isCurrent reports whether what is cached is what a log has now. It needs the mutex.
func (k *createdKeys) isCurrent(log control.Log) bool {
	return log != nil && k.log == log && k.version == log.Version() && log.Trusted()
}

// prepare forgets what was read of another log or version, and everything once it is too much. It
// needs the mutex.
func (k *createdKeys) prepare(log control.Log, version uint64) {
	if k.log != log || k.version != version || len(k.keys)+len(k.members) >= maxCached {
		k.log, k.version = log, version
		k.keys, k.members = make(map[control.Hash]*Key), make(map[string]*cachedMember)
	}
}

// NewKey returns a key that was created while Weir runs, in a project or in none, whose
// organisation lives in a store. It fails if the key masks what this version cannot.
func NewKey(created *control.Key, project *control.Project, store string) (*Key, error) {
	k := &Key{
		Scopes: created.Scopes, Mask: created.Mask,
		org: created.Org, store: store, user: created.User, project: created.Project, created: created, within: project,
	}
	return k, k.ProvisionMask()
}

// findKey returns the key that has a secret of this hash, whether it opens anything or
// not. The configuration has the store under a name.
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
	if key, err = NewKey(withinCreator(created, member, creator), project, name); err != nil {
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

// enterProject finds the project that a token names, which bounds the token as it bounds its
// keys. A name that is no project's bounds nothing.
func (a *Authenticator) enterProject(ctx context.Context, k *Key) error {
	store := a.configs[k.store].Store()
	if k.project == "" || !store.HasControl() {
		return nil
	}
	log, err := store.Control()
	if err == nil {
		k.within, err = control.Named[control.Project](ctx, &control.Organisation{Log: log, Name: k.org}, k.project)
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
func (k *Key) isArchived() bool { return k.within != nil && k.within.ArchivedAt != nil }

// keepsKeys reports whether keys were created while Weir runs, which may be those of any
// organisation.
func (a *Authenticator) keepsKeys() bool {
	for _, config := range a.configs {
		if config.Store().HasControl() {
			return true
		}
	}
	return false
}

// keptKey returns the key that was created while Weir runs, and has a secret of this hash.
func (a *Authenticator) keptKey(ctx context.Context, hash control.Hash) (*Key, error) {
	for name, created := range a.created {
		key, err := created.findKey(ctx, name, hash)
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
			if log, err := created.store.Control(); err == nil {
				log.Used(key.created.ID, now)
			}
		}
		return key, nil
	}
	return nil, ErrUnknownKey
}
