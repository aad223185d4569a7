package storage

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Nodes is a Backend to which several journals write, the nodes. Each keeps its state there for the others.
// What a node wrote before it saved its state, whoever has read the state can query.
type Nodes interface {
	// Nodes returns all nodes that have written to the backend. One that has saved no state has an empty one.
	Nodes(ctx context.Context) (map[uuid.UUID]Node, error)
	// SaveNode replaces the state of a node.
	SaveNode(ctx context.Context, node uuid.UUID, state string) error
	// AddErased adds a part to what a node has erased. The parts have the numbers 1, 2 and so on. The same
	// part may be added again.
	AddErased(ctx context.Context, node uuid.UUID, number int64, part []byte) error
	// ErasedBy returns the parts of what a node has erased after so many, up to the first that is missing.
	ErasedBy(ctx context.Context, node uuid.UUID, after int64) ([][]byte, error)
}

// Node is what other nodes see of a node.
type Node struct {
	State string
	// Age is how old the state is, or less if the backend has heard of the node since. It goes by the
	// clock of the backend, and is 0 if that does not know when it heard of a node without a state.
	Age time.Duration
}
