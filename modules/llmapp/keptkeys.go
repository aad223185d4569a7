package llmapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"
)

// ErrKeysUnavailable means that the keys that were created while Weir runs cannot be read.
var ErrKeysUnavailable = errors.New("the keys cannot be read")

// maxKnown is how many keys of a store are in memory. Others are read from the disk.
const maxKnown = 100_000

// usedInterval is how often it is noted that a key is used.
const usedInterval = time.Minute

// keptKeys are the keys of a store that were created while Weir runs.
type keptKeys struct {
	mu      sync.RWMutex
	log     *embedded.Log // nil when closed
	version uint64        // of the log, of which the keys are known
	known   map[control.Hash]*Key
	none    bool // there was no file; log may have made one since
}

// Control returns the control objects of the organisations that live in the store, and makes
// their file if there is none.
func (s *Store) Control() (*embedded.Log, error) {
	if _, err := s.Journal(); err != nil { // which owns the directory
		return nil, err
	}
	k := &s.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.log != nil {
		return k.log, nil
	}
	log, err := embedded.Open(s.Dir(), s.options.Logger)
	if err == nil {
		k.log, k.known, k.version = log, make(map[control.Hash]*Key), log.Version()
	}
	return log, err
}

// controlIfAny is Control, but nil for a store that has no control objects.
func (s *Store) controlIfAny() (*embedded.Log, error) {
	k := &s.kept
	k.mu.RLock()
	log, none := k.log, k.none
	k.mu.RUnlock()
	if log != nil || none {
		return log, nil
	}
	if embedded.Exists(s.Dir()) {
		return s.Control()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.none = k.log == nil
	return k.log, nil
}

// findKey returns the key that has a secret of this hash, whether it opens anything or
// not. The configuration has the store under a name.
func (s *Store) findKey(ctx context.Context, name string, hash control.Hash) (*Key, error) {
	k := &s.kept
	k.mu.RLock()
	key := k.known[hash]
	known := key != nil && key.store == name && k.version == k.log.Version()
	k.mu.RUnlock()
	if known {
		return key, nil
	}
	if !embedded.Exists(s.Dir()) {
		return nil, control.ErrNotFound
	}
	log, err := s.Control()
	if err != nil {
		return nil, err
	}
	version := log.Version()
	kept, project, err := control.FindKey(ctx, log, hash)
	if err != nil {
		return nil, err
	}
	key = &Key{Scopes: kept.Scopes, org: kept.Org, store: name, hash: hash, user: kept.User, project: kept.Project, kept: kept, within: project}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version != version || len(k.known) >= maxKnown {
		clear(k.known)
		k.version = version
	}
	if k.known != nil { // the store has not been closed meanwhile
		k.known[hash] = key
	}
	return key, nil
}

// enterProject finds the project that a token names, which bounds the token as it bounds its
// keys. A name that is no project's bounds nothing.
func (a *App) enterProject(ctx context.Context, k *Key) error {
	store := a.Stores[k.store].store
	if k.project == "" || !embedded.Exists(store.Dir()) {
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
		a.bounded.Error("projects cannot be read", zap.String("store", k.store), zap.Error(err))
		return fmt.Errorf("%w: %w", ErrKeysUnavailable, err)
	case k.within.ArchivedAt != nil:
		return fmt.Errorf("the project %s is archived", k.project)
	}
	return nil
}

// close needs no mutex of the store.
func (k *keptKeys) close(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.log == nil {
		return nil
	}
	log := k.log
	k.log, k.known = nil, nil
	return log.Close(ctx)
}

// keepsKeys reports whether keys were created while Weir runs, which may be those of any
// organisation.
func (a *App) keepsKeys() bool {
	for _, config := range a.Stores {
		if embedded.Exists(config.store.Dir()) {
			return true
		}
	}
	return false
}

// keptKey returns the key that was created while Weir runs, and has a secret of this hash.
func (a *App) keptKey(ctx context.Context, hash control.Hash) (*Key, error) {
	for name, config := range a.Stores {
		key, err := config.store.findKey(ctx, name, hash)
		now := storage.Millis(time.Now())
		switch {
		case errors.Is(err, control.ErrNotFound):
			continue
		case err != nil:
			a.bounded.Error("keys cannot be read", zap.String("store", name), zap.Error(err))
			return nil, fmt.Errorf("%w: %w", ErrKeysUnavailable, err)
		case !key.kept.Opens(hash, now), key.within != nil && key.within.ArchivedAt != nil, a.StoreOf(key.org) != name, a.Organisations[key.org] == nil && key.org != DefaultName:
			return nil, ErrUnknownKey
		}
		if last := key.used.Load(); int64(now)-last > usedInterval.Milliseconds() && key.used.CompareAndSwap(last, int64(now)) {
			if log, err := config.store.Control(); err == nil {
				log.Used(key.kept.ID, now)
			}
		}
		return key, nil
	}
	return nil, ErrUnknownKey
}
