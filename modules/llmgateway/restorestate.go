package llmgateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// continuation is the conversation that a call of Responses continues.
type continuation struct {
	state            translate.State
	newItems         []string          // the client's own items of the input
	conversationRead storage.Timestamp // ChangedAt of the conversation that the call continues
}

// restoreState puts what a request of Responses refers to into its input. References that are
// not found stay. The id of a response stays, too, if the request names the one provider that
// gave the id: the provider has the response.
func (c *call) restoreState(targets []routing.Target) error {
	references := bytes.Contains(c.input.body, []byte(`"item_reference"`))
	field, id := c.input.earlier()
	if field == "previous_response_id" {
		if _, ours := history.RecordOf(id); !ours && c.speakResponses(targets) {
			field = ""
		}
	}
	if field == "" && !references {
		return nil
	}
	store, err := c.h.responses.Store(&c.exchange.Record)
	if err != nil {
		return err
	}
	var items []string
	switch items, err = c.earlierItems(store, field, id); {
	case errors.Is(err, history.ErrNotFound) && field == "conversation": // a provider might answer without it
		return history.Error(err, "Conversation", id)
	case errors.Is(err, history.ErrNotFound) && references:
		field = ""
	case errors.Is(err, history.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	earlier, joined := len(items), 0
	for _, item := range items {
		joined += len(item)
	}
	newItems := history.InputOf(c.input.body)
	resolved, err := store.Resolve(c.ctx, newItems, maxRequest-len(c.input.body)-joined, func(ctx context.Context, added int64) error {
		return c.received.Grow(ctx, int64(joined)+added)
	})
	if err != nil {
		return err
	}
	c.continuation.newItems = resolved
	if items = append(items, resolved...); field == "" && slices.Equal(resolved, newItems) {
		return nil
	}
	if c.input.sent, err = history.SetItems(c.input.body, "input", items); err != nil {
		return err
	}
	if field != "" {
		if c.input.sent, err = sjson.DeleteBytes(c.input.sent, field); err != nil {
			return err
		}
	}
	if earlier > 0 {
		c.input.names = namesBehind(field, earlier, len(newItems))
	}
	return c.checkSize(c.input.sent, "input")
}

// earlierItems returns the items before the input of the call, or history.ErrNotFound.
func (c *call) earlierItems(store *history.Store, field, id string) ([]string, error) {
	maxItems := maxRequest - len(c.input.body)
	switch field {
	case "previous_response_id":
		if history.ConversationOf(c.input.body) != "" {
			return nil, plugins.Invalid("conversation", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")
		}
		items, err := store.History(c.ctx, id, maxItems, c.received.Grow)
		if err == nil {
			c.continuation.state.PreviousResponseID = id
		}
		return items, err
	case "conversation":
		measured, err := store.Conversation(c.ctx, id, storage.Measured)
		switch {
		case err != nil:
			return nil, err
		case measured.Size > int64(maxItems):
			return nil, plugins.Invalid("conversation", "The conversation '%s' is too long: delete items, or begin another one.", id)
		}
		if err := c.received.Grow(c.ctx, measured.Size); err != nil {
			return nil, err
		}
		conversation, err := store.Conversation(c.ctx, id, storage.AllItems)
		if err != nil {
			return nil, err
		}
		items := history.ItemsOf(conversation)
		c.continuation.state.ConversationID, c.continuation.conversationRead = id, conversation.ChangedAt
		if r := &c.exchange.Record; r.SessionID == "" {
			r.SessionID = id
		}
		if c.dialect == plugins.Responses && !c.keeps() {
			c.controls.Warnings = append(c.controls.Warnings, "conversation: not extended, for the response is not stored")
		}
		return items, nil
	}
	return nil, nil
}

// extend adds the response and its new input to the conversation that the call continues,
// before the client can see the end of the response.
func (a *attempt) extend(response []byte) {
	c := a.call
	if c.continuation.state.ConversationID == "" || a.extended || !c.keeps() {
		return
	}
	if status := gjson.GetBytes(response, "status").Str; status != "completed" && status != "incomplete" {
		return
	}
	a.extended = true
	r := &a.x.Record
	store, err := c.h.responses.Store(r)
	if err == nil {
		err = store.Extend(c.ctx, c.continuation.state.ConversationID, c.continuation.conversationRead, r.ID, c.continuation.newItems, history.Output(response))
	}
	if err != nil {
		c.h.site.Logger.Error("a conversation lacks a turn", zap.String("conversation", c.continuation.state.ConversationID), zap.Stringer("call", r.ID), zap.Error(err))
	}
}

// speakResponses reports whether all targets are one that speaks Responses itself.
func (c *call) speakResponses(targets []routing.Target) bool {
	one := targets[0]
	return c.at(one).speaks(c.dialect) && !slices.ContainsFunc(targets, func(t routing.Target) bool { return t.Name != one.Name })
}

// namesBehind returns the client's names of the items of an input. Items of an earlier response
// or conversation, which the field names, stand before the client's own items.
func namesBehind(field string, earlier, newItems int) *translate.Names {
	names := new(translate.Names)
	for range earlier {
		names.Items = append(names.Items, translate.ItemName{Path: field})
	}
	for i := range newItems {
		names.Items = append(names.Items, translate.ItemName{Path: fmt.Sprintf("input[%d]", i)})
	}
	return names
}

// keeps reports whether the response can be had later.
func (c *call) keeps() bool {
	r := &c.exchange.Record
	return c.dialect == plugins.Responses && !r.RequestOmitted && !r.ResponseOmitted && !r.RequestTruncated &&
		gjson.Get(plugins.View(c.input.body), "store").Type != gjson.False
}

// stateNotFound returns the error for a request that names what neither the gateway nor the
// provider keeps.
func (at candidate) stateNotFound() error {
	c := at.call
	field := c.stored.Field
	if field == "previous_response_id" {
		return plugins.Invalid(field, "Previous response with id '%.128s' not found.", gjson.Get(plugins.View(c.input.body), field).Str).
			WithCode("previous_response_not_found")
	}
	if field == "conversation" {
		return history.Error(history.ErrNotFound, "Conversation", history.ConversationOf(c.input.body))
	}
	return plugins.Unsupported(field, "'%s' names what a provider keeps, and %s keeps nothing.%s", field, at.target.Account.Label, c.stored.Hint)
}
