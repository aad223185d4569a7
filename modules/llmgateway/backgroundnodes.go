package llmgateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/llmgateway/background"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
)

// link returns where nodes share a response in the background. It is nil if nodes share
// nothing, or if the id is not that of a response of Weir.
func (h *Handler) link(org, id string) *background.Link {
	if _, ours := stored.RecordOf(id); !ours || h.nodes() == nil {
		return nil
	}
	m, err := h.memory()
	if err != nil {
		h.site.Logger.Error(unreadableSecret, zap.Error(err))
		return nil
	}
	return &background.Link{Runs: h.nodes, Key: m.key("background", owner{org: org}, []byte(id)), AEAD: m.aead}
}

// flushTimeout bounds how long the end of a response waits to be in the store, where
// other nodes find its record.
const flushTimeout = 5 * time.Second

// publish shares a response in the background with other nodes. It holds the store until
// release is called, and until the nodes know how the response ended.
func (c *call) publish(run *background.Run) (release func()) {
	stop, cancel := context.WithCancel(context.Background())
	_, closeStore, err := c.h.site.Open(cancel)
	if err != nil { // then there is no record either
		closeStore = func() {}
	}
	link := c.h.link(run.Org, run.ID)
	if link == nil {
		return func() { cancel(); closeStore() }
	}
	done := c.h.runs.Publish(stop, run, link, func() []byte {
		if journal, err := c.h.journal(); err == nil {
			ctx, cancel := context.WithTimeout(stop, flushTimeout)
			defer cancel()
			_ = journal.Flush(ctx) // then the response that is published is the answer
		}
		return stored.Ended(run.Body(), run.Cancelled())
	})
	return func() {
		<-done
		cancel()
		closeStore()
	}
}

// running returns the response of the path while it is generated in the background, here
// or at another node, or while its events are there, else nil.
func (c *stateCall) running() (background.Response, error) {
	if run := c.h.runs.Find(c.store.Org, c.store.User, c.id); run != nil {
		return run, nil
	}
	link := c.h.link(c.store.Org, c.id)
	if link == nil {
		return nil, nil
	}
	run, err := link.Find(c.ctx, c.store.User)
	switch {
	case err == nil && run == nil:
		return nil, nil
	case err == nil && !run.Silent():
		return run, nil
	}
	if _, missing := c.response(); missing == nil { // whatever other nodes have
		return nil, nil
	}
	if err == nil {
		return run, nil
	}
	c.h.site.Logger.Warn("it is not known whether another node generates a response", zap.Error(err))
	return nil, &plugins.Error{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "nodes_unavailable", RetryAfter: time.Second,
		Message: "It is not known whether another node generates this response: try again.",
	}
}

// latest returns a response in the background as its record has it, or as it is now
// where it has not ended, or the store does not have the record of another node yet.
func (c *stateCall) latest(run background.Response) ([]byte, error) {
	if run != nil && run.Running() {
		return run.Body(), nil
	}
	found, err := c.store.Find(c.ctx, c.id)
	_, remote := run.(*background.Remote)
	if remote && errors.Is(err, stored.ErrNotFound) {
		return run.Body(), nil
	}
	if err != nil {
		return nil, stored.Error(err, "Response", c.id)
	}
	return found.Body, nil
}
