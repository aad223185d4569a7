// Package lineage finds which earlier call a call continues: the turn before it in
// its conversation, or the call of a tool that it does the work of. It compares the
// outlines of requests, which are hashes, in memory alone. A restart forgets them.
package lineage

import (
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// An Index remembers the newest calls of one store, within maxSize. The zero Index is empty.
type Index struct {
	mu             sync.Mutex // guards all fields
	slots          slab[call]
	blocks         slab[block]
	toolCounts     slab[toolCounts]
	calls          map[uint64]ref   // the newest call of each key
	tasks          map[uint64]stack // calls that asked for a task which no sub-agent has begun, the first call on top
	oldest, newest uint32           // slots, 0 if there are no calls
	serial         uint32           // of the newest call; the first call of the index has 1
	size           int              // bytes
	unread         unread
}

// maxSize bounds the memory of an index without unread answers, in bytes: about 100,000 calls.
const maxSize = 32 << 20

// ref refers to a call by its slot and its serial number, because another call may get the slot after
// the call is forgotten. The zero ref refers to no call.
type ref struct{ slot, serial uint32 }

// word encodes the ref for a stack. refOfWord decodes it.
func (r ref) word() uint64      { return uint64(r.slot)<<32 | uint64(r.serial) }
func refOfWord(word uint64) ref { return ref{uint32(word >> 32), uint32(word)} }

// call is a call that later calls may continue. It holds no pointers.
type call struct {
	id, parent, root uuid.UUID
	created          storage.Timestamp
	agent            uint64
	features         features

	// messages are empty once another call continues this one: its messages begin with these.
	messages stack
	count    int32 // of messages
	edited   int32 // position of the first message that the turn before did not have, -1 if it had all
	turn     int32 // 0 is unknown
	before   ref   // the turn before, until the provider has reported the tokens of this call
	twin     ref   // the call before with the same messages; zero if there is none

	answer         reply  // zero until it arrives
	toolCounts     uint32 // number of those of the conversation in the slab, 0 before it has called a tool
	account, model uint64 // hashes, 0 until the answer arrives
	target         uint64 // hash of the gateway's target, 0 if a proxy passed the call on
	input          int64  // tokens, or unknown

	entry
}

// entry is what an index needs to find a call and to forget it.
type entry struct {
	ref    ref    // to the call itself
	keys   stack  // by which the index finds the call
	next   uint32 // slot of the call that is forgotten after this one, 0 for the newest
	spared int32  // how often trim has spared the call
}

// reply is an answer, whose texts a later call may repeat.
type reply struct {
	arrived bool
	unread  place // its body, if another call has the same messages
	texts   stack // the hashes of its texts, once they are read
}

// features are what a provider's cache depends on, beside the messages.
type features struct {
	tools, instructions, cacheKey uint64
	cacheLife                     storage.Timestamp // milliseconds, five minutes if the request does not say
	marked                        bool              // the request asks for caching
	messagesMarked                bool              // so does one of its messages
}

const unknown = -1

// Sizes in memory, about, in bytes.
const (
	callSize       = int(unsafe.Sizeof(call{}))
	toolCountsSize = int(unsafe.Sizeof(toolCounts{}))
	keySize        = 24
)

// The kinds of keys that a call is found by.
const (
	byMessages     = iota + 1 // the whole conversation
	byLast                    // its last message
	byAgent                   // the newest of an agent
	byInstructions            // the newest of an agent without a name, by its instructions
	byResponse                // the id of its response at the provider
	byID                      // its own
	byTask                    // a text in the arguments of a tool that it called
)

// maxSameTasks is how many calls may ask for the same task before a sub-agent begins it.
const maxSameTasks = 8

var seed = maphash.MakeSeed()

// key returns the key of a kind for a value, within a scope.
func key(kind int, scope, value uint64) uint64 {
	return maphash.Comparable(seed, [...]uint64{uint64(kind), scope, value})
}

// Hash returns the hash of texts, keyed by a secret of the process.
func Hash(texts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range texts {
		maphash.WriteComparable(&h, text)
	}
	return h.Sum64()
}

// get returns the call of a ref, nil if it is forgotten.
func (x *Index) get(r ref) *call {
	if r.slot != 0 {
		if c := x.slots.at(r.slot); c.ref == r {
			return c
		}
	}
	return nil
}

// lookup returns the newest call of a key, nil if there is none.
func (x *Index) lookup(k uint64) *call { return x.get(x.calls[k]) }

// add makes c the newest call of a key, and returns the one before.
func (x *Index) add(c *call, k uint64) (before ref) {
	if x.calls == nil {
		x.calls = make(map[uint64]ref)
	}
	before = x.calls[k]
	x.calls[k] = c.ref
	x.addKey(c, k)
	return before
}

// addKey adds a key to those that are deleted with the call.
func (x *Index) addKey(c *call, k uint64) {
	x.size += keySize + push(&x.blocks, &c.keys, k)
}

// maxSpared is how often the last call of a conversation is spared. A long conversation of an agent
// may continue after hours of single calls of others. One that is over is forgotten in the end.
const maxSpared = 3

// spare reports whether trim spares the call: the last call of a conversation, the more often the
// more turns the conversation has.
func (c *call) spare() bool {
	return c.count > 0 && c.parent != uuid.Nil && c.spared < maxSpared && (c.turn == 0 || c.spared < c.turn-1)
}

// remember adds a call. trim then forgets those for which there is no room.
func (x *Index) remember(of call) *call {
	slot := x.slots.take()
	c := x.slots.at(slot)
	x.serial++
	*c = of
	c.ref = ref{slot, x.serial}
	x.appendSlot(slot)
	x.size += callSize
	return c
}

// appendSlot makes the call of a slot the newest.
func (x *Index) appendSlot(slot uint32) {
	if x.newest != 0 {
		x.slots.at(x.newest).next = slot
	} else {
		x.oldest = slot
	}
	x.newest = slot
}

// removeOldest removes the oldest call from the list of at least two calls, and returns its slot.
func (x *Index) removeOldest() (slot uint32) {
	slot = x.oldest
	c := x.slots.at(slot)
	x.oldest, c.next = c.next, 0
	return slot
}

// trim forgets the oldest calls until the rest fit into maxSize, without those to spare.
func (x *Index) trim() {
	for x.size > maxSize && x.oldest != x.newest {
		slot := x.removeOldest()
		if c := x.slots.at(slot); c.spare() {
			c.spared++
			x.appendSlot(slot)
		} else {
			x.forget(slot)
		}
	}
}

// forget removes a call that is not in the list, with its keys and messages.
func (x *Index) forget(slot uint32) {
	c := x.slots.at(slot)
	for k := range words(&x.blocks, c.keys) {
		x.size -= keySize
		if x.calls[k] == c.ref {
			delete(x.calls, k)
		}
		if waiting := x.waitingCalls(k); len(waiting) > 0 {
			x.setWaitingCalls(k, slices.DeleteFunc(waiting, func(r ref) bool { return r == c.ref }))
		}
	}
	x.dropMessages(c)
	x.size -= callSize + drop(&x.blocks, &c.keys) + drop(&x.blocks, &c.answer.texts)
	if c.toolCounts != 0 {
		x.leaveTools(c.toolCounts)
	}
	x.slots.give(slot)
}

// storeMessages stores the messages of a call.
func (x *Index) storeMessages(c *call, messages []observe.MessageHash) {
	c.count = int32(len(messages))
	for i := len(messages) - 1; i >= 0; i-- { // the first message is on top
		x.size += push(&x.blocks, &c.messages, messages[i].Hash)
	}
}

// dropMessages drops the messages of a call.
func (x *Index) dropMessages(c *call) {
	c.count = 0
	x.size -= drop(&x.blocks, &c.messages)
}
