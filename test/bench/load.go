//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load is how calls come in: in a closed loop each of so many clients waits for
// its answer before it calls again; in an open one so many calls begin each
// second, whatever becomes of the calls before.
type load struct {
	clients  int
	rate     float64       // calls a second of an open loop; 0 for a closed loop
	pause    time.Duration // how long a client of a closed loop waits between its calls
	duration time.Duration
}

// tally is what the clients saw.
type tally struct {
	elapsed time.Duration
	calls   int
	failed  int
	failure error // the first
	sent    int64 // bytes of requests

	total []time.Duration // from when the call was due to its last byte
	first []time.Duration // to the first byte of the body
	gaps  []time.Duration // from chunk to chunk
}

func (t *tally) add(u *tally) {
	t.calls += u.calls
	t.failed += u.failed
	t.sent += u.sent
	if t.failure == nil {
		t.failure = u.failure
	}
	t.total = append(t.total, u.total...)
	t.first = append(t.first, u.first...)
	t.gaps = append(t.gaps, u.gaps...)
}

// caller calls one target.
type caller struct {
	client http.Client
	url    string
	header http.Header
	exact  bool // what comes back must be what the provider sent
	serial atomic.Int64
}

func newCaller(t *target, url string, p variables) *caller {
	c := &caller{url: url, exact: !t.Rewrites, header: http.Header{
		"Content-Type":  {"application/json"},
		"Authorization": {"Bearer sk-0000000000000000000000000000000000000000"},
	}}
	for name, value := range t.Headers {
		c.header.Set(name, p.expand(value))
	}
	c.client.Transport = &http.Transport{MaxIdleConnsPerHost: 1 << 14, DisableCompression: true}
	return c
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// callTimeout bounds a call, so that a target that hangs fails.
const callTimeout = 30 * time.Second

// call makes one call, which was due at a time, and enters it into a tally.
func (c *caller) call(ctx context.Context, x *exchange, due time.Time, t *tally) {
	t.calls++
	if err := c.exchange(ctx, x, due, t); err != nil {
		t.failed++
		if t.failure == nil {
			t.failure = err
		}
	}
}

func (c *caller) exchange(ctx context.Context, x *exchange, due time.Time, t *tally) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request := x.request
	if len(x.serials) > 0 {
		request = bytes.Clone(request)
		n := c.serial.Add(1)
		for _, at := range x.serials {
			setSerial(request[at:at+serialBytes], n)
		}
	}
	t.sent += int64(len(request))
	url := c.url
	if x.path != "" {
		url = strings.Replace(url, "/chat/completions", x.path, 1)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
	if err != nil {
		return err
	}
	r.Header = c.header
	answer, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != cmp.Or(x.status, http.StatusOK) {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		return fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}

	var before time.Time
	buffer := make([]byte, 16<<10)
	for rest := x.answer; ; {
		n, err := answer.Body.Read(buffer)
		now := time.Now()
		if n > 0 {
			if before.IsZero() {
				t.first = append(t.first, now.Sub(due))
			} else {
				t.gaps = append(t.gaps, now.Sub(before))
			}
			before = now
			if c.exact {
				if !bytes.HasPrefix(rest, buffer[:n]) {
					return errors.New("the answer is not the provider's")
				}
				rest = rest[n:]
			}
		}
		if err == io.EOF && c.exact && len(rest) > 0 {
			return fmt.Errorf("the answer lacks its last %d bytes", len(rest))
		}
		if err == io.EOF {
			t.total = append(t.total, now.Sub(due))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// run puts a target under load. Each client takes other exchanges than the
// clients next to it.
func (c *caller) run(ctx context.Context, l load, pool []exchange) *tally {
	began := time.Now()
	var t *tally
	if l.rate > 0 {
		t = c.open(ctx, l, pool)
	} else {
		t = c.closed(ctx, l, pool)
	}
	t.elapsed = time.Since(began)
	return t
}

func (c *caller) closed(ctx context.Context, l load, pool []exchange) *tally {
	var wait sync.WaitGroup
	tallies := make([]tally, l.clients)
	end := time.Now().Add(l.duration)
	for i := range tallies {
		wait.Go(func() {
			time.Sleep(l.pause * time.Duration(i) / time.Duration(l.clients))
			next := i * len(pool) / l.clients
			for due := time.Now(); due.Before(end) && ctx.Err() == nil; due = time.Now() {
				c.call(ctx, &pool[next%len(pool)], due, &tallies[i])
				next++
				time.Sleep(l.pause)
			}
		})
	}
	wait.Wait()
	var sum tally
	for i := range tallies {
		sum.add(&tallies[i])
	}
	return &sum
}

func (c *caller) open(ctx context.Context, l load, pool []exchange) *tally {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var sum tally
	began := time.Now()
	for i := range int(l.rate * l.duration.Seconds()) {
		due := began.Add(time.Duration(float64(i) / l.rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			var t tally
			c.call(ctx, &pool[i%len(pool)], due, &t)
			mu.Lock()
			defer mu.Unlock()
			sum.add(&t)
		})
	}
	wait.Wait()
	return &sum
}
