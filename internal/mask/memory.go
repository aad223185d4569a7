package mask

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"slices"
	"sync"
)

// Conversations repeat with each turn what was said before. So the matches of the longer texts in
// JSON are remembered by a keyed hash of the text. The memory has neither texts nor values.

const (
	// minRemembered is the length from which a text takes longer to read than to hash, in bytes.
	minRemembered = 128
	// maxRemembered bounds how many texts and matches are remembered, twice: about 10 MB.
	maxRemembered = 1 << 16
	// maxMatches bounds the matches of a text that is remembered.
	maxMatches = 1 << 10
)

// textID is GMAC of a text, with a key that a Masker makes for itself and nothing stores. So nobody
// can make two texts with the same textID, and Maskers share nothing.
type textID [16]byte

// memory has two generations. The older one goes once the newer one is full.
type memory struct {
	mu           sync.Mutex // guards the rest
	newer, older map[textID][]span
	size         int // of newer: texts and matches
}

// remembered is the memory of all Maskers of the process, so that it is bounded.
var remembered memory

// newMAC returns nil where GODEBUG=fips140=only forbids GCM with a nonce: then every text is read.
func newMAC() cipher.AEAD {
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
	return mac
}

// find returns the matches of a text, and whether it is remembered.
func (m *memory) find(id textID) (matches []span, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if matches, ok = m.newer[id]; ok {
		return matches, true
	}
	if matches, ok = m.older[id]; ok { // what is in use stays
		m.add(id, matches)
	}
	return matches, ok
}

func (m *memory) remember(id textID, matches []span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(id, matches)
}

// add adds a text. The caller has locked mu.
func (m *memory) add(id textID, matches []span) {
	if m.size += 1 + len(matches); m.size > maxRemembered || m.newer == nil {
		m.older, m.newer, m.size = m.newer, make(map[textID][]span), 1+len(matches)
	}
	m.newer[id] = matches
}

// textInJSON finds the matches in a text of JSON, or remembers them.
func (f *finder) textInJSON(raw []byte, base int) {
	if len(raw) < minRemembered || f.m.mac == nil {
		f.text(raw, base, true)
		return
	}
	f.m.mac.Seal(f.id[:0], f.nonce[:], nil, raw)
	if matches, ok := remembered.find(f.id); ok {
		for _, s := range matches {
			s.from, s.to = s.from+base, s.to+base
			f.spans = append(f.spans, s)
		}
		return
	}
	first := len(f.spans)
	f.ledBy = false
	f.text(raw, base, true)
	matches := slices.Clone(f.spans[first:])
	if f.ledBy || len(matches) > maxMatches {
		return
	}
	for i := range matches {
		matches[i].from -= base
		matches[i].to -= base
	}
	remembered.remember(f.id, matches)
}
