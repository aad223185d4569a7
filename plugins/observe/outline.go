package observe

import (
	"hash/maphash"
	"slices"
)

// Outline has hashes of the parts of a request: enough to tell whether another request
// continues it, and nothing of what was said. The hashes are keyed by a secret of the
// process, and mean nothing outside of the process.
type Outline struct {
	// Messages are those of the conversation, without instructions.
	Messages []MessageHash
	// Instructions and Tools are 0 if the request has none.
	Instructions, Tools uint64
	// Tasks are the texts of the first message, by [TextHash] of TaskLetters.
	Tasks []uint64
	// PreviousResponse is the id of the response that the request continues.
	PreviousResponse string
	// CacheKey is the hash of the value that chooses the provider's cache, 0 if the request
	// has no such value.
	CacheKey uint64
	// CacheLife is how long the provider's cache shall keep the request, in the provider's
	// words.
	CacheLife string
	// Marked is true if the request asks for caching. MarkedMessages is how many of its
	// messages shall be cached.
	Marked         bool
	MarkedMessages int
}

// MessageHash is a message of a request.
type MessageHash struct {
	Hash uint64
	// At is the position in the list of the request.
	At int32
	// Model is true if a model said the message.
	Model bool
	// Texts are the first three texts by [TextHash] of AnswerLetters, 0 for each that the
	// message does not have.
	Texts [3]uint64
}

// Matches counts the texts of the message among those of an answer.
func (m *MessageHash) Matches(answer []uint64) (n int) {
	for _, text := range m.Texts {
		if text != 0 && slices.Contains(answer, text) {
			n++
		}
	}
	return n
}

// maxMessages bounds an outline. A request with more messages has none.
const maxMessages = 1 << 14

// outliner makes an Outline of what a scanner reads. The hash of a part is that of the
// values in it, in their order. White space does not change the hash, nor does a text that
// becomes a list with one text, nor a mark for the provider's cache.
type outliner struct {
	Outline
	complete bool // the request has ended

	part       Field // the part under way, none between parts
	depth      int   // the depth of the part
	at         int32 // messages so far
	hash       maphash.Hash
	fed        bool // hash got bytes since the last separator
	role       []byte
	muted      int // the depth of a mark for the cache under way plus one
	text       textHash
	texts      [3]uint64 // texts of the message under way
	textLength int       // length of texts

	fingerprints *fingerprinter // nil unless they are asked for
}

var (
	hashSeed  = maphash.MakeSeed()
	separator = []byte{0xff} // in no UTF-8
	// emptyLists are the hashes of a list without elements, where a table looks into elements, and where none does.
	emptyLists = []uint64{maphash.Bytes(hashSeed, nil), maphash.Bytes(hashSeed, append([]byte("]"), separator...))}
)

// isPart reports whether an outline has values of the field f.
func (f Field) isPart() bool { return Message <= f && f <= CacheMark }

// begin begins a value at a depth whose field is a part. c is its first byte.
func (o *outliner) begin(f Field, c byte, depth int) {
	switch {
	case f == CacheMark:
		o.Marked = true
		if o.part == Message {
			o.MarkedMessages = len(o.Messages) + 1
		} else if depth == 1 { // of the request as a whole
			o.MarkedMessages = maxMessages
		}
		o.muted = depth + 1
	case c != '"' && c != '{' && (c != '[' || f == Message): // a list of messages is no message
	case o.part == none:
		o.part, o.depth, o.role = f, depth, o.role[:0]
		o.texts, o.textLength = [3]uint64{}, 0
		o.hash.SetSeed(hashSeed)
		o.fingerprints.begin()
	}
}

// write takes bytes of a value, which may lie outside of all parts.
func (o *outliner) write(p []byte, text bool) {
	if o.part == none || o.muted > 0 || len(p) == 0 {
		return
	}
	_, _ = o.hash.Write(p)
	o.fingerprints.write(p)
	o.fed = true
	if text && o.part == Message {
		switch {
		case len(o.Messages) == 0:
			o.text.write(p, TaskLetters)
		case o.textLength < len(o.texts):
			o.text.write(p, AnswerLetters)
		}
	}
}

// ended follows each value, at its depth.
func (o *outliner) ended(depth int) {
	switch {
	case o.muted == depth+1:
		o.muted = 0
	case o.part == none:
		return
	case o.fed:
		_, _ = o.hash.Write(separator)
		o.fingerprints.write(separator)
		o.fed = false
	}
	if hash, ok := o.text.end(); ok {
		switch {
		case len(o.Messages) > 0:
			o.texts[o.textLength] = hash
			o.textLength++
		case len(o.Tasks) < maxTasks:
			o.Tasks = append(o.Tasks, hash)
		}
	}
	if o.part == none || depth != o.depth {
		return
	}
	f := o.part
	o.part = none
	switch f {
	case Tools:
		if o.Tools = o.hash.Sum64(); slices.Contains(emptyLists, o.Tools) {
			o.Tools = 0
		}
		o.fingerprints.end(false)
	case Instructions:
		o.Instructions = mix(o.Instructions, o.hash.Sum64())
		o.fingerprints.end(false)
	case Message:
		o.message()
	}
}

// maxTasks bounds the texts of a first message.
const maxTasks = 16

func (o *outliner) message() {
	at := o.at
	o.at++
	role := string(o.role)
	switch role {
	case "system", "developer":
		o.Instructions = mix(o.Instructions, o.hash.Sum64())
		o.fingerprints.end(false)
		if len(o.Messages) == 0 {
			o.Tasks = o.Tasks[:0]
		}
		return
	}
	model := slices.Contains(modelRoles, role)
	if model && len(o.Messages) == 0 {
		o.Tasks = o.Tasks[:0]
	}
	if len(o.Messages) == cap(o.Messages) {
		o.Messages = slices.Grow(o.Messages, max(16, 3*len(o.Messages)))
	}
	if len(o.Messages) < maxMessages {
		o.Messages = append(o.Messages, MessageHash{o.hash.Sum64(), at, model, o.texts})
		o.fingerprints.end(true)
	}
}

// modelRoles are the roles of messages that a model said, and the types of such items.
var modelRoles = []string{"assistant", "model", "CHATBOT", "function_call", "reasoning", "custom_tool_call"}

// value takes a scalar that the table names. write does not get it.
func (o *outliner) value(f Field, v value) {
	switch f {
	case CacheKey:
		o.CacheKey = mix(o.CacheKey, maphash.Bytes(hashSeed, v.bytes))
		o.Marked, o.MarkedMessages = true, maxMessages // the gateway marks all for Claude
		return
	case CacheLife:
		o.CacheLife = string(v.bytes)
		return
	case PreviousResponse:
		o.PreviousResponse = string(v.bytes)
		return
	case Role:
		o.role = append(o.role[:0], v.bytes...)
	case MediaType:
		switch string(v.bytes) {
		case "text", "input_text", "output_text", "message":
			return // what a bare text stands for
		case "function_call", "custom_tool_call", "reasoning":
			o.role = append(o.role[:0], v.bytes...)
		}
	}
	o.write(v.bytes, false)
}

// mix is the hash of two hashes.
func mix(a, b uint64) uint64 { return maphash.Comparable(hashSeed, [2]uint64{a, b}) }

// How many letters and digits of a text are hashed: of the task of a sub-agent, and of a
// model's answer.
const (
	TaskLetters   = 256
	AnswerLetters = 64
)

// minLetters is how many letters a text must have: shorter texts are equal by chance.
const minLetters = 16

// textHash hashes the first ASCII letters and digits of a text, which are the same
// however JSON escapes the rest of it.
type textHash struct {
	letters []byte
	escaped int // bytes of an escape that may follow, less one for the first; 0 outside
}

// write takes the next bytes of a JSON string. limit letters count.
func (t *textHash) write(p []byte, limit int) {
	for len(t.letters) < limit && len(p) > 0 {
		if t.escaped == 0 {
			p = t.plain(p, limit)
			continue
		}
		c := p[0]
		p = p[1:]
		switch {
		case t.escaped > 2:
			t.escaped--
		case t.escaped == 1 && c == 'u':
			t.escaped = 5
		default:
			t.escaped = 0
		}
	}
}

// plain takes bytes up to an escape, and returns what follows.
func (t *textHash) plain(p []byte, limit int) []byte {
	n := len(t.letters)
	letters := slices.Grow(t.letters, limit-n)[:limit]
	for i, c := range p {
		if c == '\\' {
			t.letters, t.escaped = letters[:n], 1
			return p[i+1:]
		}
		letters[n] = c
		if n += letterCount[c]; n == limit {
			break
		}
	}
	t.letters = letters[:n]
	return nil
}

// letterCount is 1 of ASCII letters and digits: a branch would be mispredicted at the
// end of each word.
var letterCount [256]int

func init() {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") {
		letterCount[c] = 1
	}
}

func (t *textHash) end() (hash uint64, ok bool) {
	if ok = len(t.letters) >= minLetters; ok {
		hash = maphash.Bytes(hashSeed, t.letters)
	}
	t.letters, t.escaped = t.letters[:0], 0
	return hash, ok
}

// TextHash returns the hash of a text as outlines have it, false if the text is too short
// to tell it from others. Only the first ASCII letters and digits count.
func TextHash(text string, letters int) (hash uint64, ok bool) {
	var t textHash
	for i := 0; i < len(text) && len(t.letters) < letters; i++ {
		if c := text[i]; c != '\\' {
			t.write([]byte{c}, letters)
		}
	}
	return t.end()
}

// messagesIn is a list of messages in a request, or a text in its place.
func messagesIn(list string) Table {
	return Table{list: Message, list + ".#": Message, list + ".#.role": Role}
}

// cacheControl is how a part says that the provider shall cache what ends with it, as
// Anthropic has it.
var cacheControl = Table{"cache_control": CacheMark, "cache_control.ttl": CacheLife}

// openAICache is how a request of OpenAI's chooses the cache.
var openAICache = Table{"prompt_cache_key": CacheKey, "prompt_cache_retention": CacheLife}
