package cache

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/weirhq/weir/storage"
)

const (
	// replayLife bounds how long an answer stays in memory: another node that has the same backend may
	// remove a record unnoticed.
	replayLife = 10 * time.Second
	// maxReplays bounds the answers in memory together, in bytes.
	maxReplays = 16 << 20
	// recordBytes is about what a record takes.
	recordBytes = 4 << 10
)

// replays are answers in memory that the journal has given lately: a hit of the same answer need
// not read and decompress it again. The zero value is empty.
type replays struct {
	mu    sync.Mutex
	all   map[storage.RecordKey]replay // guarded by mu
	bytes int                          // of all; guarded by mu
}

// replay is an answer with its keyed hash.
type replay struct {
	record   *storage.Record
	body     storage.Body
	sum      [sha256.Size]byte
	read     time.Time
	removals uint64 // of the journal before the answer was read
}

// get returns an answer unless it is too old, or something may have been removed from the journal
// since.
func (r *replays) get(key storage.RecordKey, now time.Time, removals uint64) (replay, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.all[key]
	return found, ok && found.removals == removals && now.Sub(found.read) < replayLife
}

// put remembers an answer. If there are too many, it forgets the others.
func (r *replays) put(key storage.RecordKey, found replay) {
	size := len(found.body.Data) + recordBytes
	if size > maxReplays/8 {
		return
	}
	found.body.Data = bytes.Clone(found.body.Data) // it is a part of what was decompressed
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.all[key]; ok {
		r.bytes -= len(before.body.Data) + recordBytes
	}
	if r.all == nil || r.bytes+size > maxReplays {
		r.all, r.bytes = make(map[storage.RecordKey]replay), 0
	}
	r.all[key] = found
	r.bytes += size
}
