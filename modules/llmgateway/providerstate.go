package llmgateway

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
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

// withoutUnknownReasoning leaves out reasoning that a provider would look up by its id, and that
// the provider did not give to the organisation: another provider may have thought it.
func (n *native) withoutUnknownReasoning(body []byte) []byte {
	a, c := n.a, n.a.call
	if !slices.ContainsFunc(c.stored.IDs, func(named bound.StateID) bool { return named.Reasoning }) || !a.shares() {
		return body
	}
	given := a.idChecker()
	var unknown []string
	for _, named := range c.stored.IDs {
		if named.Reasoning && !given(named) {
			unknown = append(unknown, named.ID)
			a.client.warnings = append(a.client.warnings, named.Param+": reasoning that "+a.target.Account.Label+" did not give you, left out")
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

// keepAnswer remembers who owns the ids of a passed answer, and adds the answer to its
// conversation. body is nil if the answer is a stream: the record has the stream.
func (n *native) keepAnswer(body []byte) {
	a, c := n.a, n.a.call
	recorded := a.x.Kept.Content(&a.x.Record).Response
	names := c.dialect == plugins.Responses || c.dialect == plugins.Messages ||
		c.dialect == plugins.Chat && (bytes.Contains(body, []byte(`"audio"`)) || bytes.Contains(recorded.Data, []byte(`"audio"`)))
	shares := names && a.shares()
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
	c.memoryOfOrg().put(c.ctx, []byte(response), ids)
}
