package llmgateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/background"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/responsesapi"
	"github.com/weirhq/weir/modules/llmgateway/socket"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// backgroundRuns are the responses in the background, which outlive a configuration.
var backgroundRuns background.Runs

// readBackground takes `background` out of the request: the gateway asks the provider for a
// stream, and reads the stream to its end.
func (c *call) readBackground() error {
	if c.dialect != plugins.Responses || gjson.Get(plugins.View(c.input.body), "background").Type != gjson.True {
		return nil
	}
	if !c.keeps() {
		return plugins.Invalid("background", "A response in the background must be kept: send no 'store: false', omit no content, and stay below the gateway's max_body.")
	}
	c.continuation.state.Background, c.streamsBackground = true, c.input.streams()
	body, err := sjson.SetBytes(c.input.body, "stream", true)
	if err == nil {
		body, err = sjson.DeleteBytes(body, "background")
	}
	c.input.body, c.input.sent = body, body
	return err
}

// runInBackground makes the call without its client, who gets the queued response, or its
// stream. It returns false if it has refused the call.
func (c *call) runInBackground(targets []routing.Target) bool {
	client, w, r := c.r, c.w, &c.exchange.Record
	queued := c.emptyResponse("queued", nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	run := c.h.responses.Runs.Begin(history.ResponseID(r.ID), r.Org, c.h.responses.Mask(r.Org, mask.Content{}).Name(r.UserID, nil), queued, cancel)
	if run == nil {
		cancel()
		c.refuse(&plugins.Error{
			Status: http.StatusTooManyRequests, Type: "too_many_requests", Code: "too_many_background_responses",
			Message: "Too many responses are generated in the background: try again when some have ended.",
		})
		return false
	}
	c.warn(nil)
	r.Provider = noAccount.Provider        // until an attempt begins
	c.exchange.Commit(storage.Interrupted) // what a crash leaves
	c.exchange.Detach(cancel)
	streams := c.streamsBackground
	events := &backgroundEvents{call: c, run: run}
	c.ctx, c.r, c.w = ctx, client.WithContext(ctx), &socket.Events{Event: events.add, Refuse: events.refuse}
	release := c.h.publish(run)
	go func() {
		defer release()
		defer cancel()
		defer c.h.responses.End(run)
		defer events.end()
		defer c.close()
		defer func() {
			if v := recover(); v != nil {
				c.h.site.Logger.Error("a response in the background panicked", zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
			}
		}()
		c.tryTargets(targets)
	}()
	if streams {
		responsesapi.Stream(w, client, run, -1)
		return true
	}
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(queued) // the client is gone
	return true
}

// publish shares a response in the background with other nodes. It holds the store until
// release is called, and until the nodes know how the response ended.
func (h *Handler) publish(run *background.Run) (release func()) {
	stop, cancel := context.WithCancel(context.Background())
	_, closeStore, err := h.site.Open(cancel)
	if err != nil { // then there is no record either
		closeStore = func() {}
	}
	done := h.responses.Publish(stop, run)
	return func() {
		if done != nil {
			<-done
		}
		cancel()
		closeStore()
	}
}

// emptyResponse returns a response of the call that no provider has begun: it is queued, or it has
// failed.
func (c *call) emptyResponse(status string, e *plugins.Error) []byte {
	request := &translate.Request{Raw: c.input.body, Model: c.exchange.Record.RequestModel, State: c.continuation.state}
	request.State.Stored = true
	return history.EmptyResponse(request, c.exchange.Record.ID, status, e)
}

// backgroundEvents takes the events of a call in the background.
type backgroundEvents struct {
	call     *call
	run      *background.Run
	ended    bool  // a terminal event was written
	sequence int64 // the sequence number of the next event
}

// fail ends the stream without an answer of a provider.
func (w *backgroundEvents) fail(e *plugins.Error) {
	if w.sequence == 0 {
		w.addLifecycle("response.created", w.run.Body())
		w.addLifecycle("response.in_progress", w.call.emptyResponse("in_progress", nil))
	}
	w.addLifecycle("response.failed", w.call.emptyResponse("failed", e))
}

func (w *backgroundEvents) addLifecycle(kind string, response []byte) {
	// An error says that the response is too long: then nobody can read its end.
	_ = w.add(fmt.Appendf(nil, `{"type":%q,"sequence_number":%d,"response":%s}`, kind, w.sequence, response))
}

// end writes a failure if the call ended without a terminal event.
func (w *backgroundEvents) end() {
	if !w.ended {
		w.fail(plugins.Upstream("The response was cancelled, or the gateway stopped."))
	}
}

// refuse ends the stream with the error that a call has answered.
func (w *backgroundEvents) refuse(_ int, answer []byte) error {
	w.fail(&plugins.Error{Code: gjson.GetBytes(answer, "error.code").Str, Message: gjson.GetBytes(answer, "error.message").Str})
	return nil
}

// add adds an event, under the id that the client knows.
func (w *backgroundEvents) add(data []byte) error {
	data = bytes.Clone(data)
	w.ended = w.ended || background.IsTerminal(gjson.GetBytes(data, "type").Str)
	if n := gjson.GetBytes(data, "sequence_number"); n.Type == gjson.Number {
		w.sequence = n.Int() + 1
	}
	var response []byte
	if seen := gjson.GetBytes(data, "response"); seen.IsObject() {
		response = history.InBackground([]byte(seen.Raw), w.run.ID)
		var err error
		if data, err = sjson.SetRawBytes(data, "response", response); err != nil {
			return err
		}
	}
	return w.run.Add(data, response)
}
