package llmgateway

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage/shared"
)

// The node that has answered the last turn of a conversation knows from the lineage of calls whose
// cache has the conversation. Nodes that share something tell each other: under the fingerprint of a
// request, which the next one begins with.

// maxNewMessages bounds the messages that a turn adds to the turn before. Other nodes take a conversation
// with more for a new one.
const maxNewMessages = 16

// affinity is what the nodes tell each other of the session of a call.
type affinity struct {
	nodes   shared.Affinity
	secrets *secret.Secrets
	owner   secret.Owner
	session string
	// fingerprints are those of the request: of its beginning up to each message, and of all.
	fingerprints func() []observe.Fingerprint
	life         time.Duration // how long a provider's cache may keep the request
}

// affinity returns nil if the nodes share nothing, or if the call is no conversation.
func (c *call) affinity() *affinity {
	nodes, outline := c.h.affinity(), c.input.reader.Outline()
	if c.nodes != nil || nodes == nil || outline == nil {
		return c.nodes
	}
	secrets, err := c.h.secrets()
	if err != nil {
		return nil
	}
	c.nodes = &affinity{
		nodes: nodes, secrets: secrets, owner: c.memoryOfCaller().owner, session: c.exchange.Record.SessionID, life: lineage.Life(outline),
		fingerprints: sync.OnceValue(func() []observe.Fingerprint { return observe.Fingerprints(c.dialect, c.input.body) }),
	}
	return c.nodes
}

// find returns the target whose provider's cache has the beginning of the call, as key hides it, and how
// many tokens the cache has, as other nodes tell. It returns zeros if none has. f may be nil.
func (f *affinity) find(ctx context.Context) (target shared.Key, tokens int64) {
	if f == nil {
		return target, 0
	}
	earlier := f.fingerprints()
	earlier = earlier[:max(len(earlier)-1, 0)]
	earlier = earlier[max(len(earlier)-maxNewMessages, 0):]
	var keys []shared.Key
	for _, e := range slices.Backward(earlier) {
		keys = append(keys, f.key("affinity", e[:]))
	}
	value, _ := f.nodes.Recall(ctx, keys)
	if len(value) != len(target)+8 {
		return target, 0
	}
	return shared.Key(value), int64(binary.BigEndian.Uint64(value[len(target):]))
}

// tell tells other nodes that the provider of a target has the call in its cache, and the call's input
// tokens. f may be nil.
func (f *affinity) tell(t routing.Target, input plugins.Count) {
	if f == nil || !input.Valid {
		return
	}
	fingerprints := f.fingerprints()
	if fingerprints == nil {
		return
	}
	target := f.target(t)
	f.nodes.Remember(f.key("affinity", fingerprints[len(fingerprints)-1][:]), binary.BigEndian.AppendUint64(target[:], uint64(input.N)), f.life)
}

// target is how nodes know a target: two arms of one model are two.
func (f *affinity) target(t routing.Target) shared.Key {
	circuit := t.Circuit
	return f.key("affinity target", fmt.Appendf(circuit[:], "%s", t.Arm()))
}

// key hides a text of the session.
func (f *affinity) key(purpose string, text []byte) shared.Key {
	return f.secrets.Key(purpose, f.owner, fmt.Appendf(nil, "%s %s", text, f.session))
}
