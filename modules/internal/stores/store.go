// Package stores opens the stores of a configuration. A store is a journal with its backend, and the
// credits, the control objects and whatever else the nodes of the store share. It stays the same, and
// open, over reloads.
package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control/embedded"
	ledger "github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/journal"
)

// DefaultName is the name of the default store and of the default organisation.
const DefaultName = "default"

// Storage is what a module of the namespace `llm.storage` provides.
type Storage interface {
	// Key identifies the place of the records, whatever the settings: two configurations
	// with the same Key share one open backend.
	Key() string
	// Dir is the directory of the journal.
	Dir() string
	// Backend returns a backend that is not open yet.
	Backend() storage.Backend
}

// Config configures one store: a journal, and the backend behind it.
type Config struct {
	// StorageRaw is the backend. Default: `{"backend": "sqlite"}` on the file
	// weir.db in Caddy's data directory.
	StorageRaw json.RawMessage `json:"storage,omitempty" caddy:"namespace=llm.storage inline_key=backend"`

	// Retention is how long records are kept. Default: forever.
	Retention caddy.Duration `json:"retention,omitempty"`

	// ContentRetention is how long their bodies are kept. Default: as long as
	// the records.
	ContentRetention caddy.Duration `json:"content_retention,omitempty"`

	// MaxJournal bounds the records that wait for a backend that is down or slow, in
	// bytes. Further records are lost, and counted. Default: 1 GiB.
	MaxJournal directive.Size `json:"max_journal,omitempty"`

	// SharedRaw is where nodes with the same organisations share their credits, keys, circuit
	// breakers, responses in the background, and the outputs that the gateway remembers.
	// Default: this process alone, with files in the journal's directory.
	SharedRaw json.RawMessage `json:"shared,omitempty" caddy:"namespace=llm.shared inline_key=module"`

	// Export sends each record of proxied and gateway calls to an OpenTelemetry
	// collector, too. Default: no collector.
	Export *Export `json:"otlp,omitempty"`

	// Sync flushes the disk before the client gets its last byte, so that records survive
	// a power cut, not only the end of the process. It costs a flush for each group of
	// answers.
	Sync bool `json:"sync,omitempty"`

	// Mask is the journal's.
	Mask func(org string, also mask.Content) *mask.Masker `json:"-"`

	name    string
	backend string // its name
	logger  *zap.Logger
	store   *Store
	shared  Shared // nil for what is this process's own
	locked  bool
}

// Provision takes a reference on the store, which Release gives up.
func (c *Config) Provision(ctx caddy.Context, name string, logger *zap.Logger) error {
	if c.StorageRaw == nil {
		c.StorageRaw = defaultStorage()
	}
	c.backend = gjson.GetBytes(c.StorageRaw, "backend").Str // loading forgets it
	mod, err := ctx.LoadModule(c, "StorageRaw")
	if err != nil {
		return fmt.Errorf("loading its backend: %w", err)
	}
	module, ok := mod.(Storage)
	if !ok {
		return fmt.Errorf("module %T is no storage backend", mod)
	}
	if c.SharedRaw != nil {
		if mod, err = ctx.LoadModule(c, "SharedRaw"); err != nil {
			return fmt.Errorf("loading what is shared: %w", err)
		}
		if c.shared, ok = mod.(Shared); !ok {
			return fmt.Errorf("module %T shares nothing", mod)
		}
	}
	if c.Retention > 0 && c.ContentRetention > c.Retention {
		return fmt.Errorf("content_retention %v is longer than retention %v: bodies are deleted with their records", time.Duration(c.ContentRetention), time.Duration(c.Retention))
	}
	if c.Export != nil {
		if err := c.Export.provision(); err != nil {
			return err
		}
	}
	c.name, c.logger = name, logger
	c.store = storeOf(module, name)
	c.store.hold()
	c.store.enter(c)
	c.locked = true
	return nil
}

// Store returns the store that the configuration refers to.
func (c *Config) Store() *Store { return c.store }

// IsShared reports whether nodes share more than the records of the store.
func (c *Config) IsShared() bool { return c.shared != nil }

// HasControl reports whether there are control objects, or nodes may share some.
func (c *Config) HasControl() bool { return c.shared != nil || embedded.Exists(c.store.Dir()) }

// Lines returns how the line of the store with this name may begin in a Caddyfile.
func (c *Config) Lines(name string) []string {
	if name != DefaultName {
		return []string{"store " + name}
	}
	return []string{"store " + name, "store " + c.backend}
}

func (c *Config) options() journal.Options {
	return journal.Options{
		Dir:              c.store.storage.Dir(),
		MaxBytes:         int64(c.MaxJournal),
		Sync:             c.Sync,
		Retention:        time.Duration(c.Retention),
		ContentRetention: time.Duration(c.ContentRetention),
		Holds:            c.store.Holds,
		AwaitLedger:      c.shared == nil && ledger.Exists(c.store.Dir()),
		LowPriority:      lowpriority.Run,
		Scan:             scan,
		Mask:             c.Mask,
		Logger:           c.logger.Named("store." + c.name),
	}
}

// CheckWritable returns the error that writing to the store would have, or nil. It writes nothing.
func (c *Config) CheckWritable() error { return writable(c.store.Dir()) }

// Start opens the store, and hands it the settings, unless those of an earlier configuration
// are in force: they stay until Release, because the next configuration may still fail.
func (c *Config) Start() error {
	if err := c.store.start(); err != nil {
		return err
	}
	c.store.applyConfig(c)
	if _, err := c.store.ControlIfAny(); err != nil { // without its holds, nothing is deleted
		c.logger.Error("retention and erasures wait: the holds cannot be read", zap.Error(err))
	}
	return nil
}

// Release gives up the reference that Provision took, if it took one.
func (c *Config) Release() {
	if c.locked {
		c.locked = false
		c.store.leave(c)
		c.store.release()
	}
}

func defaultStorage() json.RawMessage {
	raw, _ := json.Marshal(map[string]string{ // two strings always marshal
		"backend": "sqlite",
		"path":    filepath.Join(caddy.AppDataDir(), "weir.db"),
	})
	return raw
}

// stores counts the references on open stores, over all configurations. A store
// stays open for as long as a configuration or an exchange in flight refers to
// it: a reload neither closes it under a stream nor opens it twice.
var stores = caddy.NewUsagePool()

// storesByKey has the one Store of each key, for the life of the process: a store
// that closes while the next configuration opens it again is still the same, so
// that the second waits for the first.
var storesByKey sync.Map

func storeOf(module Storage, name string) *Store {
	s, _ := storesByKey.LoadOrStore(module.Key(), &Store{name: name, key: module.Key(), storage: module})
	return s.(*Store)
}

func init() {
	// When the grace period ends, Caddy exits without waiting for the requests in
	// flight. Cutting them off here lets them record how they ended, before the
	// journals are drained.
	caddy.OnExit(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		open := InUse()
		for _, s := range open {
			s.exchanges.cutOff()
		}
		for _, s := range open {
			s.exchanges.wait(ctx)
			s.mu.Lock()
			_ = s.close(ctx) // what is not drained stays in the journal
			s.mu.Unlock()
		}
	})
}

// closeTimeout bounds how long a closing store waits for its backend. The rest of
// the records stays in the journal until the next start.
const closeTimeout = 10 * time.Second

// Store is a journal with the backend behind it, shared by configurations.
type Store struct {
	name    string
	key     string
	storage Storage

	exchanges exchanges
	calls     lineage.Index
	polls     PollSchedule
	exported  atomic.Pointer[configuredExporter] // nil where nobody asked for it
	serves    atomic.Bool                        // its journal is open, and its organisations have their first credits

	mu sync.Mutex // guards the fields up to answers
	// configs are the configurations that refer to the store, by age: the first is
	// in force, and options are its settings, which the journal opens with.
	configs []*Config
	options journal.Options
	journal *journal.Journal // nil when closed
	shared  sharing
	answers *cache.Cache // nil until it is needed, and when closed

	control controlFile
	holds   holds
}

// Hold takes a reference, which keeps the store open until release is called,
// once.
func (s *Store) Hold() (release func()) {
	s.hold()
	return s.release
}

// HoldExchange is Hold for an exchange, which calls release after it has appended its record. The
// store calls cancel when the process ends and cannot wait for the exchange any longer.
func (s *Store) HoldExchange(cancel context.CancelFunc) (release func()) {
	s.hold()
	done := s.exchanges.add(cancel)
	return func() {
		done()
		s.release()
	}
}

func (s *Store) hold() {
	_, _, _ = stores.LoadOrNew(s.key, func() (caddy.Destructor, error) { return s, nil }) // never fails
}

func (s *Store) release() {
	_, _ = stores.Delete(s.key) // a failed close was logged by the journal
}

// enter adds a configuration that refers to the store.
func (s *Store) enter(c *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs = append(s.configs, c)
	s.options = s.configs[0].options()
}

// leave removes a configuration. Caddy cleans up the old one when all of the new one has started, else
// the new one: the remaining one is in force.
func (s *Store) leave(c *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.configs[0]
	s.configs = slices.DeleteFunc(s.configs, func(other *Config) bool { return other == c })
	if len(s.configs) > 0 && s.configs[0] != was {
		s.options = s.configs[0].options()
		s.apply()
	}
}

// applyConfig applies the settings of a configuration to the open store, unless an earlier one is in force.
func (s *Store) applyConfig(c *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared.err = nil
	if s.configs[0] == c {
		s.apply()
	}
}

// apply applies the settings in force to the open journal. It needs the mutex.
func (s *Store) apply() {
	c := s.configs[0]
	if s.journal != nil {
		s.journal.Reconfigure(s.options)
		s.share()
		s.exportTo(c.Export, c.logger.Named("export."+c.name))
	}
}

// Journal returns the store's journal, and opens it if Start has not yet: Caddy starts apps in no
// particular order.
func (s *Store) Journal() (*journal.Journal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal != nil {
		return s.journal, nil
	}
	j, err := journal.Open(context.Background(), s.storage.Backend(), s.options)
	if err != nil {
		return nil, err
	}
	s.journal = j
	if s.options.AwaitLedger {
		_ = s.openLedger() // Credits says why it does not open
	}
	if !s.shares() && !embedded.Exists(s.Dir()) {
		s.control.knowNone() // while the directory is as the journal opened it
	}
	return j, nil
}

// Cache returns the cache of the answers in the store. The secret of the first call keys it.
func (s *Store) Cache(secret []byte) (*cache.Cache, error) {
	j, err := s.Journal()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers, err = cache.Open(s.Dir(), secret, j, s.options.Logger)
	}
	return s.answers, err
}

// startTimeout bounds how long the start waits for the backend, which may come
// later: calls are recorded until then, and queries answered 503.
const startTimeout = 2 * time.Second

// start opens the store. It fails if the backend can never be used, but not if it is unreachable.
func (s *Store) start() error {
	j, err := s.Journal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := j.Connected(ctx); errors.Is(err, storage.ErrRejected) {
		return err
	}
	return nil
}

// Opened returns the journal if it is open, else nil.
func (s *Store) Opened() *journal.Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal
}

// InUse returns the stores that a configuration or an exchange in flight
// refers to.
func InUse() []*Store {
	var open []*Store
	stores.Range(func(_, value any) bool {
		open = append(open, value.(*Store))
		return true
	})
	return open
}

// Calls returns the index of the calls that later ones may continue.
func (s *Store) Calls() *lineage.Index { return &s.calls }

// Dir is the directory of the journal.
func (s *Store) Dir() string { return s.storage.Dir() }

// Serves reports whether a configuration with the store has started. Caddy starts apps in
// no particular order, so that calls may come before.
func (s *Store) Serves() bool { return s.serves.Load() }

// SetServing makes Serves true.
func (s *Store) SetServing() { s.serves.Store(true) }

// Name is the store's name in the configuration that first used it.
func (s *Store) Name() string { return s.name }

// Place describes where the records are: the backend, and the file or directory.
func (s *Store) Place() string { return s.key }

// Destruct closes the store when its last reference is given up.
func (s *Store) Destruct() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := stores.References(s.key); again {
		return nil // a new reference was taken meanwhile, and may be in use
	}
	return s.close(ctx)
}

// close closes everything that is open. It needs the mutex.
func (s *Store) close(ctx context.Context) error {
	s.stopExport(ctx)
	if s.journal == nil {
		return nil
	}
	j := s.journal
	s.journal = nil
	if s.answers != nil {
		if err := s.answers.Close(); err != nil {
			s.options.Logger.Error("the cache of answers was not closed as it should be", zap.Error(err))
		}
		s.answers = nil
	}
	if err := s.control.close(ctx); err != nil {
		s.options.Logger.Error("the keys were not closed as they should be", zap.Error(err))
	}
	if err := s.shared.close(ctx); err != nil {
		s.options.Logger.Error("what is shared was not closed as it should be", zap.Error(err))
	}
	return j.Close(ctx)
}
