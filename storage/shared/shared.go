// Package shared is the contract of what the gateways of one store have in common
// beside its records: credits, what they remember of answers, circuit breakers, and the
// responses that they generate in the background. It has the memory and the breakers of
// a single process; package credits/embedded has the credits of one. Package sharedtest
// tests implementations.
package shared

import (
	"context"
	"crypto/sha256"

	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
)

// State is what nodes share.
type State interface {
	Credits() credits.Ledger
	Memory() Memory
	Breakers() Breakers
	Runs() Runs
	Control() control.Log

	// Close ends the node's use of all of them. Those who still have them find the
	// credits and the runs unavailable, and the rest as if the node were alone.
	Close(ctx context.Context) error
}

// Key identifies something by a hash: what is shared is kept where those who have no
// right to see ids may look.
type Key [sha256.Size]byte

// MaxValue is how many bytes a value of a Memory may have.
const MaxValue = 1 << 20

// Memory remembers values for one to two hours after their last use, and less where
// they are many: any call may find that one is forgotten. It is safe for use by
// several goroutines, bounds how long it takes by itself, and does not look into
// values, which callers encrypt.
type Memory interface {
	// Put remembers a value under keys. Equal values have the same id, and others
	// have others: a key under which two were put names neither. A value of more than
	// MaxValue bytes is not remembered. When Put returns, all nodes know the value
	// that can be reached. value and keys are not changed afterwards.
	Put(ctx context.Context, id Key, value []byte, keys []Key)

	// Get returns the value of each key, nil where there is none. Nobody changes them.
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
