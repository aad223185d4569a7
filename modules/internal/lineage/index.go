// Package lineage finds which earlier call a call continues: the turn before it in
// its conversation, or the call of a tool that it does the work of. It compares the
// outlines of requests, which are hashes, in memory alone. A restart forgets them.
package lineage

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// An Index remembers the calls of one store, the newest of them as far as there is
// room. The zero Index is empty.
type Index struct {
	mu             sync.Mutex
	calls          map[uint64]*call   // by what they can be found by
	tasks          map[uint64][]*call // that asked for what no sub-agent has begun, the first one first
	oldest, newest *call
	size           int
}

// maxSize bounds what an index remembers, in bytes: about 100,000 calls.
const maxSize = 64 << 20

// call is one that later calls may continue.
type call struct {
	id, parent, root uuid.UUID
	turn             int64 // 0 is unknown
	created          storage.Timestamp
	agent            uint64

	// messages are those of a call that none continues. The others are what the
	// messages of the next one begin with.
	messages []uint64
	outline  observe.Outline // but for its messages and tasks
	edited   int             // the position of the first message that is not as before, -1 if all are
	before   *call           // the turn before, until the provider has reported what this one sent
	same     *call           // an earlier one with the same messages

	answered bool
	answer   []uint64    // the texts of what the model said, where another call has the same messages
	tools    *toolCounts // of the conversation, nil before it has called one
	account  uint64
	model    string
	input    plugins.Count

	keys []uint64 // of calls
	next *call    // by age
}

// The kinds of keys that a call is found by.
const (
	byMessages     = iota + 1 // the whole conversation
	byLast                    // its last message
	byAgent                   // the newest of an agent
	byInstructions            // the newest of an agent that nothing but its instructions tells
	byResponse                // the id of its response at the provider
	byID                      // its own
	byTask                    // a text in the arguments of a tool that it called
)

// maxSameTasks is how many calls may ask for the same task before a sub-agent begins it.
const maxSameTasks = 8

var seed = maphash.MakeSeed()

// key is one of a kind, within a scope.
func key(kind int, scope, value uint64) uint64 {
	return maphash.Comparable(seed, [...]uint64{uint64(kind), scope, value})
}

// Hash is the hash of texts, with a secret of the process.
func Hash(texts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range texts {
		maphash.WriteComparable(&h, text)
	}
	return h.Sum64()
}

// add makes a call be found by a key, in place of the one before.
func (x *Index) add(c *call, k uint64) (before *call) {
	if x.calls == nil {
		x.calls = make(map[uint64]*call)
	}
	before = x.calls[k]
	x.calls[k] = c
	c.keys = append(c.keys, k)
	x.size += keySize
	return before
}

// Sizes in memory, about.
const (
	callSize = 500
	keySize  = 48
)

// remember takes a call in, and forgets the oldest for which there is no room.
func (x *Index) remember(c *call) {
	if x.newest != nil {
		x.newest.next = c
	} else {
		x.oldest = c
	}
	x.newest = c
	x.size += c.size()
	for x.size > maxSize && x.oldest != c {
		x.forget()
	}
}

func (x *Index) forget() {
	c := x.oldest
	x.oldest = c.next
	x.size -= c.size() + keySize*len(c.keys)
	for _, k := range c.keys {
		if x.calls[k] == c {
			delete(x.calls, k)
		}
		x.wait(k, slices.DeleteFunc(x.tasks[k], func(asked *call) bool { return asked == c }))
	}
	c.keys, c.messages, c.answer, c.tools, c.before, c.same, c.next = nil, nil, nil, nil, nil, nil, nil
}

// size is that of a call but for its keys.
func (c *call) size() int { return callSize + 8*(len(c.messages)+len(c.answer)) }

// extend lets go of the messages of a call which begin those of the next.
func (x *Index) extend(c *call) {
	x.size -= 8 * len(c.messages)
	c.messages = nil
}
