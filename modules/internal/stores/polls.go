package stores

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// PollSchedule says when a provider is to be asked again for what it states later: the results of batches,
// and the usage of sessions. It lasts as long as its store, so that a reload of the configuration forgets
// none.
type PollSchedule struct {
	sync.Mutex // held for a round of questions
	// Next has the time for each batch and session, by the id of its record. One for which nobody has
	// asked is not in it. The mutex guards it.
	Next map[uuid.UUID]time.Time
}

// PollSchedule returns the schedule of the store's batches and sessions.
func (s *Store) PollSchedule() *PollSchedule { return &s.polls }
