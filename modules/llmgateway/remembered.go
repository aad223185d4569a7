package llmgateway

import (
	"context"

	"github.com/weirhq/weir/modules/llmgateway/secret"
)

// caller owns what is remembered for a user of a key.
func (c *call) caller() secret.Owner {
	r := &c.exchange.Record
	return secret.Owner{Org: r.Org, AuthHash: r.AuthHash, User: r.UserID}
}

// payer owns the ids that the organisation was given from accounts that it shares,
// whichever key and user it was.
func (c *call) payer() secret.Owner { return secret.Owner{Org: c.exchange.Record.Org} }

// remembered returns what an owner's ids name, by id.
func (c *call) remembered(o secret.Owner, ids []string) map[string]string {
	if len(ids) == 0 {
		return nil
	}
	secrets, err := c.h.secrets()
	if err != nil {
		return nil
	}
	return secrets.Get(c.ctx, o, ids)
}

// remember keeps a value for an owner under ids, over the end of the call.
func (c *call) remember(o secret.Owner, value []byte, ids []string) {
	if len(ids) == 0 {
		return
	}
	if secrets, err := c.h.secrets(); err == nil {
		secrets.Put(context.WithoutCancel(c.ctx), o, value, ids)
	}
}
