package shared

import (
	"context"
	"time"
)

// KeepRuns is the time for which a run can be read after its end.
const KeepRuns = 5 * time.Minute

// Runs are the responses that nodes generate while no client waits, so that any node can
// answer for each. A run is written by its own node and read by all. What cannot be
// reached is an error at once or within a bounded time. They are safe for use by several
// goroutines.
type Runs interface {
	// Publish shares what has come to a run of this node, which publishes at least once
	// a second until the run ends.
	Publish(ctx context.Context, run Key, news RunNews) (RunReply, error)
	// Read returns a run with a page of its events from the number from on; a negative
	// number asks for no events. It returns nil if there is no such run.
	Read(ctx context.Context, run Key, from int) (*Run, error)
	// Cancel asks the node of a run to end it.
	Cancel(ctx context.Context, run Key) error
	// Forget deletes a run.
	Forget(ctx context.Context, run Key) error
}

// RunNews is what a node publishes. Values are not changed afterwards, and are encrypted.
type RunNews struct {
	// State is what the run is by now, nil if it has not changed.
	State []byte
	// Events are the events from the number From on. Events that are known already are
	// ignored.
	From   int
	Events [][]byte
	// Ended is true when no event follows. It is ignored while events are missing.
	Ended bool
	// Trimmed deletes the events, because they are too many.
	Trimmed bool
}

// RunReply is what a node learns when it publishes.
type RunReply struct {
	// Known is how many events are known: the number of the next to publish. After a loss
	// of data it is less than what was published, and negative without a state.
	Known int
	// Cancelled is whether a node has asked for the end of the run.
	Cancelled bool
}

// Run is a run as any node reads it.
type Run struct {
	State   []byte
	Events  [][]byte
	Ended   bool
	Trimmed bool
	// Silence is the time since its node last published something.
	Silence time.Duration
	// Dead is true for a run that has not ended although its node must be dead.
	Dead bool
}
