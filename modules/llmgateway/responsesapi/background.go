package responsesapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/llmgateway/background"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// link returns where nodes share a response in the background. It is nil if nodes share
// nothing, or if Weir did not make the id.
func (r *Deps) link(org, id string) *background.Link {
	if _, ours := history.RecordOf(id); !ours || r.Nodes() == nil {
		return nil
	}
	secrets, err := r.Secrets()
	if err != nil {
		return nil
	}
	return &background.Link{Runs: r.Nodes, Key: secrets.Key("background", secret.Owner{Org: org}, []byte(id)), AEAD: secrets.AEAD}
}

// flushTimeout bounds how long the end of a response waits to be in the store, where
// other nodes find its record.
const flushTimeout = 5 * time.Second

// Publish shares a response in the background with other nodes, until ctx ends. done is
// closed when the nodes know how the response ended. It is nil if nothing is shared.
func (r *Deps) Publish(ctx context.Context, run *background.Run) (done <-chan struct{}) {
	link := r.link(run.Org, run.ID)
	if link == nil {
		return nil
	}
	return r.Runs.Publish(ctx, run, link, func() []byte {
		if journal, err := r.Journal(); err == nil {
			ctx, cancel := context.WithTimeout(ctx, flushTimeout)
			defer cancel()
			_ = journal.Flush(ctx) // then the response that is published is the answer
		}
		return history.Ended(run.Body(), run.Cancelled())
	})
}

// End ends a response in the background whose record was committed.
func (r *Deps) End(run *background.Run) {
	defer r.Runs.End(run)
	if !run.Cancelled() {
		return
	}
	store, err := r.Store(&storage.Record{Org: run.Org, UserID: run.User})
	if err == nil {
		err = store.Cancel(context.Background(), run.ID)
	}
	if err != nil {
		r.Logger.Error("a response in the background was cancelled, and its record does not say so", zap.String("id", run.ID), zap.Error(err))
	}
}

// running returns the response of the path while this node or another one generates it in the
// background, or still has its events, else nil.
func (c *Call) running() (background.Response, error) {
	if run := c.Runs.Find(c.Store.Org, c.Store.User, c.ID); run != nil {
		return run, nil
	}
	link := c.link(c.Store.Org, c.ID)
	if link == nil {
		return nil, nil
	}
	run, err := link.Find(c.R.Context(), c.Store.User)
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
	c.Logger.Warn("it is not known whether another node generates a response", zap.Error(err))
	return nil, plugins.Unavailable("nodes_unavailable", time.Second, "It is not known whether another node generates this response: try again.")
}

// latest returns a response in the background as it is now if the response has not
// ended, else the response in its record. The store may not have the record of another node yet.
func (c *Call) latest(run background.Response) ([]byte, error) {
	if run != nil && run.Running() {
		return run.Body(), nil
	}
	found, err := c.Store.Find(c.R.Context(), c.ID)
	_, remote := run.(*background.Remote)
	if remote && errors.Is(err, history.ErrNotFound) {
		return run.Body(), nil
	}
	if err != nil {
		return nil, history.Error(err, "Response", c.ID)
	}
	return found.Body, nil
}

// Stream streams the events of a response that come after a number.
func Stream(w http.ResponseWriter, r *http.Request, run background.Response, after int64) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()             // a writer that cannot still has a client
	_ = run.Stream(r.Context(), flushingWriter{w}, after) // the client is gone
}

// flushingWriter flushes after each write.
type flushingWriter struct{ http.ResponseWriter }

func (w flushingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot still has a client
	return n, err
}

// startingAfter returns the number of the event after which the stream begins, -1 for all.
func startingAfter(query url.Values) (int64, error) {
	text := query.Get("starting_after")
	if text == "" {
		return -1, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, plugins.Invalid("starting_after", "Invalid 'starting_after': the sequence number of an event is expected.")
	}
	return after, nil
}
