package responsesapi

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmgateway/background"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins"
)

// response returns the response of the path.
func (c *Call) response() (*history.Response, error) {
	found, err := c.Store.Find(c.R.Context(), c.ID)
	return found, history.Error(err, "Response", c.ID)
}

// GetResponse answers a response, or streams its events.
func (c *Call) GetResponse() (any, error) {
	run, err := c.running()
	if err != nil {
		return nil, err
	}
	body, err := c.latest(run)
	switch {
	case err != nil:
		return nil, err
	case c.R.URL.Query().Get("stream") != "true":
		return body, nil
	case run == nil || !run.HasEvents():
		return nil, plugins.Unsupported("stream", "The events of this response are gone: ask for it without 'stream'. Those of 'background: true' stay for 5 minutes.")
	}
	after, err := startingAfter(c.R.URL.Query())
	if err != nil {
		return nil, err
	}
	Stream(c.W, c.R, run, after)
	return nil, nil
}

// DeleteResponse makes a response one that is not found.
func (c *Call) DeleteResponse() (any, error) {
	run, err := c.running()
	if err != nil {
		return nil, err
	}
	if run != nil && run.Running() {
		return nil, plugins.Invalid("", "The response is still generated: cancel it first.")
	}
	if err := c.Store.Delete(c.R.Context(), c.ID); err != nil {
		return nil, history.Error(err, "Response", c.ID)
	}
	if local, ok := run.(*background.Run); ok {
		c.Runs.Forget(local)
	}
	if link := c.link(c.Store.Org, c.ID); link != nil {
		_ = link.Forget(c.R.Context()) // it is forgotten soon
	}
	return deletion{c.ID, "response", true}, nil
}

// ListInputItems lists the items of the request that a response answered.
func (c *Call) ListInputItems() (any, error) {
	found, err := c.response()
	if err != nil {
		return nil, err
	}
	page, err := c.readPage()
	if err != nil {
		return nil, err
	}
	answer, ok := history.List(found.Input(), page)
	if !ok {
		return nil, plugins.Invalid("after", "There is no item '%.128s' in this list.", page.After)
	}
	return answer, nil
}

// CancelResponse ends a response in the background.
func (c *Call) CancelResponse() (any, error) {
	run, err := c.running()
	if err != nil {
		return nil, err
	}
	if run != nil && run.Running() {
		if err := run.Cancel(c.R.Context()); err != nil {
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
	return nil, plugins.Invalid("", "Cannot cancel a response that was not made with 'background: true'.")
}
