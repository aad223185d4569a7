package background

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/storage/shared"
)

const (
	// pollInterval is how often a node asks for news of another one's response.
	pollInterval = 100 * time.Millisecond
	// maxSilence is how long a node that generates may be silent.
	maxSilence = 5 * heartbeat
)

// Remote is a response of another node.
type Remote struct {
	link *Link
	run  *shared.Run
	body []byte
}

// Find returns the response of a link, or nil if no node has it or another user asks. A user
// of "" speaks for the organisation.
func (l *Link) Find(ctx context.Context, user string) (*Remote, error) {
	r := &Remote{link: l}
	owner, err := r.read(ctx, -1)
	if errors.Is(err, history.ErrNotFound) || err == nil && user != "" && owner != user {
		return nil, nil
	}
	return r, err
}

// Forget lets no node read the response from now on.
func (l *Link) Forget(ctx context.Context) error {
	if nodes := l.Runs(); nodes != nil {
		return nodes.Forget(ctx, l.Key)
	}
	return nil
}

// read reads the response as it is now, and its events from a number on.
func (r *Remote) read(ctx context.Context, from int) (user string, err error) {
	nodes := r.link.Runs()
	if nodes == nil {
		return "", errNotShared
	}
	run, err := nodes.Read(ctx, r.link.Key, from)
	if err != nil {
		return "", err
	}
	if run == nil {
		return "", history.ErrNotFound
	}
	state, err := r.link.open(run.State)
	if err != nil {
		return "", fmt.Errorf("a response of a node with another secret: %w", err)
	}
	user, body, _ := strings.Cut(string(state), "\x00")
	if r.run, r.body = run, []byte(body); run.Dead {
		r.body = history.Ended(r.body, false)
	}
	return user, nil
}

// Body implements Response. If the node died, the response has failed.
func (r *Remote) Body() []byte { return r.body }

// Running implements Response.
func (r *Remote) Running() bool { return !r.run.Ended && !r.run.Dead }

// Silent reports whether the node may be dead. Then the record is asked first.
func (r *Remote) Silent() bool { return !r.run.Ended && r.run.Silence > maxSilence }

// HasEvents implements Response.
func (r *Remote) HasEvents() bool { return !r.run.Trimmed }

// Cancel implements Response.
func (r *Remote) Cancel(ctx context.Context) error {
	nodes := r.link.Runs()
	if nodes == nil {
		return errNotShared
	}
	if err := nodes.Cancel(ctx, r.link.Key); err != nil {
		return err
	}
	for r.Running() {
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := r.read(ctx, -1); err != nil {
			return err
		}
	}
	return nil
}

// Stream implements Response. If the node died, the stream ends with `response.failed`. While
// nothing can be read, Stream waits.
func (r *Remote) Stream(ctx context.Context, w io.Writer, after int64) error {
	at, last := 0, event{sequence: -1}
	return stream(ctx, w, after, func() ([]event, bool, <-chan struct{}, error) {
		again := make(chan struct{})
		_, err := r.read(ctx, at)
		if err != nil && !errors.Is(err, history.ErrNotFound) {
			time.AfterFunc(heartbeat, func() { close(again) })
			return nil, false, again, nil
		}
		if err != nil {
			return nil, false, nil, err
		}
		events, err := r.events()
		if err != nil {
			return nil, false, nil, err
		}
		if len(events) > 0 { // there may be more
			at, last = at+len(events), events[len(events)-1]
			close(again)
			return events, false, again, nil
		}
		if r.run.Dead && !last.isTerminal() {
			data := fmt.Appendf(nil, `{"type":"response.failed","sequence_number":%d,"response":%s}`, last.sequence+1, r.body)
			events = []event{{last.sequence + 1, eventText(data)}}
		}
		if r.Running() {
			time.AfterFunc(pollInterval, func() { close(again) })
		}
		return events, !r.Running(), again, nil
	})
}

func (r *Remote) events() ([]event, error) {
	var events []event
	for _, sealed := range r.run.Events {
		text, err := r.link.open(sealed)
		if err != nil {
			return nil, err
		}
		sequence, n := binary.Varint(text)
		if n <= 0 {
			return nil, io.ErrUnexpectedEOF
		}
		events = append(events, event{sequence, text[n:]})
	}
	return events, nil
}
