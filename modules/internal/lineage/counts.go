package lineage

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Counts remembers how many tokens providers counted for requests, in memory. A model reads as
// many tokens of the next turn of a conversation, and at most one for each byte that the turn
// adds: no tokenizer makes a token of less. The zero Counts is empty.
type Counts struct {
	mu             sync.Mutex       // guards all fields
	byConversation map[uint64]count // by the hash of the whole conversation
	pieces         int              // sum of the lengths of rest, of all counts
}

// count is what a provider counted for a request.
type count struct {
	tokens     int64
	markBytes  int      // bytes of the conversation that are left out of its hash
	rest       []uint64 // hashes of the pieces that are not of the conversation
	otherBytes int      // bytes that were in no piece
}

const (
	// maxCounts bounds how many requests are remembered, and maxHashes of how many pieces they are
	// together: 8 MiB.
	maxCounts, maxHashes = 10_000, 1 << 20
	// maxMessages bounds the conversation of a request, and maxPieces the pieces beside it, such
	// as tools. A request of more is not remembered.
	maxMessages, maxPieces = 10_000, 1000
)

// Pieces are the parts of a request between which no tokenizer joins text: its messages, and the
// other fields, element by element where a field is a list.
type Pieces struct {
	messages   []message
	rest       []piece // the other fields, sorted by hash
	otherBytes int     // bytes of the request that are in no piece: brackets, spaces, what is no JSON
}

// piece is a part of a request.
type piece struct {
	hash  uint64
	bytes int
}

// message is a piece of the conversation.
type message struct {
	hash      uint64 // of the conversation up to its end
	bytes     int    // of the message
	markBytes int    // bytes of the conversation up to its end that are left out of the hash
}

// conversations are the names of the field with the conversation of a request.
var conversations = []string{"contents", "input", "messages"}

// shorteningFields are the fields that make a provider leave out parts of a conversation. It may read
// in the next turn what it left out of this one.
var shorteningFields = []string{"context_management", "transforms", "truncation"}

// thinkingFields are the fields that say whether a model thinks, and how much. A provider whose model
// does not think leaves out the thoughts of the turns before.
var thinkingFields = []string{"output_config", "reasoning", "reasoning_effort", "thinking"}

// PiecesOf splits a request into pieces. The target is whatever else a provider's count depends on:
// the organisation, the account, the model. There are no pieces if the request is not one conversation,
// or has too many pieces.
func PiecesOf(request *plugins.Object, target ...string) (p Pieces) {
	p.otherBytes = len(request.Data)
	lists, shortened := 0, false
	var conversation gjson.Result
	for _, member := range request.Members {
		key, v := member.Name, member.Value
		shortened = shortened || slices.Contains(shorteningFields, key)
		switch {
		case len(p.rest) > maxPieces:
		case v.IsArray() && slices.Contains(conversations, key):
			lists++
			conversation = v
		case v.IsArray():
			v.ForEach(func(_, element gjson.Result) bool {
				p.rest = append(p.rest, piece{Hash(key, element.Raw), len(`""`) + len(key) + len(element.Raw)})
				return len(p.rest) <= maxPieces
			})
		default:
			if slices.Contains(thinkingFields, key) {
				target = append(slices.Clip(target), key, v.Raw)
			}
			p.rest = append(p.rest, piece{Hash(key, v.Raw), len(`""`) + len(key) + len(v.Raw)})
		}
	}
	if lists != 1 || shortened || len(p.rest) > maxPieces {
		return Pieces{}
	}
	if p.messages = messagesOf(conversation, Hash(target...)); len(p.messages) > maxMessages {
		return Pieces{}
	}
	for _, m := range p.messages {
		p.otherBytes -= m.bytes
	}
	for _, piece := range p.rest {
		p.otherBytes -= piece.bytes
	}
	slices.SortFunc(p.rest, func(a, b piece) int { return cmp.Compare(a.hash, b.hash) })
	return p
}

// messagesOf splits a conversation into messages. target is the hash of the target.
func messagesOf(list gjson.Result, target uint64) (messages []message) {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, target)
	markBytes := 0
	list.ForEach(func(_, v gjson.Result) bool {
		for rest := v.Raw; rest != ""; {
			before, mark := cutMark(rest)
			_, _ = h.WriteString(before)
			markBytes += mark
			rest = rest[len(before)+mark:]
		}
		messages = append(messages, message{h.Sum64(), len(v.Raw), markBytes})
		return len(messages) <= maxMessages
	})
	return messages
}

// cutMark returns what is before the first mark of Anthropic's cache, and the length of the mark.
// Clients move the mark to the newest message in each turn. In text its quotes would be escaped.
func cutMark(text string) (before string, mark int) {
	const name = `,"cache_control":{`
	i := strings.Index(text, name)
	if i < 0 {
		return text, 0
	}
	end := strings.IndexAny(text[i+len(name):], "{}[")
	if end < 0 || text[i+len(name)+end] != '}' {
		return text[:i+len(name)], 0
	}
	return text[:i], len(name) + end + 1
}

// Learn remembers how many tokens a provider counted for a request.
func (c *Counts) Learn(p Pieces, tokens int64) {
	if len(p.messages) == 0 {
		return
	}
	rest := make([]uint64, len(p.rest))
	for i, piece := range p.rest {
		rest[i] = piece.hash
	}
	last := p.messages[len(p.messages)-1]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byConversation == nil {
		c.byConversation = make(map[uint64]count)
	}
	c.forget(last.hash)
	for other := range c.byConversation { // if there are too many, any are forgotten
		if len(c.byConversation) < maxCounts && c.pieces+len(rest) <= maxHashes {
			break
		}
		c.forget(other)
	}
	c.byConversation[last.hash] = count{tokens, last.markBytes, rest, p.otherBytes}
	c.pieces += len(rest)
}

// forget removes the count of a conversation.
func (c *Counts) forget(hash uint64) {
	c.pieces -= len(c.byConversation[hash].rest)
	delete(c.byConversation, hash)
}

// EarlierTurn is an earlier turn of a conversation whose tokens are known. It is zero if there is none.
type EarlierTurn struct {
	Messages int   // that the earlier turn had
	Tokens   int64 // that the provider counted for the earlier turn
	Added    int64 // bytes of the request that the earlier turn did not have
}

// Find returns the latest earlier turn of the conversation of a request.
func (c *Counts) Find(p Pieces) EarlierTurn {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := 0
	for i, m := range slices.Backward(p.messages) {
		if counted, ok := c.byConversation[m.hash]; ok {
			added += max(m.markBytes-counted.markBytes, 0) + max(p.otherBytes-counted.otherBytes, 0) + newBytes(p.rest, counted.rest)
			return EarlierTurn{i + 1, counted.tokens, int64(added)}
		}
		added += m.bytes
	}
	return EarlierTurn{}
}

// newBytes returns the bytes of the pieces that are not among the known ones.
func newBytes(pieces []piece, hashes []uint64) (n int) {
	for _, p := range pieces {
		for len(hashes) > 0 && hashes[0] < p.hash {
			hashes = hashes[1:]
		}
		if len(hashes) > 0 && hashes[0] == p.hash {
			hashes = hashes[1:]
		} else {
			n += p.bytes
		}
	}
	return n
}
