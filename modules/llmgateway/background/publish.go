package background

import (
	"bytes"
	"context"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"time"

	"github.com/weirhq/weir/storage/shared"
)

const (
	// publishInterval is how late other nodes get an event. heartbeat is how often they hear
	// from a node that has no events, so that they know that the node is alive.
	publishInterval = 50 * time.Millisecond
	heartbeat       = time.Second
	// maxBatch bounds what is published at a time, in bytes.
	maxBatch = 1 << 20
)

// Link is where nodes share one response. What they share is encrypted.
type Link struct {
	// Runs returns what nodes share now, nil if they share nothing. A reload may change it.
	Runs func() shared.Runs
	// Key names the response, AEAD encrypts it.
	Key  shared.Key
	AEAD cipher.AEAD
}

var errNotShared = errors.New("nothing is shared with other nodes")

func (l *Link) seal(text []byte) []byte { return l.AEAD.Seal(nil, nil, text, l.Key[:]) }

func (l *Link) open(sealed []byte) ([]byte, error) { return l.AEAD.Open(nil, nil, sealed, l.Key[:]) }

// sealState seals a response together with its user.
func (l *Link) sealState(user string, response []byte) []byte {
	return l.seal(append(append([]byte(user), 0), response...))
}

func (l *Link) sealEvent(e event) []byte {
	return l.seal(append(binary.AppendVarint(nil, e.sequence), e.text...))
}

// publisher publishes a run of this node.
type publisher struct {
	*Link
	runs *Runs
	run  *Run

	at      int    // the number of the next event to publish
	state   []byte // the state that was published last
	trimmed bool   // there are too many events, so that no event is published
}

// Publish shares a response with other nodes: at once its events so far, then each event that
// comes, and in the end what final returns. done is closed when the nodes have the whole
// response, or when nobody may ask for it any more. After the end of ctx, Publish does not try
// again.
func (s *Runs) Publish(ctx context.Context, r *Run, l *Link, final func() []byte) (done <-chan struct{}) {
	p := &publisher{Link: l, runs: s, run: r}
	_, _, _ = p.publish(nil) // what fails is tried again
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.loop()
		p.finish(ctx, final())
	}()
	return over
}

// loop publishes until the run ends.
func (p *publisher) loop() {
	var complete bool
	for pause := publishInterval; p.run.Running(); {
		_, more, _ := p.run.next(p.at)
		if p.trimmed {
			more = nil
		}
		if complete || pause == heartbeat {
			select {
			case <-more:
				time.Sleep(pause) // others may come
			case <-p.run.ended:
				return
			case <-time.After(heartbeat):
			}
		}
		var cancelled bool
		var err error
		complete, cancelled, err = p.publish(nil)
		if pause = publishInterval; err != nil {
			pause = heartbeat
		}
		if cancelled {
			p.run.requestCancel()
		}
	}
}

// finish publishes the end, if need be again and again.
func (p *publisher) finish(ctx context.Context, response []byte) {
	ctx, cancel := context.WithTimeout(ctx, keepEnded)
	defer cancel()
	for {
		complete, _, err := p.publish(response)
		if complete || errors.Is(err, errNotShared) {
			return
		}
		if err == nil {
			continue
		}
		select {
		case <-time.After(heartbeat):
		case <-ctx.Done():
			return
		}
	}
}

// publish shares what other nodes may not have. last is the response in the end, nil before.
// complete reports that the nodes have everything so far.
func (p *publisher) publish(last []byte) (complete, cancelled bool, err error) {
	nodes := p.Runs()
	if nodes == nil {
		return false, false, errNotShared
	}
	news := shared.RunNews{From: p.at}
	state := p.run.Body()
	if last != nil {
		state = last
	}
	if !bytes.Equal(state, p.state) {
		news.State = p.sealState(p.run.User, state)
	}
	size, more := 0, false
	if !p.trimmed {
		events, _, forgotten := p.run.next(p.at)
		for _, e := range events {
			if more = size > 0 && size+len(e.text) > maxBatch; more {
				break
			}
			size += len(e.text)
			news.Events = append(news.Events, p.sealEvent(e))
		}
		p.trimmed = forgotten != nil || !p.runs.mayPublish(p.run, size)
	}
	if p.trimmed {
		news.From, news.Events, news.Trimmed, size, more = 0, nil, true, 0, false
	}
	news.Ended = last != nil && !more
	reply, err := nodes.Publish(context.Background(), p.Key, news)
	if err != nil {
		return false, false, err
	}
	if reply.Known < news.From+len(news.Events) { // they have lost some
		p.at, p.state = max(reply.Known, 0), nil
		return false, reply.Cancelled, nil
	}
	p.at, p.state = reply.Known, state
	p.runs.count(p.run, size)
	return !more, reply.Cancelled, nil
}
