package llmgateway

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage/shared"
)

// The node that has answered the last turn of a conversation knows from the lineage of calls whose
// cache has the conversation. Nodes that share something tell each other: under the fingerprint of a
// request, which the next one begins with.

// maxNewMessages is how many messages a turn may have that the turn before did not have. A
// conversation with more counts as a new one at other nodes.
const maxNewMessages = 16

// warmElsewhere returns the target whose provider's cache has the beginning of the call, by its hash, and
// how many tokens it has, as other nodes tell. It returns zeros if none has.
func (c *call) warmElsewhere() (target shared.Key, tokens int64) {
	nodes, outline := c.h.affinity(), c.input.reader.Outline()
	if nodes == nil || outline == nil || !slices.ContainsFunc(outline.Messages, func(m observe.MessageHash) bool { return m.Model }) {
		return target, 0
	}
	earlier := observe.Fingerprints(c.dialect, c.input.body)
	earlier = earlier[:max(len(earlier)-1, 0)]
	earlier = earlier[max(len(earlier)-maxNewMessages, 0):]
	slices.Reverse(earlier)
	keys := make([]shared.Key, len(earlier))
	for i, f := range earlier {
		var err error
		if keys[i], err = c.affinityKey("affinity", f[:]); err != nil {
			return target, 0
		}
	}
	value, _ := nodes.Recall(c.ctx, keys)
	if len(value) != len(target)+8 {
		return target, 0
	}
	return shared.Key(value), int64(binary.BigEndian.Uint64(value[len(target):]))
}

// tellNodes tells other nodes which target has the call in its provider's cache.
func (c *call) tellNodes(a *attempt) {
	nodes, outline, input := c.h.affinity(), c.input.reader.Outline(), a.x.Record.Usage.Input
	if nodes == nil || outline == nil || !input.Valid {
		return
	}
	fingerprints := observe.Fingerprints(c.dialect, c.input.body)
	if fingerprints == nil {
		return
	}
	key, err := c.affinityKey("affinity", fingerprints[len(fingerprints)-1][:])
	if err != nil {
		return
	}
	target, err := c.sharedTarget(a.target)
	if err == nil {
		nodes.Remember(key, binary.BigEndian.AppendUint64(target[:], uint64(input.N)), lineage.Life(outline))
	}
}

// sharedTarget is how nodes know a target: two arms of one model are two.
func (c *call) sharedTarget(t routing.Target) (shared.Key, error) {
	circuit := t.Circuit
	return c.affinityKey("affinity target", fmt.Appendf(circuit[:], "%s", t.Arm()))
}

// affinityKey hides a text of the session of the call.
func (c *call) affinityKey(purpose string, text []byte) (shared.Key, error) {
	secrets, err := c.h.secrets()
	if err != nil {
		return shared.Key{}, err
	}
	return secrets.Key(purpose, c.caller(), fmt.Appendf(nil, "%s %s", text, c.exchange.Record.SessionID)), nil
}
