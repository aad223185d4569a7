package llmgateway

import (
	"context"

	"github.com/weirhq/weir/modules/llmgateway/reasoning"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins/translate"
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

// remember keeps the output of a response for the reasoning that led to its calls.
func (a *attempt) remember(outputs []*translate.Output) {
	if !a.x.Record.ResponseOmitted {
		text, callIDs := reasoning.Output(outputs)
		a.call.remember(a.call.caller(), text, callIDs)
	}
}

// restoreReasoning gives the calls of earlier turns back the reasoning that led to them. The
// turns must be the attempt's own.
func (a *attempt) restoreReasoning(turns []translate.Turn) {
	reasoning.Memory{
		Get:    func(callIDs []string) map[string]string { return a.call.remembered(a.call.caller(), callIDs) },
		Unseal: a.unseal,
	}.Restore(turns)
}

// seal seals reasoning for the provider of the attempt.
func (a *attempt) seal(content string) string {
	return a.secrets.Seal(a.target.Account.Provider, content)
}

// unseal is the reverse of seal.
func (a *attempt) unseal(text string) (content string, ok bool) {
	return a.secrets.Open(a.target.Account.Provider, text)
}
