package llmgateway

import (
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage/shared"
)

// memory hides from the store's shared.Memory what is remembered, and of whom: keys
// are HMACs, and values are encrypted.
type memory struct {
	values func() shared.Memory // a reload may change where they are
	mac    []byte
	aead   cipher.AEAD
}

func newMemory(secret []byte, values func() shared.Memory) (*memory, error) {
	mac, err := hkdf.Key(sha256.New, secret, nil, "weir memory keys", sha256.Size)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(secret, "weir memory values")
	return &memory{values, mac, aead}, err
}

// owner is whose memory it is. Some providers use their ids of calls again, in other
// conversations.
type owner struct{ org, authHash, user string }

// key is an HMAC of text that means the same to this owner alone.
func (m *memory) key(purpose string, o owner, text []byte) (key shared.Key) {
	h := hmac.New(sha256.New, m.mac)
	for _, field := range []string{purpose, o.org, o.authHash, o.user} {
		h.Write(binary.AppendUvarint(nil, uint64(len(field))))
		h.Write([]byte(field))
	}
	h.Write(text)
	h.Sum(key[:0])
	return key
}

func (m *memory) keys(o owner, ids []string) []shared.Key {
	keys := make([]shared.Key, len(ids))
	for i, id := range ids {
		keys[i] = m.key("id", o, []byte(id))
	}
	return keys
}

// put remembers a value under ids.
func (m *memory) put(ctx context.Context, o owner, value []byte, ids []string) {
	m.values().Put(ctx, m.key("value", o, value), m.aead.Seal(nil, nil, value, m.binding(o)), m.keys(o, ids))
}

// get returns the values that are remembered, by their ids.
func (m *memory) get(ctx context.Context, o owner, ids []string) map[string]string {
	values := make(map[string]string)
	for i, value := range m.values().Get(ctx, m.keys(o, ids)) {
		if value == nil {
			continue
		}
		if plain, err := m.aead.Open(nil, nil, value, m.binding(o)); err == nil { // another secret cannot
			values[ids[i]] = string(plain)
		}
	}
	return values
}

// binding lets a value be opened for its owner alone.
func (m *memory) binding(o owner) []byte {
	k := m.key("owner", o, nil)
	return k[:]
}

func (c *call) owner() owner {
	r := &c.exchange.Record
	return owner{r.Org, r.AuthHash, r.UserID}
}

// remembered returns what an owner's ids name, by id.
func (c *call) remembered(o owner, ids []string) map[string]string {
	if len(ids) == 0 {
		return nil
	}
	m, err := c.h.memory()
	if err != nil {
		c.h.site.Logger.Error(unreadableSecret, zap.Error(err))
		return nil
	}
	return m.get(c.ctx, o, ids)
}

// remember keeps a value for an owner under ids, over the end of the call.
func (c *call) remember(o owner, value []byte, ids []string) {
	if len(ids) == 0 {
		return
	}
	m, err := c.h.memory()
	if err != nil {
		c.h.site.Logger.Error(unreadableSecret, zap.Error(err))
		return
	}
	m.put(context.WithoutCancel(c.ctx), o, value, ids)
}

// remember keeps the output of a response for the reasoning that led to its calls.
func (a *attempt) remember(outputs []*translate.Output) {
	if a.x.Record.ResponseOmitted {
		return
	}
	reasoned := false
	var ids []string
	output := []byte{'['}
	for _, o := range outputs {
		if o.JSON == nil { // it was open when the response failed
			continue
		}
		reasoned = reasoned || o.Sealed != ""
		if o.IsCall() && reasoned {
			ids = append(ids, o.CallID)
		}
		if len(output) > 1 {
			output = append(output, ',')
		}
		output = append(output, o.JSON...)
	}
	a.call.remember(a.call.owner(), append(output, ']'), ids)
}
