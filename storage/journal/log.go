package journal

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/storage"
)

// log is the raw segments. Entries are appended to the last segment.
type log struct {
	dir     string
	options *settings
	wake    chan struct{} // the drain's

	// turn is held by whoever writes to the active segment. It guards what follows.
	turn    sync.Mutex
	active  *segment           // nil before the first append
	looked  time.Time          // when checkDirectory was called
	largest int64              // size of the largest group, in bytes
	next    uint64             // number of the next segment
	ends    []storage.Position // where segments end whose files may go on
	spare   []*draft           // for the next queue
	pieces  [][]byte           // for the next write

	// chunks are the chunks of the active segment. Appends look into them before their turn.
	chunks atomic.Pointer[chunkTable]

	// mu is the journal's, which comes behind turn. It guards what follows.
	mu      *sync.Mutex
	queue   []*draft   // the group that has formed
	raw     []*segment // by number
	failing bool       // the disk refuses writes
}
