package control

import (
	"sync"

	"github.com/weirhq/weir/storage"
)

// Uses notes when objects were last used, for a log that writes it now and then.
type Uses struct {
	mu   sync.Mutex                   // guards last
	last map[string]storage.Timestamp // by id
}

// Used implements Log.
func (u *Uses) Used(id string, at storage.Timestamp) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = make(map[string]storage.Timestamp)
	}
	u.last[id] = at
}

// Latest returns when an object was last used, of what is noted and what a log has written.
func (u *Uses) Latest(id string, written *storage.Timestamp) *storage.Timestamp {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at, ok := u.last[id]; ok && (written == nil || *written < at) {
		return &at
	}
	return written
}

// Take returns what was noted since it was called last.
func (u *Uses) Take() map[string]storage.Timestamp {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last
	u.last = nil
	return last
}
