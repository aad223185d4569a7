package llmcommand

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/storage"
)

func init() { pollInterval = 20 * time.Millisecond }

// following is a tail that runs.
type following struct {
	t      *testing.T
	mu     sync.Mutex
	out    bytes.Buffer
	stop   context.CancelFunc
	stderr string
	err    error
	ended  chan struct{}
}

func (f *following) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Write(b)
}

func follow(t *testing.T, args ...string) *following {
	ctx, stop := context.WithCancel(t.Context())
	f := &following{t: t, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.stderr, f.err = run(ctx, tailCommand, f, append(args, "--format", "csv", "--columns", "user")...)
	}()
	t.Cleanup(f.end)
	return f
}

// end interrupts the tail.
func (f *following) end() {
	f.stop()
	<-f.ended
}

// shows waits until the tail has shown the requests of these users and no more.
func (f *following) shows(users ...string) {
	f.t.Helper()
	want := strings.Join(append([]string{"user"}, users...), "\n") + "\n"
	var got string
	for range 500 {
		f.mu.Lock()
		got = f.out.String()
		f.mu.Unlock()
		if len(got) >= len(want) {
			break
		}
		select {
		case <-f.ended:
			f.t.Fatalf("tail ended: %v", f.err)
		case <-time.After(pollInterval):
		}
	}
	if got != want {
		f.t.Fatalf("tail shows\n%swant\n%s", got, want)
	}
}

func (a *api) ended(n int, user string, began, ended storage.Timestamp) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(&storage.Record{ID: id(n), UserID: user, CreatedAt: began, RespondedAt: ended})
}

// polled waits until the tail has asked so many times more.
func (a *api) polled(n int) {
	a.mu.Lock()
	until := a.queries + n
	a.mu.Unlock()
	for {
		a.mu.Lock()
		done := a.queries >= until
		a.mu.Unlock()
		if done {
			return
		}
		time.Sleep(pollInterval)
	}
}

func TestTail(t *testing.T) {
	a := &api{}
	now := storage.Millis(time.Now())
	a.ended(1, "a", now-9000, now-8000)
	a.ended(2, "b", now-9500, now-5000)
	a.ended(3, "c", now-5500, now-5100)
	f := follow(t, "--address", a.serve(t), "--lines", "2", "user!=other")
	f.shows("c", "b")
	a.ended(4, "d", now-7000, now-4000)
	a.ended(5, "other", now, now)
	f.shows("c", "b", "d")
	a.ended(6, "e", now-1_800_000, now) // half an hour long
	f.shows("c", "b", "d", "e")
	a.ended(7, "f", now-1500, now-1000) // turns up late
	f.shows("c", "b", "d", "e", "f")
	a.ended(8, "g", now, 0) // got no answer
	f.shows("c", "b", "d", "e", "f", "g")
	a.polled(3)
	f.shows("c", "b", "d", "e", "f", "g")
	f.end()
	if f.err != nil || f.stderr != "" {
		t.Errorf("interrupted: %v, stderr %q", f.err, f.stderr)
	}
}

func TestTailOfNothing(t *testing.T) {
	a := &api{}
	now := storage.Millis(time.Now())
	a.ended(1, "a", now-500, now-400)
	f := follow(t, "--address", a.serve(t), "-n", "0")
	f.shows()
	a.polled(1)
	a.ended(2, "b", now+100, now+200)
	f.shows("b")
}

// TestTailOverload has more requests at once than a page takes.
func TestTailOverload(t *testing.T) {
	a := &api{}
	now := storage.Millis(time.Now())
	f := follow(t, "--address", a.serve(t), "-n", "0")
	f.shows()
	a.polled(1)
	var users []string
	a.mu.Lock()
	for n := range 3 * pageSize {
		a.add(&storage.Record{ID: id(n), UserID: "u", CreatedAt: now, RespondedAt: now + 1000})
		users = append(users, "u")
	}
	a.mu.Unlock()
	f.shows(users...)
	a.polled(5)
	f.shows(users...)
}

func TestTailSurvivesRestarts(t *testing.T) {
	a := &api{}
	now := storage.Millis(time.Now())
	a.ended(1, "a", now-1000, now)
	t.Setenv(keyEnv, "secret")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	server := &http.Server{Handler: a}
	go server.Serve(listener)

	f := follow(t, "--address", "http://"+address)
	f.shows("a")
	server.Close()
	a.ended(2, "b", now, now+100)
	time.Sleep(5 * pollInterval) // for a poll that fails
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server = &http.Server{Handler: a}
	go server.Serve(listener)
	defer server.Close()
	f.shows("a", "b")
	a.polled(2)
	f.shows("a", "b")
	f.end()
	lines := strings.Split(strings.TrimSpace(f.stderr), "\n")
	if f.err != nil || len(lines) != 2 || !strings.Contains(lines[0], "Trying again") || !strings.Contains(lines[1], "Connected again") {
		t.Errorf("%v, stderr %q, want a line for each end of the gap", f.err, f.stderr)
	}
}

func TestTailEndsWhenRefused(t *testing.T) {
	a := &api{}
	f := follow(t, "--address", a.serve(t))
	f.shows()
	a.mu.Lock()
	a.before = func(*storage.RequestQuery) int { return http.StatusForbidden }
	a.mu.Unlock()
	<-f.ended
	if f.err == nil {
		t.Error("a tail that may no longer ask goes on")
	}
}

func TestTailErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"--lines: expected 0 to 1000": {"-n", "1001"},
		"expected one of table":       {"--format", "json"},
		"no answer from":              {"--address", "http://127.0.0.1:1"},
		`unknown field "x"`:           {"x=1"},
	} {
		_, err := run(t.Context(), tailCommand, new(bytes.Buffer), args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", args, err, want)
		}
	}
}
