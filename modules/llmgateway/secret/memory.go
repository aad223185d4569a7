package secret

import (
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/weirhq/weir/storage/shared"
)

// Memory hides what it remembers, and for whom, from the shared.Memory behind it: the keys there
// are HMACs, and the values are encrypted.
type Memory struct {
	values func() shared.Memory
	mac    []byte
	// AEAD encrypts what nodes share.
	AEAD cipher.AEAD
}

// Owner is who a key of a Memory belongs to. A provider may use the id of a call again, in another
// conversation.
type Owner struct{ Org, AuthHash, User string }

// Key returns an HMAC of a text. The HMAC differs for each owner and purpose.
func (m *Memory) Key(purpose string, o Owner, text []byte) (key shared.Key) {
	h := hmac.New(sha256.New, m.mac)
	for _, field := range []string{purpose, o.Org, o.AuthHash, o.User} {
		h.Write(binary.AppendUvarint(nil, uint64(len(field))))
		h.Write([]byte(field))
	}
	h.Write(text)
	h.Sum(key[:0])
	return key
}

func (m *Memory) keys(o Owner, ids []string) []shared.Key {
	keys := make([]shared.Key, len(ids))
	for i, id := range ids {
		keys[i] = m.Key("id", o, []byte(id))
	}
	return keys
}

// Put remembers a value under ids.
func (m *Memory) Put(ctx context.Context, o Owner, value []byte, ids []string) {
	m.values().Put(ctx, m.Key("value", o, value), m.AEAD.Seal(nil, nil, value, m.binding(o)), m.keys(o, ids))
}

// Get returns the values that are remembered, by their ids.
func (m *Memory) Get(ctx context.Context, o Owner, ids []string) map[string]string {
	values := make(map[string]string)
	for i, value := range m.values().Get(ctx, m.keys(o, ids)) {
		if value == nil {
			continue
		}
		if plain, err := m.AEAD.Open(nil, nil, value, m.binding(o)); err == nil { // another secret cannot
			values[ids[i]] = string(plain)
		}
	}
	return values
}

// binding lets only its owner open a value.
func (m *Memory) binding(o Owner) []byte {
	k := m.Key("owner", o, nil)
	return k[:]
}
