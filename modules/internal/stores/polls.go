package stores

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// BatchSchedule says when a provider is to be asked again for the results of batches. It lasts as long as
// its store, so that a reload of the configuration forgets none.
type BatchSchedule struct {
	sync.Mutex // held for a round of questions
	// Next has the time for each batch, by the id of its record. A batch for which nobody has asked is not
	// in it. The mutex guards it.
	Next map[uuid.UUID]time.Time
}

// BatchSchedule returns the schedule of the store's batches.
func (s *Store) BatchSchedule() *BatchSchedule { return &s.batches }
