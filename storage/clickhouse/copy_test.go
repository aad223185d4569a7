package clickhouse_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	backend "github.com/weirhq/weir/storage/clickhouse"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
	"github.com/weirhq/weir/storage/transfer"
)

// Records with bodies, scores, properties, tags and conversations are copied from SQLite to ClickHouse
// while traffic goes on, the server is killed and the copy is cut short. What came
// meanwhile follows with the next copy, and all of it comes back the same.
func TestCopyThereAndBack(t *testing.T) {
	n := 2_400
	if *copied > 0 {
		n = *copied
	}
	server := clickhousetest.Start(t, "")
	there := func() storage.Backend {
		return backend.New(backend.Config{Options: clickhouse.Options{
			Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: "weir"}, DialTimeout: time.Second,
		}})
	}
	open := func(b storage.Backend) *journal.Journal {
		t.Helper()
		j, err := journal.Open(t.Context(), b, journal.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close(context.Background()) })
		return j
	}
	from, to := open(sqlite.New(filepath.Join(t.TempDir(), "weir.db"))), open(there())
	back := open(sqlite.New(filepath.Join(t.TempDir(), "back.db")))
	start := storage.Millis(time.Now().Add(-48 * time.Hour))
	for i := range n {
		if i%10_000 == 0 {
			if err := from.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		appendCall(t, from, i, start+storage.Timestamp(i*48*3600*1000/n))
	}
	if err := from.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	traffic, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	calls := n
	running.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); traffic.Err() == nil; calls++ {
			<-tick.C
			appendCall(t, from, calls, storage.Millis(time.Now()))
		}
	})

	// The server is killed under the first copy, which then waits for it, and is cut short.
	began := time.Now()
	ctx, cut := context.WithCancel(t.Context())
	var pages atomic.Int64
	_, err := transfer.Run(ctx, transfer.Options{From: from, To: to, Window: storage.Always, Report: func(transfer.Progress) {
		switch pages.Add(1) {
		case 1:
			server.Kill()
			server.Restart(t)
		case 2:
			cut()
		}
	}})
	if err == nil || ctx.Err() == nil {
		t.Fatalf("the copy was not cut short: %v", err)
	}
	run := func(from, to *journal.Journal, until storage.Timestamp) *transfer.Summary {
		t.Helper()
		began := time.Now()
		s, err := transfer.Run(t.Context(), transfer.Options{From: from, To: to, Window: storage.Window{From: storage.Always.From, To: until}, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if c := s.Comparison; !c.Same() || c.From != c.To || c.From.Records < int64(n) {
			t.Errorf("the stores have %+v and %+v; they differ in %+v and %q", c.From, c.To, c.DifferentHours, c.DifferentAnswers)
		}
		t.Logf("%d of %d records copied, %d annotations, %d MB of bodies, and compared with %d queries, in %v", s.Copied, s.Records, s.Annotations, s.Bytes>>20, s.Comparison.Queries, time.Since(began).Round(time.Millisecond))
		return s
	}
	run(from, to, storage.Millis(time.Now())) // under traffic
	t.Logf("the copy under traffic took %v, interruption and comparison included", time.Since(began).Round(time.Millisecond))
	stop()
	running.Wait()
	if s := run(from, to, storage.Always.To); s.Records != int64(calls) {
		t.Errorf("%d records were copied, of %d", s.Records, calls)
	}
	run(to, back, storage.Always.To)
}

// appendCall appends the i-th call with all that a record may have.
func appendCall(t *testing.T, j *journal.Journal, i int, at storage.Timestamp) {
	r := &storage.Record{
		ID: uuid.Must(uuid.NewV7()), Org: []string{"acme", "globex"}[i%2], CreatedAt: at, RespondedAt: at + 900, UpdatedAt: at + 900,
		Provider: "openai", Model: "gpt-4o", Dialect: plugins.Chat, Status: plugins.Known(200), Cost: plugins.KnownCost(plugins.Nanodollars(i)),
		UserID: fmt.Sprint("user ", i%97), SessionID: fmt.Sprint("session ", i/10), Properties: map[string]string{"env": "prod"},
	}
	r.Usage.Input, r.Usage.Output = plugins.Known(int64(i%1000)), plugins.Known(int64(i%77))
	body := func(format string) storage.Body {
		return storage.Body{Type: "application/json", Data: fmt.Appendf(nil, format, r.ID)}
	}
	err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: body(`{"messages":[{"role":"user","content":"%s"}]}`), Response: body(`{"id":"%s","choices":[]}`)}))
	note := &storage.Annotation{Org: r.Org, RequestID: r.ID, At: at + 1000}
	switch i % 20 {
	case 0:
		note.Scores = map[string]float64{"quality": float64(i % 10)}
	case 1:
		note.Feedback = &storage.Feedback{ID: int64(i), Rating: true, CreatedAt: at + 1000}
	case 2:
		note.Property = &storage.Property{Name: "reviewed", Value: "yes"}
	case 3:
		tag := fmt.Sprint("tag ", i)
		note.RequestID, note.SessionID, note.Tag = uuid.Nil, r.SessionID, &tag
	case 4:
		note.RequestID, note.Conversation = uuid.Nil, &storage.ConversationChange{
			ID: fmt.Sprint("conversation ", i/40), Created: i%40 == 4, Metadata: fmt.Sprintf(`{"n":"%d"}`, i),
			Add: []string{fmt.Sprint(i)}, Items: []string{fmt.Sprintf(`{"id":"%d"}`, i)},
		}
	default:
		note = nil
	}
	if err == nil && note != nil {
		err = j.AppendAnnotation(note)
	}
	if err != nil {
		t.Error(err)
	}
}
