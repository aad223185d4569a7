package columnar

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// memory has what files are known to have, and what parts of them add up to, for questions that
// come again: a file never changes. The longest unused is forgotten first.
type memory struct {
	limit int // bytes

	mu     sync.Mutex // guards what follows
	byFile map[string]map[question]*list.Element
	recent list.List // of remembered, the last used first
	size   int       // bytes
}

// question is the hash of what is asked about a file: clients choose how long that is. The zero question
// is for the file's index.
type question [sha256.Size]byte

// cachedAnswer is the answer to a question about a file.
type cachedAnswer struct {
	file     string
	question question
	answer   any
	size     int
}

// memoryLimit is the memory for what questions add up to.
const memoryLimit = 64 << 20

func newMemory(limit int) *memory {
	return &memory{limit: limit, byFile: make(map[string]map[question]*list.Element)}
}

// get returns the answer to a question about a file, nil if it is not there.
func (m *memory) get(file string, q question) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byFile[file][q]
	if e == nil {
		return nil
	}
	m.recent.MoveToFront(e)
	return e.Value.(*cachedAnswer).answer
}

// put keeps an answer of a size in bytes, which nobody changes from now on. It returns false if the
// answer is too large.
func (m *memory) put(file string, q question, answer any, size int) bool {
	size += rememberedBytes + len(file)
	if size > m.limit/256 { // of a hundred files no other answer would be left
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.byFile[file][q]; e != nil {
		m.remove(e)
	}
	if m.byFile[file] == nil {
		m.byFile[file] = make(map[question]*list.Element)
	}
	m.byFile[file][q] = m.recent.PushFront(&cachedAnswer{file, q, answer, size})
	for m.size += size; m.size > m.limit; {
		m.remove(m.recent.Back())
	}
	return true
}

// rememberedBytes are about what an answer takes besides its own size and the name of its file, even if
// it is the only one of the file.
const rememberedBytes = 768

func (m *memory) remove(e *list.Element) {
	r := m.recent.Remove(e).(*cachedAnswer)
	m.size -= r.size
	if delete(m.byFile[r.file], r.question); len(m.byFile[r.file]) == 0 {
		delete(m.byFile, r.file)
	}
}

// forget forgets what is known about a file.
func (m *memory) forget(file string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.byFile[file] {
		m.remove(e)
	}
}
