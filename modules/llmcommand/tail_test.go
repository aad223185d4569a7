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
	t           *testing.T
	out, stderr lockedBuffer
	stop        context.CancelFunc
	err         error
	ended       chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func follow(t *testing.T, args ...string) *following {
	ctx, stop := context.WithCancel(t.Context())
	f := &following{t: t, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.err = execute(ctx, tailCommand, &f.out, &f.stderr, append(args, "--format", "csv", "--columns", "user")...)
	}()
	t.Cleanup(f.end)
	return f
}

// end interrupts the tail.
func (f *following) end() {
	f.stop()
	<-f.ended
}

// shows waits until the tail has shown the requests of these users, and checks
// that it has shown no others.
func (f *following) shows(users ...string) {
	f.t.Helper()
	want := strings.Join(append([]string{"user"}, users...), "\n") + "\n"
	f.until(func() bool { return len(f.out.String()) >= len(want) })
	if got := f.out.String(); got != want {
		f.t.Fatalf("tail shows\n%swant\n%s", got, want)
	}
}

// until waits for a condition, for ten seconds at most.
func (f *following) until(condition func() bool) {
	f.t.Helper()
	deadline := time.After(10 * time.Second)
	for !condition() {
		select {
		case <-f.ended:
			f.t.Fatalf("tail ended: %v", f.err)
		case <-deadline:
			f.t.Fatalf("nothing happens any more; tail shows\n%s%s", &f.out, &f.stderr)
		case <-time.After(pollInterval):
		}
	}
}

// polls waits until the tail has asked n times more.
func (f *following) polls(a *api, n int) {
	f.t.Helper()
	queries := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.queries
	}
	enough := queries() + n
	f.until(func() bool { return queries() >= enough })
}

func (a *api) ended(n int, user string, began, ended storage.Timestamp) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(&storage.Record{ID: id(n), UserID: user, CreatedAt: began, RespondedAt: ended})
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
	a.ended(9, "h", now, now+600_000) // by a clock that is fast
	f.shows("c", "b", "d", "e", "f", "g", "h")
	a.ended(10, "i", now, now)
	f.shows("c", "b", "d", "e", "f", "g", "h", "i")
	f.polls(a, 3)
	f.shows("c", "b", "d", "e", "f", "g", "h", "i")
	f.end()
	if f.err != nil || f.stderr.String() != "" {
		t.Errorf("interrupted: %v, stderr %q", f.err, &f.stderr)
	}
}

func TestTailOfNothing(t *testing.T) {
	a := &api{}
	now := storage.Millis(time.Now())
	a.ended(1, "a", now-500, now-400)
	f := follow(t, "--address", a.serve(t), "-n", "0")
	f.shows()
	f.polls(a, 1)
	a.ended(2, "b", now+100, now+200)
	f.shows("b")
}

// TestTailOverload has more requests at once than a page takes.
func TestTailOverload(t *testing.T) {
	a := &api{}
	now := storage.Millis(time.Now())
	f := follow(t, "--address", a.serve(t), "-n", "0")
	f.shows()
	f.polls(a, 1)
	var users []string
	a.mu.Lock()
	for n := range 3 * pageSize {
		a.add(&storage.Record{ID: id(n), UserID: "u", CreatedAt: now, RespondedAt: now + 1000})
		users = append(users, "u")
	}
	a.mu.Unlock()
	f.shows(users...)
	f.polls(a, 5)
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
	f.until(func() bool { return strings.Contains(f.stderr.String(), "Trying again") })
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server = &http.Server{Handler: a}
	go server.Serve(listener)
	defer server.Close()
	f.shows("a", "b")
	f.polls(a, 2)
	f.shows("a", "b")
	f.end()
	lines := strings.Split(strings.TrimSpace(f.stderr.String()), "\n")
	if f.err != nil || len(lines) != 2 || !strings.Contains(lines[1], "Connected again") {
		t.Errorf("%v, stderr %q, want a line for each end of the gap", f.err, lines)
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
