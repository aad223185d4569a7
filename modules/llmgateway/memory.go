package llmgateway

import (
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// memory holds the latest responses that were translated, for clients that leave
// out of the next request what these gave them. It is never on disk. Of its two
// generations the younger one takes what comes and what is asked for; when that
// is full or old, it takes the place of the elder, which is forgotten.
type memory struct {
	mu            sync.Mutex
	recent, older map[memoryKey][]byte
	size          int       // of recent, in bytes
	since         time.Time // recent
}

// memoryKey is an id within what one user of one API key was answered. Some
// providers use their ids of calls again, in other conversations.
type memoryKey struct{ authHash, user, id string }

const (
	// maxMemory bounds what is remembered of all calls, in bytes.
	maxMemory = 32 << 20
	// maxRemembered bounds what is remembered of one, in bytes.
	maxRemembered = 1 << 20
	// entryOverhead is what an id takes beside the response, in bytes.
	entryOverhead = 200
	// memoryAge is when a generation is old: one response more, and it is the
	// elder.
	memoryAge = time.Hour
)

// latest is the memory of the process: a reload forgets nothing.
var latest memory

// keep remembers a response under ids. An id that two responses have names
// neither.
func (m *memory) keep(response []byte, keys []memoryKey) {
	if len(keys) == 0 || len(response) > maxRemembered {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.makeRoom(len(response))
	for _, k := range keys {
		if _, used := m.find(k); used {
			m.put(k, nil)
		} else {
			m.put(k, response)
		}
	}
}

// get is the response that has the id, nil if there is none.
func (m *memory) get(k memoryKey) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	response, _ := m.find(k)
	if _, ok := m.recent[k]; !ok && response != nil {
		m.makeRoom(len(response))
		m.put(k, response)
	}
	return response
}

func (m *memory) find(k memoryKey) (response []byte, known bool) {
	if response, known = m.recent[k]; !known {
		response, known = m.older[k]
	}
	return response, known
}

func (m *memory) put(k memoryKey, response []byte) {
	m.recent[k] = response
	m.size += entryOverhead
}

// makeRoom counts n bytes that are about to be put.
func (m *memory) makeRoom(n int) {
	if m.recent == nil || m.size+n > maxMemory/2 || time.Since(m.since) > memoryAge {
		m.older, m.recent = m.recent, make(map[memoryKey][]byte)
		m.size, m.since = 0, time.Now()
	}
	m.size += n
}

// remember keeps a response: for references to its items, unless the client
// wants none stored, and for the reasoning that led to its calls.
func (a *attempt) remember(response []byte) {
	if a.record.ResponseOmitted {
		return
	}
	store := gjson.GetBytes(a.body, "store").Type != gjson.False
	reasoned := false
	var keys []memoryKey
	gjson.GetBytes(response, "output").ForEach(func(_, item gjson.Result) bool {
		if store {
			keys = append(keys, a.memoryKey(item.Get("id").Str))
		}
		switch item.Get("type").Str {
		case "reasoning":
			reasoned = reasoned || item.Get("encrypted_content").Str != ""
		case "function_call", "custom_tool_call":
			if reasoned {
				keys = append(keys, a.memoryKey(item.Get("call_id").Str))
			}
		}
		return true
	})
	latest.keep(response, keys)
}

func (c *call) memoryKey(id string) memoryKey {
	return memoryKey{c.record.AuthHash, c.record.UserID, id}
}
