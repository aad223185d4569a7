package journal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	mathrand "math/rand/v2"
	"sync"
)

// An agent sends its whole conversation with every turn. So a large request is cut into
// chunks where its content says so, and what an entry before it in the same file has is
// written as a reference (extents.go). A file needs no other one to be read.
const (
	// shareSize is the size from which a request is cut.
	shareSize = 4 << 10
	// maxShare is the size up to which it is, so that no length overflows.
	maxShare = 1 << 30
	// A chunk ends behind a brace, since messages do, within these bounds. Text without
	// braces ends, from minText on, where the gear hash of the last 64 bytes has ten zeros.
	minChunk  = 512
	minText   = 2 << 10
	maxChunk  = 8 << 10
	chunkMask = 1023 << 54
	// maxChunks bounds the memory of a table to 12 MB. A full segment of the default size
	// has no more.
	maxChunks = 1 << 17
)

// gear is the table of FastCDC's rolling hash. https://www.usenix.org/conference/atc16/technical-sessions/presentation/xia
var gear = func() (t [256]uint64) {
	r := mathrand.New(mathrand.NewPCG(1, 2))
	for i := range t {
		t[i] = r.Uint64()
	}
	return t
}()

// cut returns the size of the chunk that b begins with.
func cut(b []byte) int {
	b = b[:min(len(b), maxChunk)]
	if len(b) <= minChunk {
		return len(b)
	}
	if i := bytes.IndexByte(b[minChunk:], '}'); i >= 0 {
		b = b[:minChunk+i+1]
	}
	if len(b) <= minText {
		return len(b)
	}
	var h uint64
	for _, c := range b[minText-64 : minText] {
		h = h<<1 + gear[c]
	}
	for i, c := range b[minText:] {
		h = h<<1 + gear[c]
		if h&chunkMask == 0 {
			return minText + i + 1
		}
	}
	return len(b)
}

// chunkTable knows the chunks of the requests in one file. It holds hashes alone.
type chunkTable struct {
	mu     sync.Mutex
	mac    cipher.AEAD
	index  map[chunkID]int32
	chunks []chunk // the first is none
}

// chunkID is GMAC of a chunk, with a key that the table makes for itself and nothing
// stores, and the organisation as nonce. So nobody can make two chunks that have the same
// one, and organisations share nothing.
type chunkID [16]byte

type chunk struct {
	id   chunkID
	at   uint64 // address
	size uint32
	// next is the chunk that followed this one last, 0 if none did: where a request
	// goes on as the one before, it need not be searched for the ends of chunks.
	next int32
	// owner is the ordinal of the entry that has the bytes.
	owner uint32
}

// newChunkTable returns nil where GODEBUG=fips140=only forbids GCM with a nonce: then
// requests are written whole.
func newChunkTable() *chunkTable {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil
	}
	mac, err := cipher.NewGCM(block)
	if err != nil {
		return nil
	}
	return &chunkTable{mac: mac, index: map[chunkID]int32{}, chunks: make([]chunk, 1)}
}

func (t *chunkTable) find(id chunkID) (int32, chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index[id]
	return i, t.chunks[i]
}

func (t *chunkTable) after(i int32) (int32, chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i = t.chunks[i].next
	return i, t.chunks[i]
}

// takes tells whether a request is cut.
func (t *chunkTable) takes(request []byte) bool {
	return t != nil && len(request) >= shareSize && len(request) <= maxShare
}

// splitter cuts requests. It keeps its memory from one to the next.
type splitter struct {
	extents extentList
	// cuts are the chunks of the request that the table can learn, in their order.
	cuts []splitChunk
	// literal is how many bytes are not in the file yet.
	literal int
	// parent is the last of the entries that the request shares bytes with.
	parent    uint32
	hasParent bool

	nonce   [12]byte
	scratch chunkID
}

type splitChunk struct {
	id    chunkID
	known int32 // its index in the table, 0 if it is not there
	// at is where it stands among the literal bytes, if it is not.
	at, size uint32
}

// split finds what a table knows of a request of an organisation.
func (s *splitter) split(t *chunkTable, org string, body []byte) {
	s.extents, s.cuts, s.literal, s.hasParent, s.parent = s.extents[:0], s.cuts[:0], 0, false, 0
	sum := sha256.Sum256([]byte(org))
	copy(s.nonce[:], sum[:])
	known := int32(0)
	for len(body) > 0 {
		i, c := t.after(known)
		if i == 0 || int(c.size) > len(body) || s.hash(t, body[:c.size]) != c.id {
			n := cut(body)
			c = chunk{id: s.hash(t, body[:n]), size: uint32(n)}
			if i = 0; n >= minChunk {
				if found, there := t.find(c.id); found > 0 {
					i, c = found, there
				}
			}
		}
		known = i
		s.add(i, &c)
		body = body[c.size:]
	}
}

func (s *splitter) hash(t *chunkTable, b []byte) chunkID {
	t.mac.Seal(s.scratch[:0], s.nonce[:], nil, b)
	return s.scratch
}

// add adds the next chunk of a request.
func (s *splitter) add(known int32, c *chunk) {
	s.cuts = append(s.cuts, splitChunk{id: c.id, known: known, at: uint32(s.literal), size: c.size})
	if known == 0 {
		s.extents.own(uint64(c.size))
		s.literal += int(c.size)
		return
	}
	s.extents.share(c.at, uint64(c.size))
	if !s.hasParent || c.owner > s.parent {
		s.parent, s.hasParent = c.owner, true
	}
}

// learn enters the chunks that were split last, the literal bytes of which now stand at
// an address, in an entry.
func (t *chunkTable) learn(s *splitter, at uint64, owner uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := int32(0)
	for _, c := range s.cuts {
		i := c.known
		if i == 0 && c.size >= minChunk {
			i = t.index[c.id] // of a request at the same time
			if i == 0 && len(t.chunks) < maxChunks {
				i = int32(len(t.chunks))
				t.chunks = append(t.chunks, chunk{id: c.id, at: at + uint64(c.at), size: c.size, owner: owner})
				t.index[c.id] = i
			}
		}
		if before > 0 && i > 0 {
			t.chunks[before].next = i
		}
		before = i
	}
}
