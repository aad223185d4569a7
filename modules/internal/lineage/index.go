// Package lineage finds which earlier call a call goes on from: the turn before it in
// its conversation, or the call of a tool that it does the work of. It compares the
// outlines of requests, which are hashes, in memory alone. A restart forgets them.
package lineage

import (
	"hash/maphash"
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
	calls          map[uint64]*call // by what they can be found by
	oldest, newest *call
	size           int
}

// maxSize bounds what an index remembers, in bytes: about 100,000 calls.
const maxSize = 64 << 20

// call is one that later calls may go on from.
type call struct {
	id, parent, root uuid.UUID
	turn             int64 // 0 is unknown
	created          storage.Timestamp
	agent            uint64

	// messages are those of a call that none goes on from. The others are what the
	// messages of the next one begin with.
	messages []uint64
	outline  observe.Outline // but for its messages and tasks

	answered bool
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
	byTask                    // a text in the arguments of a tool that it called
	byAgent                   // the newest of an agent
	byInstructions            // the newest of an agent that nothing but its instructions tells
	byResponse                // the id of its response at the provider
	byID                      // its own
)

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

// add makes a call be found by a key, in place of an earlier one.
func (x *Index) add(c *call, k uint64) {
	if x.calls == nil {
		x.calls = make(map[uint64]*call)
	}
	x.calls[k] = c
	c.keys = append(c.keys, k)
	x.size += keySize
}

// Sizes in memory, about.
const (
	callSize = 400
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
	x.size += callSize + 8*len(c.messages)
	for x.size > maxSize && x.oldest != c {
		x.forget()
	}
}

func (x *Index) forget() {
	c := x.oldest
	x.oldest = c.next
	x.size -= callSize + 8*len(c.messages) + keySize*len(c.keys)
	for _, k := range c.keys {
		if x.calls[k] == c {
			delete(x.calls, k)
		}
	}
	c.keys, c.messages, c.next = nil, nil, nil
}

// extend lets go of the messages of a call which begin those of the next.
func (x *Index) extend(c *call) {
	x.size -= 8 * len(c.messages)
	c.messages = nil
}
