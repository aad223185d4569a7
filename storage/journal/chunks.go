package journal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	mathrand "math/rand/v2"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// An agent sends its whole conversation with every turn. So a large request is cut into
// chunks where its content says so. A chunk that an earlier entry in the same file has is
// written as a reference. A file can be read without other files.
const (
	// shareSize is the size from which a request is cut.
	shareSize = 4 << 10
	// maxShare is the size up to which a request is cut, so that no length overflows.
	maxShare = 1 << 30
	// A chunk ends after a brace, since messages do, within these bounds. Text without
	// braces ends, from minText on, where the gear hash of the last 64 bytes has ten zeros.
	minChunk  = 512
	minText   = 2 << 10
	maxChunk  = 8 << 10
	chunkMask = 1023 << 54
	// maxChunks bounds the memory of a table to 12 MB. A full segment of the default size
	// has no more chunks.
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
	mu     sync.Mutex // guards index and chunks
	mac    cipher.AEAD
	index  map[chunkID]int32
	chunks []chunk // the first is none
}

// chunkID is GMAC of a chunk, with a key that the table makes for itself and nothing
// stores, and the organisation as nonce. So nobody can make two chunks with the same
// chunkID, and organisations share nothing.
type chunkID [16]byte

type chunk struct {
	id   chunkID
	at   uint64 // address
	size uint32
	// next is the chunk that followed this chunk last, 0 if no chunk did. A request that
	// goes on as the request before need not be searched for the ends of chunks.
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

// takes reports whether a request is cut.
func (t *chunkTable) takes(request []byte) bool {
	return t != nil && len(request) >= shareSize && len(request) <= maxShare
}

// splitter cuts requests. It keeps its memory from one request to the next.
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
	index int32 // its index in the table, 0 if it is not there
	// at is where it stands among the literal bytes, if it is not.
	at, size uint32
}

// split finds what a table knows of a request of an organisation.
func (s *splitter) split(t *chunkTable, org string, body []byte) {
	s.extents, s.cuts, s.literal, s.hasParent, s.parent = s.extents[:0], s.cuts[:0], 0, false, 0
	sum := sha256.Sum256([]byte(org))
	copy(s.nonce[:], sum[:])
	index := int32(0)
	for len(body) > 0 {
		i, c := t.after(index)
		if i == 0 || int(c.size) > len(body) || s.hash(t, body[:c.size]) != c.id {
			n := cut(body)
			c = chunk{id: s.hash(t, body[:n]), size: uint32(n)}
			if i = 0; n >= minChunk {
				if found, there := t.find(c.id); found > 0 {
					i, c = found, there
				}
			}
		}
		index = i
		s.add(i, &c)
		body = body[c.size:]
	}
}

func (s *splitter) hash(t *chunkTable, b []byte) chunkID {
	t.mac.Seal(s.scratch[:0], s.nonce[:], nil, b)
	return s.scratch
}

// add adds the next chunk of a request.
func (s *splitter) add(index int32, c *chunk) {
	s.cuts = append(s.cuts, splitChunk{id: c.id, index: index, at: uint32(s.literal), size: c.size})
	if index == 0 {
		s.extents.own(uint64(c.size))
		s.literal += int(c.size)
		return
	}
	s.extents.share(c.at, uint64(c.size))
	if !s.hasParent || c.owner > s.parent {
		s.parent, s.hasParent = c.owner, true
	}
}

// learn enters the chunks of the request that was split last. The literal bytes of the
// request now stand at the address at, in the entry owner.
func (t *chunkTable) learn(s *splitter, at uint64, owner uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := int32(0)
	for _, c := range s.cuts {
		i := c.index
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

// A request that shares bytes with others in its file is kept in two fields of its
// entry's content: the bytes that are its own, and its extents. The extents begin with the
// request's checksum (CRC-32C), which covers shared bytes too, and the request's size (all
// further numbers are varints). Each extent has the number of own bytes, and the number of
// shared bytes after them and their address.
//
// An address in a raw segment is an offset. In a sealed segment it is the number of a block
// (upper 32 bits) and an offset in the decoded frame of what was asked (lower 32 bits).
type extent struct{ literal, shared, at uint64 }

// extentList are the extents of a request from its beginning to some place in it.
type extentList []extent

// own adds bytes that are the request's own.
func (l *extentList) own(size uint64) {
	if n := len(*l); n > 0 && (*l)[n-1].shared == 0 {
		(*l)[n-1].literal += size
		return
	}
	*l = append(*l, extent{literal: size})
}

// share adds bytes that stand at an address.
func (l *extentList) share(at, size uint64) {
	if n := len(*l); n > 0 {
		last := &(*l)[n-1]
		if last.shared == 0 {
			last.at = at
		}
		if last.at+last.shared == at {
			last.shared += size
			return
		}
	}
	*l = append(*l, extent{shared: size, at: at})
}

// layout is what a stored content has beside the fields of storage.Content.
type layout struct{ extents []byte }

// extentsField is the number of the extents among the fields of contentWire.
const extentsField = requestData + 2

var layoutWire = message[layout]{extentsField: func(l *layout) any { return &l.extents }}

// appendShared appends the extents of a request with its checksum and size, and the head of
// the field of the request's own bytes. The caller appends the own bytes.
func appendShared(b []byte, extents extentList, sum uint32, size, own uint64) []byte {
	length := 4 + protowire.SizeVarint(size)
	for _, e := range extents {
		length += protowire.SizeVarint(e.literal) + protowire.SizeVarint(e.shared) + protowire.SizeVarint(e.at)
	}
	b = appendField(b, extentsField, length)
	b = order.AppendUint32(b, sum)
	b = protowire.AppendVarint(b, size)
	for _, e := range extents {
		b = protowire.AppendVarint(protowire.AppendVarint(b, e.literal), e.shared)
		b = protowire.AppendVarint(b, e.at)
	}
	return appendField(b, requestData, int(own))
}

// appendField appends the head of a field of this size.
func appendField(b []byte, n protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.BytesType), uint64(size))
}

// extentReader reads extents.
type extentReader struct {
	sum  uint32
	size uint64
	rest []byte
}

func readExtents(b []byte) (x extentReader, err error) {
	if len(b) < 4 {
		return x, errDamaged
	}
	x = extentReader{sum: order.Uint32(b), rest: b[4:]}
	x.size, err = x.number()
	return x, err
}

func (x *extentReader) number() (uint64, error) {
	n, size := protowire.ConsumeVarint(x.rest)
	if size < 0 {
		return 0, errDamaged
	}
	x.rest = x.rest[size:]
	return n, nil
}

// next returns the next extent. It is only called while there is a rest.
func (x *extentReader) next() (e extent, err error) {
	for _, n := range []*uint64{&e.literal, &e.shared, &e.at} {
		if *n, err = x.number(); err != nil {
			return e, err
		}
	}
	return e, nil
}

// assemble appends to b the request that has these extents and own bytes. b must be empty.
// shared appends what stands at an address.
func assemble(b, extents, own []byte, shared func(b []byte, at, size uint64) ([]byte, error)) ([]byte, error) {
	x, err := readExtents(extents)
	if err != nil {
		return b, err
	}
	for len(x.rest) > 0 {
		e, err := x.next()
		if err != nil {
			return b, err
		}
		if e.literal > uint64(len(own)) {
			return b, errDamaged
		}
		b = append(b, own[:e.literal]...)
		own = own[e.literal:]
		if e.shared == 0 {
			continue
		}
		if b, err = shared(b, e.at, e.shared); err != nil {
			return b, err
		}
	}
	if uint64(len(b)) != x.size || crc32.Checksum(b, castagnoli) != x.sum {
		return b, errDamaged
	}
	return b, nil
}
