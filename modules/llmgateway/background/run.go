// Package background has the events of responses that are generated while no client waits. It
// has them for a while after the end, for clients that ask; then only the record has the
// response. Nodes that share something read each other's events.
package background

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/capture"
)

// maxEvents bounds the events of a response, in bytes.
const maxEvents = 64 << 20

// ErrTooLong ends a response whose events exceed maxEvents.
var ErrTooLong = errors.New("the response is too long for the background")

// Response is a response in the background, of this node or of another one.
type Response interface {
	// Body is the response as it is now.
	Body() []byte
	// Running reports whether it is being generated, as far as is known.
	Running() bool
	// Cancel ends the generation, and returns when it has ended.
	Cancel(ctx context.Context) error
	// HasEvents reports whether it can be streamed.
	HasEvents() bool
	// Stream writes the events whose sequence number is greater than after, and then
	// each new event, until the response ends. Each write is of whole events.
	Stream(ctx context.Context, w io.Writer, after int64) error
}

// Run is a response of this node.
type Run struct {
	// ID is the id of the response. Org and User own it.
	ID, Org, User string

	cancel context.CancelFunc

	mu        sync.Mutex // guards the fields below, except ended and published
	events    []event
	size      int
	response  []byte // the response as it is now
	cancelled bool
	more      chan struct{} // closed when there is another event, or the end
	ended     chan struct{}
	published int // bytes of events that other nodes have; guarded by the mutex of Runs

	reserved  int64 // the memory of the events, in bytes; it counts as copies of bodies do
	forgotten bool  // there was no memory for the events
}

type event struct {
	sequence int64
	text     []byte // with its blank line
}

// Add adds an event in JSON. response is the response after the event, nil if it has not
// changed.
func (r *Run) Add(data, response []byte) error {
	if bytes.IndexByte(data, '\n') >= 0 { // an event is one line
		var line bytes.Buffer
		if err := json.Compact(&line, data); err != nil {
			return err
		}
		data = line.Bytes()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size += len(data); r.size > maxEvents {
		return ErrTooLong
	}
	sequence := int64(len(r.events))
	if n := gjson.GetBytes(data, "sequence_number"); n.Type == gjson.Number {
		sequence = n.Int()
	}
	if e := (event{sequence, eventText(data)}); !r.forgotten && capture.Reserve(e.memory()) {
		r.events = append(r.events, e)
		r.reserved += e.memory()
	} else { // who streams them has to ask again when the response has ended
		capture.Return(r.reserved)
		r.events, r.reserved, r.forgotten = nil, 0, true
	}
	if response != nil {
		r.response = response
	}
	close(r.more)
	r.more = make(chan struct{})
	return nil
}

// memory is how many bytes an event takes.
func (e event) memory() int64 { return int64(cap(e.text) + 64) }

// release gives the memory of the events back.
func (r *Run) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	capture.Return(r.reserved)
	r.reserved = 0
}

// isTerminal reports whether no other event of the response follows.
func (e event) isTerminal() bool {
	name, _, _ := bytes.Cut(e.text, []byte("\n"))
	return IsTerminal(strings.TrimPrefix(string(name), "event: "))
}

// IsTerminal reports whether an event of that type is the last of a response.
func IsTerminal(kind string) bool {
	switch kind {
	case "response.completed", "response.failed", "response.incomplete":
		return true
	}
	return false
}

func eventText(data []byte) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", gjson.GetBytes(data, "type").Str, data)
}

// Body implements Response.
func (r *Run) Body() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.response
}

// Ended is closed when the record has the whole response.
func (r *Run) Ended() <-chan struct{} { return r.ended }

// Running implements Response.
func (r *Run) Running() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// Cancel implements Response. The record says so when it returns.
func (r *Run) Cancel(ctx context.Context) error {
	r.requestCancel()
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Run) requestCancel() {
	r.mu.Lock()
	r.cancelled = true
	r.mu.Unlock()
	r.cancel()
}

// Cancelled reports whether a client has cancelled the response before it was whole.
func (r *Run) Cancelled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch gjson.GetBytes(r.response, "status").Str {
	case "completed", "incomplete":
		return false
	}
	return r.cancelled
}

// HasEvents implements Response.
func (r *Run) HasEvents() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.forgotten
}

// errForgotten ends a stream whose events there is no memory for.
var errForgotten = errors.New("there is no memory for the events of the response")

// next returns the events after a position, and a channel that is closed when another event
// comes.
func (r *Run) next(at int) ([]event, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forgotten {
		return nil, nil, errForgotten
	}
	return r.events[at:], r.more, nil
}

// Stream implements Response.
func (r *Run) Stream(ctx context.Context, w io.Writer, after int64) error {
	at := 0
	return stream(ctx, w, after, func() ([]event, bool, <-chan struct{}, error) {
		over := !r.Running() // no event follows
		events, more, err := r.next(at)
		at += len(events)
		return events, over, more, err
	})
}

// pingInterval is the silence after which a stream gets a comment, which keeps its connection alive.
const pingInterval = 15 * time.Second

// stream writes the events that next returns, if their number is greater than after. If over is
// true, no event follows. Else stream calls next again when more is closed.
func stream(ctx context.Context, w io.Writer, after int64, next func() (events []event, over bool, more <-chan struct{}, err error)) error {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		events, over, more, err := next()
		if err != nil {
			return err
		}
		var text bytes.Buffer
		for _, e := range events {
			if e.sequence > after {
				text.Write(e.text)
			}
		}
		if over {
			text.WriteString("data: [DONE]\n\n")
		}
		if text.Len() > 0 {
			if _, err := w.Write(text.Bytes()); over || err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-ping.C:
			if _, err := io.WriteString(w, ": ping\n\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Interface guards
var (
	_ Response = (*Run)(nil)
	_ Response = (*Remote)(nil)
)
