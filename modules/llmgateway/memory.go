package llmgateway

import (
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/plugins/translate"
)

// memory holds the output of the latest responses that were translated, for
// clients that leave out of the next request what it gave them. It is never on
// disk. Of its two generations the younger one takes what comes and what is asked
// for; when that is full or old, it takes the place of the elder, which is
// forgotten.
type memory struct {
	mu            sync.Mutex
	recent, older map[memoryKey]string // arrays of items
	size          int                  // of recent, in bytes
	since         time.Time            // recent
}

// memoryKey is an id within what one user of one API key was answered. Some
// providers use their ids of calls again, in other conversations.
type memoryKey struct{ authHash, user, id string }

const (
	// maxMemory bounds what is remembered of all calls, in bytes.
	maxMemory = 32 << 20
	// maxRemembered bounds what is remembered of one, in bytes.
	maxRemembered = 1 << 20
	// entryOverhead is what an id takes beside the output, in bytes.
	entryOverhead = 200
	// memoryAge is when a generation is old: with one output more it is the elder.
	memoryAge = time.Hour
)

// latest is the memory of the process: a reload forgets nothing.
var latest memory

// keep remembers an output under ids. An id that two outputs have names neither.
func (m *memory) keep(output string, keys []memoryKey) {
	if len(keys) == 0 || len(output) > maxRemembered {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.makeRoom(len(output))
	for _, k := range keys {
		if other, used := m.find(k); used && other != output {
			m.put(k, "")
		} else {
			m.put(k, output)
		}
	}
}

// get is the output that has the id, "" if there is none.
func (m *memory) get(k memoryKey) (output string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	output, _ = m.find(k)
	if _, ok := m.recent[k]; !ok && output != "" {
		m.makeRoom(len(output))
		m.put(k, output)
	}
	return output
}

func (m *memory) find(k memoryKey) (output string, known bool) {
	if output, known = m.recent[k]; !known {
		output, known = m.older[k]
	}
	return output, known
}

func (m *memory) put(k memoryKey, output string) {
	m.recent[k] = output
	m.size += entryOverhead
}

// makeRoom counts n bytes that are about to be put.
func (m *memory) makeRoom(n int) {
	if m.recent == nil || m.size+n > maxMemory/2 || time.Since(m.since) > memoryAge {
		m.older, m.recent = m.recent, make(map[memoryKey]string)
		m.size, m.since = 0, time.Now()
	}
	m.size += n
}

// remember keeps the output of a response for the reasoning that led to its calls.
func (a *attempt) remember(outputs []*translate.Output) {
	if a.x.Record.ResponseOmitted {
		return
	}
	reasoned := false
	var keys []memoryKey
	var output []byte
	for _, o := range outputs {
		if o.JSON == nil { // it was open when the response failed
			continue
		}
		reasoned = reasoned || o.Sealed != ""
		if o.IsCall() && reasoned {
			keys = append(keys, a.call.memoryKey(o.CallID))
		}
		output = append(append(output, ','), o.JSON...)
	}
	if len(keys) > 0 {
		latest.keep("["+string(output[1:])+"]", keys)
	}
}

func (c *call) memoryKey(id string) memoryKey {
	return memoryKey{c.exchange.Record.AuthHash, c.exchange.Record.UserID, strings.Clone(id)} // it outlives the body
}
