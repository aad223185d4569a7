package llmgateway

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// restoreState puts the conversation that a request of Responses refers to into its
// input. What is not found stays. So does the id of a response that the one provider
// which the request names has given: it has the response, too.
func (c *call) restoreState(targets []routing.Target) error {
	references := bytes.Contains(c.body, []byte(`"item_reference"`))
	previous := ""
	if bytes.Contains(c.body, []byte(`"previous_response_id"`)) {
		previous = gjson.Get(text(c.body), "previous_response_id").Str
	}
	if _, ours := stored.RecordOf(previous); previous != "" && !ours && c.speakResponses(targets) {
		previous = ""
	}
	if previous == "" && !references {
		return nil
	}
	store, err := c.h.stored(c.exchange.Record.Org, c.exchange.Record.UserID)
	if err != nil {
		return err
	}
	var items []string
	if previous != "" {
		switch items, err = store.History(c.ctx, previous, maxRequest-len(c.body)); {
		case err == nil:
			c.state.PreviousResponseID = strings.Clone(previous)
		case !errors.Is(err, stored.ErrNotFound):
			return err
		case !references:
			return nil
		}
	}
	earlier := len(items)
	own := stored.InputOf(c.body)
	resolved, err := store.Resolve(c.ctx, own)
	if err != nil {
		return err
	}
	if items = append(items, resolved...); earlier == 0 && slices.Equal(resolved, own) {
		return nil
	}
	if c.sent, err = sjson.SetRawBytes(c.body, "input", []byte("["+strings.Join(items, ",")+"]")); err != nil {
		return err
	}
	if c.state.PreviousResponseID != "" {
		if c.sent, err = sjson.DeleteBytes(c.sent, "previous_response_id"); err != nil {
			return err
		}
	}
	if earlier > 0 {
		c.names = namesBehind(earlier, len(own))
	}
	if err := c.hold(int64(len(c.body) + len(c.sent))); err != nil {
		return err
	}
	return c.h.checkSize(c.sent, "input")
}

// speakResponses reports whether all targets are one that speaks Responses itself.
func (c *call) speakResponses(targets []routing.Target) bool {
	one := targets[0]
	native, ok := one.Account.API.(translate.Native)
	if !ok || slices.ContainsFunc(targets, func(t routing.Target) bool { return t.Name() != one.Name() }) {
		return false
	}
	_, err := native.PrepareNative(c.ctx, plugins.Responses, []byte("{}"), translate.Target{Model: one.Model, BaseURL: one.Account.BaseURL, Key: one.Account.Key})
	return !errors.Is(err, errors.ErrUnsupported)
}

// namesBehind are what the client calls the items of an input that begins with so many
// earlier ones.
func namesBehind(earlier, own int) *translate.Names {
	names := new(translate.Names)
	for range earlier {
		names.Items = append(names.Items, translate.ItemName{Path: "previous_response_id"})
	}
	for i := range own {
		names.Items = append(names.Items, translate.ItemName{Path: fmt.Sprintf("input[%d]", i)})
	}
	return names
}

// keeps reports whether the response can be had later.
func (c *call) keeps() bool {
	r := &c.exchange.Record
	return c.dialect == plugins.Responses && !r.RequestOmitted && !r.ResponseOmitted && !r.RequestTruncated &&
		gjson.Get(text(c.body), "store").Type != gjson.False
}

// stateNotFound is the error of a request that refers to what is not kept here, and
// cannot be kept by the provider.
func (c *call) stateNotFound(label string) error {
	field := c.stored.field
	if field == "previous_response_id" {
		e := plugins.Invalid(field, "Previous response with id '%.128s' not found.", gjson.Get(text(c.body), field).Str)
		e.Code = "previous_response_not_found"
		return e
	}
	return plugins.Unsupported(field, "'%s' names what a provider keeps, and %s keeps nothing.%s", field, label, c.stored.hint)
}

// dropReasoning leaves out the reasoning of earlier responses that a provider which
// speaks Responses itself would look for in vain.
func (a *attempt) dropReasoning(body []byte) []byte {
	if a.call.state.PreviousResponseID == "" {
		return body
	}
	return editArray(body, "input", func(_ int, item gjson.Result) string {
		if item.Get("type").Str == "reasoning" && item.Get("encrypted_content").Str == "" {
			return ""
		}
		return item.Raw
	})
}
