package shared

import (
	"context"
	"sync"
	"time"
)

const (
	// maxMemory bounds what a process remembers, in bytes.
	maxMemory = 64 << 20
	// keyOverhead is what a key takes beside its value, in bytes.
	keyOverhead = 200
	// generation is the age at which a generation is old: the next value that is put
	// begins a new one.
	generation = time.Hour
)

// LocalMemory is the Memory of one process. The zero value is empty. It has two
// generations. The recent generation takes the values that are put or asked for. When the
// recent generation is full or old, it replaces the older generation, which is forgotten.
type LocalMemory struct {
	mu            sync.Mutex // guards all fields
	recent, older map[Key]memoryEntry
	size          int       // of recent, in bytes
	since         time.Time // recent
}

// memoryEntry is a value with its id. The value is nil where a key names no value.
type memoryEntry struct {
	id    Key
	value []byte
}

// Put implements Memory.
func (m *LocalMemory) Put(_ context.Context, id Key, value []byte, keys []Key) {
	if len(keys) == 0 || len(value) > MaxValue {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.makeRoom(len(value))
	for _, k := range keys {
		if other, used := m.find(k); used && other.id != id {
			m.put(k, memoryEntry{})
		} else {
			m.put(k, memoryEntry{id, value})
		}
	}
}

// Get implements Memory.
func (m *LocalMemory) Get(_ context.Context, keys []Key) [][]byte {
	values := make([][]byte, len(keys))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, k := range keys {
		r, known := m.find(k)
		if _, recent := m.recent[k]; known && !recent {
			m.makeRoom(len(r.value))
			m.put(k, r)
		}
		values[i] = r.value
	}
	return values
}

func (m *LocalMemory) find(k Key) (r memoryEntry, known bool) {
	if r, known = m.recent[k]; !known {
		r, known = m.older[k]
	}
	return r, known
}

func (m *LocalMemory) put(k Key, r memoryEntry) {
	m.recent[k] = r
	m.size += keyOverhead
}

// makeRoom counts n bytes that are about to be put.
func (m *LocalMemory) makeRoom(n int) {
	if m.recent == nil || m.size+n > maxMemory/2 || time.Since(m.since) > generation {
		m.older, m.recent = m.recent, make(map[Key]memoryEntry)
		m.size, m.since = 0, time.Now()
	}
	m.size += n
}

// Interface guards
var _ Memory = (*LocalMemory)(nil)
