package llmapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"
)

// ErrKeysUnavailable means that the keys that were created while Weir runs cannot be read.
var ErrKeysUnavailable = errors.New("the keys cannot be read")

// maxKnown is how many keys and members of a store are in memory. Others are read from the disk.
const maxKnown = 100_000

// usedInterval is how often it is noted that a key is used.
const usedInterval = time.Minute

// isUseDue reports, once every usedInterval, that the use of a key or a member is to be noted.
func isUseDue(used *atomic.Int64, now storage.Timestamp) bool {
	last := used.Load()
	return int64(now)-last > usedInterval.Milliseconds() && used.CompareAndSwap(last, int64(now))
}

// keptKeys are the keys of a store that were created while Weir runs.
type keptKeys struct {
	mu      sync.RWMutex
	file    *embedded.Log // nil until it is needed, and when closed
	log     control.Log   // of which the keys are known, nil when closed
	version uint64        // of the log
	known   map[control.Hash]*Key
	members map[string]*knownMember // by the organisation and the email
	none    bool                    // there was no file; log may have made one since
}

// Control returns the control objects of the organisations that live in the store: those that
// nodes share, or a file beside the journal, which is made if there is none.
func (s *Store) Control() (control.Log, error) {
	if _, err := s.Journal(); err != nil { // which owns the directory
		return nil, err
	}
	nodes, err := s.sharedNodes()
	if err != nil {
		return nil, err
	}
	k := &s.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if nodes != nil {
		k.use((*nodes).Control())
		return k.log, nil
	}
	if k.file == nil {
		if k.file, err = embedded.Open(s.Dir(), s.options.Logger); err != nil {
			return nil, err
		}
	}
	k.use(k.file)
	return k.log, nil
}

// use forgets the keys of another log. It needs the mutex.
func (k *keptKeys) use(log control.Log) {
	if k.log != log {
		k.log, k.known, k.members, k.version = log, make(map[control.Hash]*Key), make(map[string]*knownMember), log.Version()
	}
}

// keep makes room for what was read of a log at its version. It reports false if the store has
// been closed meanwhile, or shares other objects. It needs the mutex.
func (k *keptKeys) keep(log control.Log, version uint64) bool {
	if k.version != version || len(k.known)+len(k.members) >= maxKnown {
		clear(k.known)
		clear(k.members)
		k.version = version
	}
	return k.log == log
}

// forget makes the next call ask where the keys are now.
func (k *keptKeys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log, k.known, k.members, k.none = nil, nil, nil, false
}

// ControlFile returns the file of control objects, nil if there is none or if nodes share them.
func (s *Store) ControlFile() (*embedded.Log, error) {
	if s.sharesControl() || !embedded.Exists(s.Dir()) {
		return nil, nil
	}
	log, err := s.Control()
	file, _ := log.(*embedded.Log)
	return file, err
}

// keepsControl reports whether there may be control objects. Each call asks: the disk is asked
// only before the journal is open.
func (s *Store) keepsControl() bool {
	log, none := s.kept.found()
	return log != nil || !none && (s.sharesControl() || embedded.Exists(s.Dir()))
}

// found returns the control objects that are open, or reports that there are none.
func (k *keptKeys) found() (log control.Log, none bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.log, k.log == nil && k.none
}

// sharesControl reports whether control objects are where nodes share them.
func (s *Store) sharesControl() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shares()
}

// shares is sharesControl for who has the mutex.
func (s *Store) shares() bool { return len(s.configs) > 0 && s.configs[0].shared != nil }

// controlIfAny is Control, but nil for a store that has no control objects.
func (s *Store) controlIfAny() (control.Log, error) {
	if log, none := s.kept.found(); log != nil || none {
		return log, nil
	}
	if s.keepsControl() {
		return s.Control()
	}
	return s.kept.knowNone(), nil
}

// knowNone notes that there are no control objects, or returns those that were made meanwhile.
func (k *keptKeys) knowNone() control.Log {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.none = k.log == nil
	return k.log
}

// findKey returns the key that has a secret of this hash, whether it opens anything or
// not. The configuration has the store under a name.
func (s *Store) findKey(ctx context.Context, name string, hash control.Hash) (*Key, error) {
	k := &s.kept
	k.mu.RLock()
	key := k.known[hash]
	known := key != nil && key.store == name && k.version == k.log.Version() && k.log.Trusted()
	k.mu.RUnlock()
	if known {
		return key, nil
	}
	if !s.keepsControl() {
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
	key = (&Key{Scopes: kept.Scopes, org: kept.Org, store: name, user: kept.User, project: kept.Project, kept: kept, within: project}).hashed(hash)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keep(log, version) {
		k.known[hash] = key
	}
	return key, nil
}

// enterProject finds the project that a token names, which bounds the token as it bounds its
// keys. A name that is no project's bounds nothing.
func (a *App) enterProject(ctx context.Context, k *Key) error {
	store := a.Stores[k.store].store
	if k.project == "" || !store.keepsControl() {
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
	file := k.file
	k.file, k.log, k.known, k.members = nil, nil, nil, nil
	if file == nil {
		return nil
	}
	return file.Close(ctx)
}

// keepsKeys reports whether keys were created while Weir runs, which may be those of any
// organisation.
func (a *App) keepsKeys() bool {
	for _, config := range a.Stores {
		if config.store.keepsControl() {
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
		if isUseDue(&key.used, now) {
			if log, err := config.store.Control(); err == nil {
				log.Used(key.kept.ID, now)
			}
		}
		return key, nil
	}
	return nil, ErrUnknownKey
}
