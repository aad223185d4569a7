package sharedtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/storage/shared"
)

// LocalRuns are shared.Runs in memory, for tests with several nodes in a process.
type LocalRuns struct {
	// Lease is the time after which a silent node counts as dead.
	Lease time.Duration

	mu    sync.Mutex // guards byKey
	byKey map[shared.Key]*localRun
}

type localRun struct {
	shared.Run
	seen      time.Time
	cancelled bool
}

// Age lets all nodes be silent for longer.
func (r *LocalRuns) Age(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.byKey {
		run.seen = run.seen.Add(-d)
	}
}

// Publish implements shared.Runs.
func (r *LocalRuns) Publish(_ context.Context, key shared.Key, news shared.RunNews) (shared.RunReply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = make(map[shared.Key]*localRun)
	}
	run := r.byKey[key]
	if run == nil {
		run = new(localRun)
		r.byKey[key] = run
	}
	if run.seen = time.Now(); news.State != nil {
		run.State = news.State
	}
	if news.Trimmed {
		run.Trimmed, run.Events = true, nil
	}
	if next := len(run.Events) - news.From; next >= 0 {
		run.Events = append(run.Events, news.Events[min(next, len(news.Events)):]...)
		run.Ended = run.Ended || news.Ended
	}
	events := len(run.Events)
	if run.State == nil {
		events = -1
	}
	return shared.RunReply{Known: events, Cancelled: run.cancelled}, nil
}

// Read implements shared.Runs.
func (r *LocalRuns) Read(_ context.Context, key shared.Key, from int) (*shared.Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.byKey[key]
	if run == nil || run.State == nil {
		return nil, nil
	}
	found := run.Run
	found.Events = nil
	if from >= 0 {
		found.Events = slices.Clone(run.Events[min(from, len(run.Events)):])
	}
	found.Silence = time.Since(run.seen)
	found.Dead = !run.Ended && found.Silence > r.Lease
	return &found, nil
}

// Cancel implements shared.Runs.
func (r *LocalRuns) Cancel(_ context.Context, key shared.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.byKey[key]; run != nil {
		run.cancelled = true
	}
	return nil
}

// Forget implements shared.Runs.
func (r *LocalRuns) Forget(_ context.Context, key shared.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
	return nil
}

// Runs checks a kind of Runs. a and b are the Runs of two nodes. silence lets the node
// of a run be silent for longer than a node may.
func Runs(t *testing.T, a, b shared.Runs, silence func(run shared.Key)) {
	key := Key("run")
	publish := func(news shared.RunNews, events int, cancelled bool) {
		t.Helper()
		got, err := a.Publish(t.Context(), key, news)
		if want := (shared.RunReply{Known: events, Cancelled: cancelled}); err != nil || got != want {
			t.Fatalf("publishing %+v: %+v, %v; want %+v", news, got, err, want)
		}
	}
	read := func(from int, want string) {
		t.Helper()
		for _, node := range []shared.Runs{a, b} {
			text := "nothing"
			got, err := node.Read(t.Context(), key, from)
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				text = fmt.Sprintf("%q %q ended %t trimmed %t dead %t", got.State, got.Events, got.Ended, got.Trimmed, got.Dead)
			}
			if text != want {
				t.Errorf("from %d: %s, want %s", from, text, want)
			}
		}
	}
	events := func(texts ...string) (all [][]byte) {
		for _, text := range texts {
			all = append(all, []byte(text))
		}
		return all
	}
	read(0, "nothing")
	publish(shared.RunNews{From: 1, Events: events("e1")}, -1, false)
	read(0, "nothing")
	publish(shared.RunNews{State: []byte("\x00one\xff"), Events: events("e0", "\x00\r\n")}, 2, false)
	read(0, `"\x00one\xff" ["e0" "\x00\r\n"] ended false trimmed false dead false`)
	publish(shared.RunNews{From: 1, Events: events("\x00\r\n", "e2")}, 3, false)
	publish(shared.RunNews{From: 1, Events: events("\x00\r\n")}, 3, false)
	read(1, `"\x00one\xff" ["\x00\r\n" "e2"] ended false trimmed false dead false`)
	read(3, `"\x00one\xff" [] ended false trimmed false dead false`)
	read(-1, `"\x00one\xff" [] ended false trimmed false dead false`)
	publish(shared.RunNews{From: 5, Events: events("e5"), Ended: true}, 3, false)
	read(3, `"\x00one\xff" [] ended false trimmed false dead false`)
	if err := b.Cancel(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	publish(shared.RunNews{State: []byte("two"), From: 3}, 3, true)
	silence(key)
	read(3, `"two" [] ended false trimmed false dead true`)
	publish(shared.RunNews{From: 3, Events: events("e3"), Ended: true}, 4, true)
	silence(key)
	read(2, `"two" ["e2" "e3"] ended true trimmed false dead false`)
	publish(shared.RunNews{Trimmed: true}, 0, true)
	read(0, `"two" [] ended true trimmed true dead false`)
	if err := b.Forget(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	read(0, "nothing")
	if err := b.Cancel(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	read(0, "nothing")
}

// Interface guards
var _ shared.Runs = (*LocalRuns)(nil)
