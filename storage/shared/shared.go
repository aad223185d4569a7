// Package shared is the contract of what the gateways of one store have in common
// beside its records: credits, what they remember of answers, circuit breakers, where conversations
// are cached, and the responses that they generate in the background. It has the memory and the breakers of
// a single process; package credits/embedded has the credits of a single process. Package
// sharedtest tests implementations.
package shared

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
)

// State is what nodes share.
type State interface {
	Credits() credits.Ledger
	Memory() Memory
	Breakers() Breakers
	Affinity() Affinity
	Runs() Runs
	Control() control.Log

	// Close ends the node's use of the shared state. Whoever still uses its parts finds the
	// credits and the runs unavailable, and the other parts as if the node were alone.
	Close(ctx context.Context) error
}

// Key identifies something by a hash: what is shared is kept where those who have no
// right to see ids may look.
type Key [sha256.Size]byte

// MaxValue is how many bytes a value of a Memory may have.
const MaxValue = 1 << 20

// Memory remembers values for one to two hours after their last use, and less where
// there are many: any call may find that a value is forgotten. It is safe for use by
// several goroutines, bounds by itself how long a call takes, and does not look into
// values, which callers encrypt.
type Memory interface {
	// Put remembers a value under keys. Equal values have equal ids, different values have
	// different ids. A key under which two different values were put names neither value.
	// A value of more than MaxValue bytes is not remembered. When Put returns, all nodes
	// that can be reached know the value. value and keys are not changed afterwards.
	Put(ctx context.Context, id Key, value []byte, keys []Key)

	// Get returns the value of each key, nil for a key without a value. The caller must not
	// change the values.
	Get(ctx context.Context, keys []Key) [][]byte
}

// Breakers are circuit breakers: a circuit whose calls fail is open for a while. No
// method waits for other nodes, which learn of a change within seconds. They are safe
// for use by several goroutines.
type Breakers interface {
	// Failed counts a failure, and may open the circuit.
	Failed(circuit Key)
	// Succeeded closes the circuit.
	Succeeded(circuit Key)
	// Open tells whether calls had better go elsewhere.
	Open(circuit Key) bool
}

// Affinity remembers for some conversations which account has them in its provider's cache. It
// is safe for use by several goroutines.
type Affinity interface {
	// Remember notes where a conversation is cached, for a time from a millisecond on, in place of what
	// was noted before. It does not wait for other nodes, which learn of it within a second, or never.
	// value is not changed afterwards.
	Remember(conversation Key, value []byte, life time.Duration)
	// Recall returns what was noted of the first of some conversations of which something is known, and
	// which of them it is. It returns nil and -1 if nothing is known, or the nodes do not answer. It
	// bounds by itself how long a call takes.
	Recall(ctx context.Context, conversations []Key) (value []byte, n int)
}
