package llmgateway

import (
	"net/url"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmgateway/background"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// response returns that of the path.
func (c *stateCall) response() (*stored.Response, error) {
	found, err := c.store.Find(c.ctx, c.id)
	return found, stored.Error(err, "Response", c.id)
}

func getResponse(c *stateCall) (any, error) {
	run, err := c.running()
	if err != nil {
		return nil, err
	}
	body, err := c.latest(run)
	switch {
	case err != nil:
		return nil, err
	case c.r.URL.Query().Get("stream") != "true":
		return body, nil
	case run == nil || !run.HasEvents():
		return nil, plugins.Unsupported("stream", "The events of this response are gone: ask for it without 'stream'. Those of 'background: true' stay for 5 minutes.")
	}
	after, err := startingAfter(c)
	if err != nil {
		return nil, err
	}
	streamRun(c.w, c.r, run, after)
	return nil, nil
}

func deleteResponse(c *stateCall) (any, error) {
	run, err := c.running()
	if err != nil {
		return nil, err
	}
	if run != nil && run.Running() {
		return nil, plugins.Invalid("", "The response is still generated: cancel it first.")
	}
	if err := c.store.Delete(c.ctx, c.id); err != nil {
		return nil, stored.Error(err, "Response", c.id)
	}
	if own, ok := run.(*background.Run); ok {
		c.h.runs.Forget(own)
	}
	if link := c.h.link(c.store.Org, c.id); link != nil {
		_ = link.Forget(c.ctx) // it is forgotten soon
	}
	return deletion{c.id, "response", true}, nil
}

func listInputItems(c *stateCall) (any, error) {
	found, err := c.response()
	if err != nil {
		return nil, err
	}
	page, err := readPage(c.r.URL.Query())
	if err != nil {
		return nil, err
	}
	answer, ok := stored.List(found.Input(), page)
	if !ok {
		return nil, plugins.Invalid("after", "There is no item '%.128s' in this list.", page.After)
	}
	return answer, nil
}

func cancelResponse(c *stateCall) (any, error) {
	run, err := c.running()
	if err != nil {
		return nil, err
	}
	if run != nil && run.Running() {
		if err := run.Cancel(c.ctx); err != nil {
			return nil, err
		}
	}
	body, err := c.latest(run)
	if err != nil {
		return nil, err
	}
	if gjson.GetBytes(body, "background").Bool() {
		return body, nil
	}
	return nil, plugins.Invalid("", "Only a response of 'background: true' can be cancelled.")
}

const (
	defaultItems = 20
	maxListed    = 100
)

// readPage reads which items a query asks for, the last ones first by default.
func readPage(query url.Values) (page storage.ItemPage, err error) {
	page = storage.ItemPage{Limit: defaultItems, After: query.Get("after"), Descending: true}
	if text := query.Get("limit"); text != "" {
		if page.Limit, err = strconv.Atoi(text); err != nil || page.Limit < 1 || page.Limit > maxListed {
			return page, plugins.Invalid("limit", "Invalid 'limit': a number of 1 to %d is expected.", maxListed)
		}
	}
	switch query.Get("order") {
	case "", "desc":
	case "asc":
		page.Descending = false
	default:
		return page, plugins.Invalid("order", "Invalid 'order': 'asc' or 'desc' is expected.")
	}
	return page, nil
}
