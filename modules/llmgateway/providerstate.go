package llmgateway

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// targetsWithState returns the targets that may have what the request names: all targets if
// the request names nothing, else the account that serves the client's calls of the target, the
// organisation's own account before the platform's.
func (c *call) targetsWithState(targets []routing.Target) ([]routing.Target, error) {
	field := c.stored.Field
	if field == "" {
		return targets, nil
	}
	for _, t := range targets {
		if t.Name != targets[0].Name {
			return nil, plugins.Unsupported(field, "'%s' names what one provider keeps: name that one alone, as in '%s'.%s",
				field, targets[0].Name, c.stored.Hint)
		}
	}
	return targets[:1], nil
}

// shares reports whether others than the organisation use the account.
func (c *call) shares(account *providers.Account) bool {
	return c.h.site.App.Money().Shares(c.exchange.Record.Org, account)
}

// allow refuses what an organisation must not ask of an account: models that the key may not
// call; if the call is bounded, fields beside the documented schema and answers that cannot be
// charged; and if others use the account, what it keeps for them.
func (c *call) allow(t routing.Target) error {
	if err := c.key.CheckModels(c.input.boundRequest(), t.Account.Label); err != nil {
		return err
	}
	if c.bounded(t) {
		if c.dialect.OfResponses() {
			if err := translate.Validate(c.input.body); err != nil {
				return err
			}
		}
		if err := c.input.boundRequest().Check(); err != nil {
			return err
		}
	}
	return c.allowStored(t.Account, len(c.stored.IDs) > 0 && (c.route.native || c.speaks(t, c.dialect)))
}

// allowStored refuses what an account that others use may keep for them. native: the account gets the
// request as it is.
func (c *call) allowStored(account *providers.Account, native bool) error {
	if len(c.stored.IDs) == 0 || !c.shares(account) {
		return nil
	}
	if !native && c.stored.Field != "" {
		return nil // nothing is sent: the translation has no place for it
	}
	given := c.given(account)
	for _, named := range c.stored.IDs {
		if (native || !named.Native) && !named.Reasoning && !given(named) {
			return named.NotYours(account.Label, c.stored.Hint)
		}
	}
	return nil
}

// given returns a function that reports whether an account gave an id to the organisation. The
// memory tells, or a record, because the memory may have been lost.
func (c *call) given(account *providers.Account) func(bound.StateID) bool {
	var ids []string
	for _, named := range c.stored.IDs {
		ids = append(ids, named.ID)
	}
	given := c.remembered(c.payer(), ids)
	return func(named bound.StateID) bool {
		return given[named.ID] != "" || named.Answer && c.exchange.Answered(named.ID, account.BaseURL)
	}
}

// withoutUnknownReasoning leaves out reasoning that a provider would look up by its id, and that
// the provider did not give to the organisation: another provider may have thought it.
func (n *native) withoutUnknownReasoning(body []byte) []byte {
	a, c := n.a, n.a.call
	if !slices.ContainsFunc(c.stored.IDs, func(named bound.StateID) bool { return named.Reasoning }) || !c.shares(a.target.Account) {
		return body
	}
	given := c.given(a.target.Account)
	var unknown []string
	for _, named := range c.stored.IDs {
		if named.Reasoning && !given(named) {
			unknown = append(unknown, named.ID)
			a.warnings = append(a.warnings, named.Param+": reasoning that "+a.target.Account.Label+" did not give you, left out")
		}
	}
	if unknown == nil {
		return body
	}
	return history.EditArray(body, "input", func(_ int, item gjson.Result) string {
		if item.Get("type").Str == "reasoning" && slices.Contains(unknown, item.Get("id").Str) {
			return ""
		}
		return item.Raw
	})
}

// ended remembers who owns the ids of a passed answer, and adds the answer to its
// conversation. body is nil if the answer is a stream: the record has the stream.
func (n *native) ended(body []byte) {
	a, c := n.a, n.a.call
	recorded := a.x.Kept.Content(&a.x.Record).Response
	names := c.dialect == plugins.Responses || c.dialect == plugins.Messages ||
		c.dialect == plugins.Chat && (bytes.Contains(body, []byte(`"audio"`)) || bytes.Contains(recorded.Data, []byte(`"audio"`)))
	shares := names && c.shares(a.target.Account)
	if !shares && c.continuation.state.ConversationID == "" {
		return
	}
	if body == nil {
		body, _ = observe.Transcript(c.dialect).Stored(recorded.Type, recorded.Data)
	}
	if c.dialect == plugins.Responses {
		a.extend(body)
	}
	if !shares {
		return
	}
	response := a.x.Info().ResponseID
	var found bound.State
	if c.dialect != plugins.Chat { // an answer of Chat Completions cannot be continued by its id
		found.IDs = []bound.StateID{{ID: response}}
	}
	for _, id := range gjson.GetManyBytes(body, "output.#.id", "container.id", "thread.id") {
		found.Add("", id)
	}
	found.AddAnswer(c.dialect, gjson.ParseBytes(body))
	var ids []string
	for _, named := range found.IDs {
		if named.ID != "" {
			ids = append(ids, named.ID)
		}
	}
	c.remember(c.payer(), []byte(response), ids)
}
