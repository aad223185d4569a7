package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	debug.SetGCPercent(400) // thousands of records in a small heap
	goleak.VerifyTestMain(m)
}

// backend is a backend in memory that can be told to fail, and that remembers
// what it was given in which order.
type backend struct {
	storagetest.Memory

	mu      sync.Mutex
	fault   error
	gate    chan struct{} // holds up writes until it is closed
	written []uuid.UUID
	batches []storage.Batch
	tried   []storage.Batch // also those that failed
}

func (b *backend) Write(ctx context.Context, batch *storage.Batch) error {
	b.mu.Lock()
	fault, gate := b.fault, b.gate
	b.tried = append(b.tried, *batch)
	b.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fault != nil {
		return fault
	}
	if err := b.Memory.Write(ctx, batch); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range batch.Records {
		b.written = append(b.written, r.ID)
	}
	b.batches = append(b.batches, *batch)
	return nil
}

func (b *backend) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = err
}

// block holds up writes until the function that it returns is called.
func (b *backend) block() (unblock func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gate := make(chan struct{})
	b.gate = gate
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(gate)
		b.gate = nil
	})
}

func (b *backend) ids() []uuid.UUID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.written)
}

// settled counts the losses of a reason before the journal's position.
func settled(j *Journal, reason string) (n int64) {
	for _, l := range settledLosses(j) {
		if l.Reason == reason {
			n += l.Count
		}
	}
	return n
}

func settledLosses(j *Journal) []storage.Loss {
	j.ledger.mu.Lock()
	defer j.ledger.mu.Unlock()
	return slices.Clone(j.ledger.drained)
}

func open(t testing.TB, b storage.Backend, o Options) *Journal {
	t.Helper()
	if o.firstSegment == 0 {
		o.firstSegment = 1
	}
	j, err := Open(t.Context(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		balanced(t, j)
		j.Close(context.Background())
	})
	return j
}

// abandon ends a journal as a crash does, but for the lock: nothing is drained
// or written.
func abandon(j *Journal) {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.maintenance.stop()
	j.delivery.stop()
	signal(j.delivery.wake)
	<-j.delivery.ended
	<-j.maintenance.ended
	j.shut()
}

func flush(t testing.TB, j *Journal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := j.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

func numbered(n int) uuid.UUID {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[8:], uint64(n)+1)
	return u
}

func sample(n int) (*storage.Record, *storage.Content) {
	r := &storage.Record{
		ID: numbered(n), Org: "acme", CreatedAt: storage.Timestamp(1_700_000_000_000 + n),
		Provider: "openai", Dialect: plugins.Chat, Model: "gpt-5", Path: "/v1/chat/completions",
		Latency: plugins.KnownDuration(time.Duration(n) * time.Millisecond), Status: plugins.Known(200), UserID: fmt.Sprint("user", n%7),
		Properties: map[string]string{"env": "test"},
	}
	r.Usage.Input, r.Usage.Output = plugins.Known(12), plugins.Known(0)
	c := &storage.Content{
		Request:  storage.Body{Type: "application/json", Data: fmt.Appendf(nil, `{"n":%d,"messages":[{"role":"user","content":%q}]}`, n, strings.Repeat("word ", n%40))},
		Response: storage.Body{Type: "application/json", Data: fmt.Appendf(nil, `{"id":"chatcmpl-%d"}`, n)},
	}
	switch n % 4 {
	case 1: // a stream
		r.Stream = true
		c.Response = storage.Body{Type: "text/event-stream", Data: []byte(strings.Join([]string{
			`data: {"id":"c","object":"chat.completion.chunk","model":"gpt-5","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}`,
			`data: {"id":"c","object":"chat.completion.chunk","model":"gpt-5","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`,
			"data: [DONE]", ""}, "\n\n"))}
	case 2: // bodies that are written from where they are
		c.Request.Data = append(c.Request.Data, strings.Repeat("x", borrowSize+n%1000)...)
		c.Response.Data = append(c.Response.Data, strings.Repeat("y", 2*borrowSize)...)
	case 3: // an omitted request, and inputs
		c.Request = storage.Body{}
		c.Inputs = map[string]string{"topic": "weirs"}
	}
	return r, c
}

func appendSample(t testing.TB, j *Journal, n int) *storage.Record {
	t.Helper()
	r, c := sample(n)
	j.Begin(r)
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	return r
}

// wantContent says whether the stored content of record n reads as it must.
func wantContent(t testing.TB, j *Journal, ref storage.ContentRef, n int) {
	t.Helper()
	r, _ := sample(n)
	r.Content = ref
	wantContentOf(t, j, r, n)
}

// wantContentOf fails unless a record has the content of the sample n.
func wantContentOf(t testing.TB, j *Journal, r *storage.Record, n int) {
	t.Helper()
	got, err := j.Contents().Content(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	_, want := sample(n)
	want.Response.Data, want.Response.Type = observe.Transcript(r.Dialect).Stored(want.Response.Type, want.Response.Data)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("content of record %d at %v is\n%+v, want\n%+v", n, r.Content, got, want)
	}
}

func files(t testing.TB, dir, suffix string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAppendedRecordsReachTheBackend(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir()})
	var want []*storage.Record
	for n := range 20 {
		want = append(want, appendSample(t, j, n))
	}
	flush(t, j)
	for n, r := range want {
		got, err := b.Request(t.Context(), r.Key())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, r) {
			t.Errorf("the backend has\n%+v, want\n%+v", got, r)
		}
		wantContent(t, j, r.Content, n)
	}
	if s := j.Status(); s.Appended != 20 || s.Drained != 20 || s.PendingRecords != 0 || s.PendingBytes != 0 || s.Writes.Count == 0 || s.Drains.Count == 0 {
		t.Errorf("status is %+v", s)
	}
}

func TestRecordIsInTheBackendWithoutFlush(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir()})
	for n := range 3 {
		r := appendSample(t, j, n)
		eventually(t, "the record is in the backend", func() bool { return !j.Pending(r.Key()) })
		if _, err := b.Request(t.Context(), r.Key()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFactsAndMediaAndNoContent(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir()})
	r, _ := sample(0)
	image := `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]}`
	c := &storage.Content{Request: storage.Body{Type: "application/json", Data: []byte(image)}, Media: true}
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	if err := j.AppendAnnotation(&storage.Annotation{Org: "acme", RequestID: r.ID, At: 5, Scores: map[string]float64{"quality": 0.5}}); err != nil {
		t.Fatal(err)
	}
	bare, _ := sample(1)
	if err := j.Append(bare, nil); err != nil {
		t.Fatal(err)
	}
	omitted, _ := sample(2)
	if err := j.Append(omitted, storagetest.Kept(omitted, &storage.Content{Request: storage.Body{Type: "application/json"}})); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	got, err := b.Request(t.Context(), r.Key())
	if err != nil {
		t.Fatal(err)
	}
	if want := transcript.Assets(c.Request.Data); len(want) != 1 || !slices.Equal(got.Assets, want) {
		t.Errorf("assets are %v, want %v", got.Assets, want)
	}
	if got.Scores["quality"] != 0.5 {
		t.Errorf("scores are %v", got.Scores)
	}
	for _, r := range []*storage.Record{bare, omitted} {
		if r.Content != (storage.ContentRef{}) {
			t.Errorf("a record without content refers to %v", r.Content)
		}
	}
	// An amendment without content keeps the content, and what follows from it.
	r.Finish = "stop"
	if err := j.Append(r, nil); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	if got, err = b.Request(t.Context(), r.Key()); err != nil || got.Finish != "stop" || got.Content != r.Content || len(got.Assets) != 1 {
		t.Errorf("the amended record is %+v, %v", got, err)
	}
}

func TestClaims(t *testing.T) {
	b := &backend{}
	unblock := b.block()
	defer unblock()
	j := open(t, b, Options{Dir: t.TempDir()})
	r, c := sample(0)
	elsewhere := storage.RecordKey{Org: "globex", ID: r.ID}
	free := func(state string) {
		t.Helper()
		if !j.Claim(t.Context(), elsewhere) {
			t.Fatalf("an id that another organisation %s cannot be claimed", state)
		}
		j.Release(elsewhere)
	}
	if !j.Claim(t.Context(), r.Key()) {
		t.Fatal("a fresh id cannot be claimed")
	}
	if j.Claim(t.Context(), r.Key()) {
		t.Fatal("an id in flight can be claimed again")
	}
	free("has in flight")
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	j.Release(r.Key())
	if !j.Pending(r.Key()) || j.Pending(elsewhere) {
		t.Error("a record is pending in its own organisation alone")
	}
	if j.Claim(t.Context(), r.Key()) {
		t.Fatal("a pending id can be claimed")
	}
	free("has in the journal")
	unblock()
	flush(t, j)
	free("has")
	if j.Claim(t.Context(), r.Key()) {
		t.Fatal("an id that the backend has can be claimed")
	}
	other := storage.RecordKey{Org: "acme", ID: numbered(1)}
	for range 2 {
		if !j.Claim(t.Context(), other) {
			t.Fatal("a released id cannot be claimed")
		}
		j.Release(other)
	}
}

func TestOneProcessADirectory(t *testing.T) {
	dir := t.TempDir()
	open(t, &backend{}, Options{Dir: dir})
	_, err := Open(t.Context(), &backend{}, Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir+" is in use") {
		t.Fatalf("the second journal opens with %v", err)
	}
}

func TestFilesAreOfTheOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	j := open(t, &backend{}, Options{Dir: dir})
	appendSample(t, j, 0)
	j.Close(t.Context())
	for _, path := range append(files(t, dir, ""), dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}

func TestClosed(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir()})
	appendSample(t, j, 0)
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(b.ids()) != 1 {
		t.Error("Close did not drain")
	}
	r, c := sample(1)
	if err := j.Append(r, storagetest.Kept(r, c)); !errors.Is(err, errClosed) {
		t.Errorf("appending to a closed journal: %v", err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestCloseAmongAppends(t *testing.T) {
	for range 20 {
		b := &backend{}
		j := open(t, b, Options{Dir: t.TempDir()})
		var kept atomic.Int64
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for n := range 50 {
					r, c := sample(1000*g + n)
					if err := j.Append(r, storagetest.Kept(r, c)); err == nil {
						kept.Add(1)
					} else if !errors.Is(err, errClosed) {
						t.Error(err)
					}
				}
			})
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if got := int64(len(b.ids())); got != kept.Load() {
			t.Fatalf("%d appends succeed, %d reach the backend", kept.Load(), got)
		}
	}
}
