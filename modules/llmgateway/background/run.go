// Package background keeps the responses that are generated while no client waits: their
// events, for clients that ask for them, as long as the process runs. After that, the
// record has the response.
package background

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// maxEvents bounds the events of a response, in bytes.
const maxEvents = 64 << 20

// ErrTooLong is why a response ends that has more events than are kept.
var ErrTooLong = errors.New("the response is too long for the background")

// Run is one response.
type Run struct {
	// ID is that of the response. Org and User are whose it is.
	ID, Org, User string

	cancel context.CancelFunc

	mu       sync.Mutex
	events   []event
	size     int
	response []byte        // as it is now
	more     chan struct{} // closed when there is another event, or the end
	ended    chan struct{}
}

type event struct {
	sequence int64
	text     []byte // with its blank line
}

// Add adds the event of that JSON. response is the response as it is then, nil for one
// that the event does not tell.
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
	r.events = append(r.events, event{sequence, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", gjson.GetBytes(data, "type").Str, data)})
	if response != nil {
		r.response = response
	}
	close(r.more)
	r.more = make(chan struct{})
	return nil
}

// Response is the response as it is now.
func (r *Run) Response() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.response
}

// Ended is closed when the record has the whole response.
func (r *Run) Ended() <-chan struct{} { return r.ended }

// Cancel ends the generation, and returns when the record says so.
func (r *Run) Cancel(ctx context.Context) error {
	r.cancel()
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next returns the events behind a place, and a channel that is closed when there are
// more.
func (r *Run) next(at int) ([]event, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[at:], r.more
}

// pingInterval is after how long a silence a stream gets a comment, which keeps its
// connection alive.
const pingInterval = 15 * time.Second

// Stream writes the events whose sequence number is greater than after, and then those
// that come, until the response ends. Each write is of whole events.
func (r *Run) Stream(ctx context.Context, w io.Writer, after int64) error {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for at := 0; ; {
		var over bool
		select {
		case <-r.ended: // no event follows
			over = true
		default:
		}
		events, more := r.next(at)
		at += len(events)
		var text bytes.Buffer
		for _, e := range events {
			if e.sequence > after {
				text.Write(e.text)
			}
		}
		if over {
			text.WriteString("data: [DONE]\n\n")
		}
		if _, err := w.Write(text.Bytes()); over || err != nil {
			return err
		}
		select {
		case <-more:
		case <-r.ended:
		case <-ping.C:
			if _, err := io.WriteString(w, ": ping\n\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
