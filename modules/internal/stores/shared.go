package stores

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/shared"
)

// Shared is a module of the namespace `llm.shared`: it opens what several nodes have in common beside
// their records.
type Shared interface {
	// Key identifies the place: modules with the same key share the same things.
	Key() string
	// Open opens what the gateways of a store share. dir is the store's directory on this node. Open
	// does not wait for a server.
	Open(store, dir string, logger *zap.Logger) (shared.State, error)
}

// sharing is what the gateways of a store share: in this process, or with other nodes. A reload that
// changes the place opens the new one. The old one stays open until the store closes, because calls
// in flight are charged where they began.
type sharing struct {
	memory   shared.LocalMemory
	breakers shared.LocalBreakers
	nodes    atomic.Pointer[shared.State] // nil while nothing is shared with other nodes

	// The mutex of the store guards the rest.
	key          string           // of the place that is open, "" for this process
	credits      credits.Ledger   // nil until they are needed, or nodes is open
	ledger       *embedded.Ledger // the file beside the journal, open until the store closes; nil until it is needed
	err          error            // why nodes or ledger do not open; the next configuration tries again
	stopSettling func()           // ends the settler of the credits, nil if there is none
	retired      []shared.State   // the places of earlier configurations, still open
}

// share opens what the configuration in force shares with other nodes, unless it is open or has failed
// to open. The caller holds the mutex, and the journal is open, which makes the directory.
func (s *Store) share() {
	if len(s.configs) == 0 { // calls in flight outlive the last configuration
		return
	}
	module, key := s.configs[0].shared, ""
	if module != nil {
		key = module.Key()
	}
	if key != s.shared.key {
		s.shared.retire()
		s.control.forget()
		s.shared.key, s.shared.err = key, nil
	}
	if module == nil || s.shared.nodes.Load() != nil || s.shared.err != nil {
		return
	}
	state, err := module.Open(s.name, s.storage.Dir(), s.options.Logger)
	if err != nil {
		s.shared.err = err
		s.options.Logger.Error("nothing is shared with other nodes", zap.Error(err))
		return
	}
	s.shared.nodes.Store(&state)
	s.shared.credits = state.Credits()
	s.shared.stopSettling = s.settler(s.shared.credits).run()
}

// retire takes what is in force out of use, and leaves it open for calls in flight. The ledger of the
// file stays, because a later configuration may use the file again.
func (s *sharing) retire() {
	if s.stopSettling != nil {
		s.stopSettling()
		s.stopSettling = nil
	}
	if state := s.nodes.Swap(nil); state != nil {
		s.retired = append(s.retired, *state)
	}
	s.credits = nil
}

// close closes all that was open.
func (s *sharing) close(ctx context.Context) (err error) {
	s.retire()
	for _, state := range s.retired {
		err = errors.Join(err, state.Close(ctx))
	}
	s.retired = nil
	if s.ledger != nil {
		err = errors.Join(err, s.ledger.Close(ctx))
		s.ledger = nil
	}
	return err
}

// sharedNodes returns what the store shares with other nodes, nil if the configuration shares
// nothing.
func (s *Store) sharedNodes() (*shared.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share()
	if s.shared.key == "" {
		return nil, nil
	}
	return s.shared.nodes.Load(), s.shared.err
}

// Credits returns the ledger of the organisations that live in the store: the one that nodes share, or
// a file beside the journal. It is open as long as the journal is. After an error, the next
// configuration tries again.
func (s *Store) Credits() (credits.Ledger, error) {
	if _, err := s.Journal(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share()
	if s.shared.credits != nil || s.shared.err != nil {
		return s.shared.credits, s.shared.err
	}
	if err := s.openLedger(); err != nil {
		return nil, err
	}
	ledger := s.shared.ledger
	settler := s.settler(ledger)
	if settled, _ := settler.settle(context.Background()); !settled { // run tells why
		s.shared.stopSettling = settler.run()
	}
	s.shared.credits = ledger
	return ledger, nil
}

// openLedger opens the ledger beside the journal, and charges again what a power cut has lost. Until
// the ledger is open, the journal deletes no segment from which it may have to be charged. The caller
// holds the mutex, and the journal is open.
func (s *Store) openLedger() error {
	if s.shared.ledger != nil || s.shared.err != nil {
		return s.shared.err
	}
	ctx := context.Background()
	ledger, err := embedded.Open(s.storage.Dir(), s.journal, s.options.Logger)
	if err == nil {
		if err = ledger.Recover(ctx); err != nil {
			err = errors.Join(err, ledger.Close(ctx))
		}
	}
	if s.shared.err = err; err == nil {
		s.shared.ledger = ledger
		s.journal.LedgerRead()
	}
	return err
}

// Memory returns what the gateways of the store remember of answers, such as who owns a response.
func (s *Store) Memory() shared.Memory {
	if state := s.shared.nodes.Load(); state != nil {
		return (*state).Memory()
	}
	return &s.shared.memory
}

// Breakers returns the circuit breakers of the gateways of the store.
func (s *Store) Breakers() shared.Breakers {
	if state := s.shared.nodes.Load(); state != nil {
		return (*state).Breakers()
	}
	return &s.shared.breakers
}

// Affinity returns the shared knowledge of which provider has which conversation in its cache, nil
// while nothing is shared with other nodes.
func (s *Store) Affinity() shared.Affinity {
	if state := s.shared.nodes.Load(); state != nil {
		return (*state).Affinity()
	}
	return nil
}

// Runs returns the responses that nodes generate in the background, nil while nothing is
// shared with other nodes.
func (s *Store) Runs() shared.Runs {
	if state := s.shared.nodes.Load(); state != nil {
		return (*state).Runs()
	}
	return nil
}
