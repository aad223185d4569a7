package llmgateway

import (
	"context"

	"github.com/weirhq/weir/modules/llmgateway/secret"
)

// ownerMemory is what is remembered for an owner beyond a call.
type ownerMemory struct {
	secrets func() (*secret.Secrets, error) // without them, nothing is remembered
	owner   secret.Owner
}

// memoryOfCaller has what is remembered for a user of a key.
func (c *call) memoryOfCaller() ownerMemory {
	r := &c.exchange.Record
	return ownerMemory{c.h.secrets, secret.Owner{Org: r.Org, AuthHash: r.AuthHash, User: r.UserID}}
}

// memoryOfOrg has the ids that the organisation was given from accounts that it shares,
// whichever key and user it was.
func (c *call) memoryOfOrg() ownerMemory {
	return ownerMemory{c.h.secrets, secret.Owner{Org: c.exchange.Record.Org}}
}

// get returns what ids name, by id.
func (m ownerMemory) get(ctx context.Context, ids []string) map[string]string {
	if len(ids) == 0 {
		return nil
	}
	secrets, err := m.secrets()
	if err != nil {
		return nil
	}
	return secrets.Get(ctx, m.owner, ids)
}

// put keeps a value under ids, over the end of the call.
func (m ownerMemory) put(ctx context.Context, value []byte, ids []string) {
	if len(ids) == 0 {
		return
	}
	if secrets, err := m.secrets(); err == nil {
		secrets.Put(context.WithoutCancel(ctx), m.owner, value, ids)
	}
}
