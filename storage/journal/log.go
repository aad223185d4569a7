package journal

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/storage"
)

// log is the list of raw segments. Entries are appended to the last segment.
type log struct {
	dir     string
	options *settings
	wake    chan struct{} // wakes the drain

	// turn is held by whoever writes to the active segment. It guards the fields up to pieces.
	turn        sync.Mutex
	active      *segment           // nil before the first append
	checkedAt   time.Time          // of the last checkDirectory
	largest     int64              // size of the largest group so far, in bytes
	unsavedEnds []storage.Position // ends of segments whose files may have bytes after the end
	spare       []*draft           // memory for the next queue
	pieces      [][]byte           // memory for the next write

	// next is the number of the next segment. It only grows.
	next atomic.Uint64

	// chunks are the chunks of the active segment. Appends read them before they have the turn.
	chunks atomic.Pointer[chunkTable]

	// mu is the mutex of the journal. Whoever needs both locks turn first. mu guards the fields
	// below.
	mu       *sync.Mutex
	queue    []*draft   // drafts that the next write writes as one group
	unsealed []*segment // by number
	failing  bool       // the disk refuses writes
}

// newestRaw is the number of the newest segment that is not sealed, 0 if all are.
func (l *log) newestRaw() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.unsealed); n > 0 {
		return l.unsealed[n-1].number
	}
	return 0
}

// oldestRaw is the number of the oldest segment that is not sealed, the largest number if all are.
func (l *log) oldestRaw() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unsealed) > 0 {
		return l.unsealed[0].number
	}
	return math.MaxUint64
}
