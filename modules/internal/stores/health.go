package stores

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Health is what a store can do at the moment.
type Health struct {
	Store string
	// Journal is why a call would not be recorded, nil if it would.
	Journal error
	// Backend is why records wait in the journal, nil if they do not.
	Backend error
}

// ErrStarting is why a store is not ready that a process or a new configuration begins with.
var ErrStarting = errors.New("it has not started")

// openTimeout bounds how long a check waits for the first attempt to open a backend.
const openTimeout = time.Second

// CheckHealth looks at all stores in use. It writes a file beside each journal.
func CheckHealth(ctx context.Context) []Health {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var all []Health
	for _, store := range InUse() {
		h := Health{Store: store.Name()}
		if j := store.Opened(); j == nil || !store.Serves() {
			h.Journal = ErrStarting
		} else {
			h.Journal, h.Backend = j.Ready(), j.Connected(ctx)
		}
		all = append(all, h)
	}
	return all
}

// Ready joins why calls to the open stores would be lost or late, nil if none would.
func Ready(all []Health) error {
	if len(all) == 0 {
		return errors.New("no store is open")
	}
	var problem error
	for _, h := range all {
		if h.Journal != nil {
			problem = errors.Join(problem, fmt.Errorf("store %s: %w", h.Store, h.Journal))
		}
		if h.Backend != nil {
			problem = errors.Join(problem, fmt.Errorf("store %s: calls are recorded, and wait: %w", h.Store, h.Backend))
		}
	}
	return problem
}
