package background

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/testkit/sharedtest"
	"github.com/weirhq/weir/storage/shared"
)

// nodes are two nodes that share a response.
func nodes(t *testing.T, body func(t *testing.T, all *sharedtest.LocalRuns, runs *Runs, link *Link)) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		all := &sharedtest.LocalRuns{Lease: time.Minute}
		body(t, all, new(Runs), &Link{Runs: func() shared.Runs { return all }, Key: sharedtest.Key("resp_1"), AEAD: aead})
	})
}

func add(t *testing.T, r *Run, number int, text string) {
	t.Helper()
	if err := r.Add(fmt.Appendf(nil, `{"type":"e","sequence_number":%d,"text":%q}`, number, text), nil); err != nil {
		t.Fatal(err)
	}
}

func streamOf(t *testing.T, r Response) string {
	t.Helper()
	var text strings.Builder
	if err := r.Stream(t.Context(), &text, -1); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func find(t *testing.T, l *Link) *Remote {
	t.Helper()
	found, err := l.Find(t.Context(), "ann")
	if err != nil || found == nil {
		t.Fatalf("%v, %v", found, err)
	}
	return found
}

// What the nodes share may be lost: it is published again.
func TestWhatIsLostIsPublishedAgain(t *testing.T) {
	nodes(t, func(t *testing.T, all *sharedtest.LocalRuns, runs *Runs, link *Link) {
		r := runs.Begin("resp_1", "acme", "ann", []byte(`{"status":"queued"}`), func() {})
		done := runs.Publish(t.Context(), r, link, func() []byte { return []byte(`{"status":"completed"}`) })
		add(t, r, 0, "one")
		time.Sleep(2 * heartbeat)
		if _, err := all.Read(t.Context(), link.Key, 0); err != nil {
			t.Fatal(err)
		}
		if err := link.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		add(t, r, 1, "two")
		time.Sleep(2 * heartbeat)
		if got := string(find(t, link).Body()); got != `{"status":"queued"}` {
			t.Error(got)
		}
		add(t, r, 2, strings.Repeat("x", maxBatch+1))
		add(t, r, 3, "four")
		runs.End(r)
		<-done
		remote := find(t, link)
		if got := string(remote.Body()); got != `{"status":"completed"}` || remote.Running() {
			t.Error(got)
		}
		if got, want := streamOf(t, remote), streamOf(t, r); got != want {
			t.Errorf("%.300s, want %.300s", got, want)
		}
		runs.Forget(r)
		if runs.published != 0 {
			t.Errorf("%d bytes are counted", runs.published)
		}
	})
}

// A response that is too long is not streamed by other nodes, which know how it is.
func TestPublishedEventsAreBounded(t *testing.T) {
	nodes(t, func(t *testing.T, _ *sharedtest.LocalRuns, runs *Runs, link *Link) {
		r := runs.Begin("resp_1", "acme", "ann", []byte(`{"status":"in_progress"}`), func() {})
		done := runs.Publish(t.Context(), r, link, func() []byte { return []byte(`{"status":"completed"}`) })
		add(t, r, 0, "one")
		time.Sleep(2 * heartbeat)
		if !find(t, link).HasEvents() {
			t.Error("there are no events")
		}
		runs.mu.Lock()
		runs.published = maxKept - 1 // those of others
		runs.mu.Unlock()
		add(t, r, 1, "two")
		time.Sleep(2 * heartbeat)
		if remote := find(t, link); remote.HasEvents() || !remote.Running() {
			t.Errorf("%+v", remote.run)
		}
		runs.End(r)
		<-done
		if remote := find(t, link); remote.HasEvents() || remote.Running() || string(remote.Body()) != `{"status":"completed"}` {
			t.Errorf("%+v", remote.run)
		}
	})
}

// Cancelling at another node waits for the end.
func TestCancellingReachesTheNode(t *testing.T) {
	nodes(t, func(t *testing.T, all *sharedtest.LocalRuns, runs *Runs, link *Link) {
		ctx, cancel := context.WithCancel(t.Context())
		r := runs.Begin("resp_1", "acme", "ann", []byte(`{"status":"in_progress"}`), cancel)
		done := runs.Publish(t.Context(), r, link, func() []byte { return []byte(`{"status":"cancelled"}`) })
		go func() {
			<-ctx.Done()
			runs.End(r)
		}()
		remote := find(t, link)
		if err := remote.Cancel(t.Context()); err != nil || string(remote.Body()) != `{"status":"cancelled"}` || !r.Cancelled() {
			t.Errorf("%v, %s", err, remote.Body())
		}
		<-done
		all.Age(2 * all.Lease)
		if remote := find(t, link); remote.Running() || remote.Silent() {
			t.Error("it has not ended")
		}
	})
}
