package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

// smallChunks makes few records fill many chunks.
func smallChunks(t *testing.T) {
	rows := chunkRows
	chunkRows = 32
	t.Cleanup(func() { chunkRows = rows })
}

// Answers must not depend on whether the records have room in memory.
func TestAnalytics(t *testing.T) {
	smallChunks(t)
	for name, limit := range map[string]int{"kept": tableLimit, "streamed": 0} {
		t.Run(name, func(t *testing.T) {
			storagetest.RunAnalytics(t, func(t *testing.T) storage.Backend {
				b := New(filepath.Join(t.TempDir(), "weir.db"))
				b.tableLimit = limit
				return b
			}, storagetest.Relaxed{})
		})
	}
}

// Whatever happens to records between queries, answers are those of a backend
// that keeps plain records.
func TestAnalyticsFollowWrites(t *testing.T) {
	smallChunks(t)
	for name, limit := range map[string]int{"kept": tableLimit, "almost full": 60_000, "streamed": 0} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				f := newFollower(t, seed, limit)
				for range 40 {
					f.change()
					for range 4 {
						f.compare()
					}
				}
			}
		})
	}
}

// follower does the same to a backend and to one that keeps plain records.
type follower struct {
	*testing.T
	*rand.Rand
	got     *Backend
	want    storagetest.Memory
	records []*storage.Record
	n       uint32
}

func newFollower(t *testing.T, seed uint64, limit int) *follower {
	f := &follower{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), got: New(filepath.Join(t.TempDir(), "weir.db"))}
	var contents storagetest.Contents
	f.records, contents = storagetest.Records(f.Rand, 400)
	f.got.tableLimit = limit
	for _, b := range []storage.Backend{f.got, &f.want} {
		if _, err := b.Open(t.Context(), hostOf(contents)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
	}
	return f
}

// change writes records, new or amended, and annotations, prunes or forgets.
func (f *follower) change() {
	f.Helper()
	switch f.IntN(8) {
	case 0:
		f.prune(f.records[f.IntN(len(f.records))].CreatedAt)
		return
	case 1:
		f.got.cache.drop()
	}
	f.n++
	batch := &storage.Batch{End: storage.Position{Segment: 1, Ordinal: f.n}}
	for _, i := range f.Perm(len(f.records))[:f.IntN(60)] {
		r := *f.records[i]
		if f.IntN(4) == 0 {
			other := f.records[f.IntN(len(f.records))]
			r.CreatedAt, r.UserID, r.SessionID, r.Cost, r.AttemptOf = other.CreatedAt, other.UserID, other.SessionID, other.Cost, other.AttemptOf
		}
		batch.Records = append(batch.Records, &r)
	}
	for range f.IntN(20) {
		r := f.records[f.IntN(len(f.records))]
		tag := fmt.Sprint(f.IntN(3))
		batch.Annotations = append(batch.Annotations,
			&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Scores: r.Scores, Feedback: r.Feedback},
			&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Property: &storage.Property{Name: "Env", Value: tag}},
			&storage.Annotation{Org: r.Org, SessionID: r.SessionID, At: r.CreatedAt, Tag: &tag})
	}
	for _, b := range []storage.Backend{f.got, &f.want} {
		if err := b.Write(f.Context(), batch); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *follower) prune(before storage.Timestamp) {
	f.Helper()
	for _, b := range []storage.Backend{f.got, &f.want} {
		for more := true; more; {
			var err error
			if more, err = b.Prune(f.Context(), before); err != nil {
				f.Fatal(err)
			}
		}
	}
}

// compare asks both the same.
func (f *follower) compare() {
	f.Helper()
	ask := func(q any, query func(storage.Backend) (any, error)) {
		f.Helper()
		got, err := query(f.got)
		if err != nil {
			f.Fatalf("%T: %v", q, err)
		}
		want, err := query(&f.want)
		if err != nil {
			f.Fatal(err)
		}
		g, _ := json.Marshal(got)
		if w, _ := json.Marshal(want); string(g) != string(w) {
			f.Fatalf("%T %+v\ngot  %s\nwant %s", q, q, g, w)
		}
	}
	ctx := f.Context()
	switch f.IntN(6) {
	case 0:
		q := storagetest.UserQuery(f.Rand, f.records)
		ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 1:
		q := storagetest.UserOverviewQuery(f.Rand, f.records)
		ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 2:
		q := storagetest.SessionQuery(f.Rand, f.records)
		ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 3:
		q := storagetest.SessionMetricsQuery(f.Rand, f.records)
		ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 4:
		q := storagetest.ScoreQuery(f.Rand, f.records)
		ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 5:
		q := &storage.SessionQuery{Org: f.records[f.IntN(9)].Org, Filter: storage.All{}, Window: storage.Always, Offset: f.IntN(3) * f.IntN(20), Limit: f.IntN(50)}
		ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	}
}

// A query sees a batch whole or not at all, whatever answers it: columns, the
// database, or both.
func TestAnalyticsSeeWholeBatches(t *testing.T) {
	smallChunks(t)
	b := newBackend(t)
	const users, batches = 7, 200
	ctx := t.Context()
	production := &storage.Leaf{Field: field("properties"), Key: "Environment", Text: "production"}
	refused := &storage.Leaf{Field: field("status"), Number: 429}
	var asking sync.WaitGroup
	ask := func(f storage.Filter, right func(found []storage.User) bool) {
		asking.Go(func() {
			for cost := plugins.Nanodollars(0); cost < batches && !t.Failed(); {
				page, err := (&storage.UserQuery{Org: "default", Filter: f, Window: storage.Always, Limit: 100}).Answer(ctx, b)
				if err != nil || !right(page.Users) {
					t.Errorf("%+v, %v", page, err)
				}
				all, err := (&storage.UserQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 1}).Answer(ctx, b)
				if err != nil {
					t.Error(err)
				} else if len(all.Users) > 0 {
					cost = all.Users[0].Cost.N
				}
			}
		})
	}
	ask(and(production, refused), func(found []storage.User) bool { return len(found) == 0 })
	for _, f := range []storage.Filter{storage.All{}, production, refused} {
		ask(f, func(found []storage.User) bool {
			for _, u := range found {
				if u.Cost != found[0].Cost {
					return false
				}
			}
			return len(found) == 0 || len(found) == users
		})
	}
	// Each batch amends the same records: in production they succeed.
	traffic := newTraffic(users)
	batch := traffic.batch(users)
	for i := range int64(batches) {
		for user, r := range batch.Records {
			r.UserID, r.Cost, r.Status = fmt.Sprint("user-", user), plugins.KnownCost(plugins.Nanodollars(i+1)), plugins.Known(200)
			r.Properties = map[string]string{"Environment": "production"}
			if i%2 == 0 {
				r.Status, r.Properties = plugins.Known(429), nil
			}
		}
		write(t, b, batch)
	}
	asking.Wait()
}

// cancelling ends a context when content is read.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Content(context.Context, *storage.Record) (*storage.Content, error) {
	c.cancel()
	return nil, nil
}

func (c cancelling) Reader(storage.ContentPart) storage.ContentReader { return c }

func (cancelling) Close() {}

func TestCancelledAnalytics(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, limit := range map[string]int{"kept": tableLimit, "streamed": 0} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			b := New(filepath.Join(t.TempDir(), "weir.db"))
			b.tableLimit = limit
			if _, err := b.Open(t.Context(), hostOf(cancelling{cancel})); err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			traffic := newTraffic(1000)
			write(t, b, traffic.batch(1000))
			q := &storage.UserQuery{Org: "default", Window: storage.Always, Filter: &storage.Leaf{Field: field("request_body"), Op: storage.Contains, Text: "x"}}
			for range 2 { // ended within the query, and before
				if _, err := q.Answer(ctx, b); !errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want the context's", err)
				}
			}
		})
	}
}

// A query that cannot wait for the columns leaves them to the next.
func TestLoadOutlivesQuery(t *testing.T) {
	b := newBackend(t)
	write(t, b, newTraffic(10).batch(10))
	done, err := b.cache.turn(t.Context()) // so that the load waits
	if err != nil {
		t.Fatal(err)
	}
	q := &storage.UserQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 1}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := q.Answer(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the deadline", err)
	}
	b.cache.mu.Lock()
	loading := b.cache.loading
	b.cache.mu.Unlock()
	if loading == nil {
		t.Fatal("the load ended with the query")
	}
	done()
	<-loading
	b.cache.mu.Lock()
	loaded := b.cache.table != nil
	b.cache.mu.Unlock()
	if !loaded {
		t.Error("there are no columns")
	}
	if page, err := q.Answer(t.Context(), b); err != nil || len(page.Users) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// The texts of records that are gone are forgotten while queries go on.
func TestColumnsForget(t *testing.T) {
	smallChunks(t)
	b := newBackend(t)
	q := &storage.UserQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 1000}
	const live, rounds = 50, 20
	for n := range rounds {
		batch := &storage.Batch{End: storage.Position{Segment: 1, Ordinal: uint32(n + 1)}}
		for i := range live {
			at := storage.Timestamp(n*live + i)
			batch.Records = append(batch.Records, &storage.Record{
				ID: uuid.New(), Org: "default", CreatedAt: at, UserID: fmt.Sprint(at),
			})
		}
		write(t, b, batch)
		for more := true; more; {
			var err error
			if more, err = b.Prune(t.Context(), storage.Timestamp(n*live)); err != nil {
				t.Fatal(err)
			}
		}
		if page, err := q.Answer(t.Context(), b); err != nil || len(page.Users) != live {
			t.Fatalf("%d users of %d, %v", len(page.Users), live, err)
		}
	}
	users, deadline := rounds*live, time.Now().Add(10*time.Second)
	for users > 3*live && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
		if _, err := q.Answer(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b.cache.mu.Lock()
		users = len(b.cache.table.textsIn(userColumn).all)
		b.cache.mu.Unlock()
	}
	if users > 3*live {
		t.Errorf("%d users are kept of %d", users, live)
	}
}

// Records that were too many may be fewer later.
func TestColumnsFitAgain(t *testing.T) {
	b := newBackend(t)
	write(t, b, newTraffic(10).batch(10))
	b.cache.limit = 0
	q := &storage.UserQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 1}
	for _, kept := range []bool{false, true} {
		if kept {
			b.cache.mu.Lock()
			b.cache.limit, b.cache.large = tableLimit, b.cache.large.Add(-2*idleTimeout)
			b.cache.mu.Unlock()
		}
		for range 2 {
			if page, err := q.Answer(t.Context(), b); err != nil || len(page.Users) != 1 {
				t.Errorf("%+v, %v", page, err)
			}
		}
		b.cache.mu.Lock()
		loading := b.cache.loading
		b.cache.mu.Unlock()
		if loading != nil {
			<-loading
		}
		b.cache.mu.Lock()
		if got := b.cache.table != nil; got != kept {
			t.Errorf("the columns are kept: %v", got)
		}
		b.cache.mu.Unlock()
	}
}

// looked is a context that ends when it is looked at for the second time.
type looked struct {
	context.Context
	looks int
}

func (c *looked) Err() error {
	if c.looks++; c.looks > 1 {
		return context.Canceled
	}
	return nil
}

// Reading columns ends with its context, also between the rows of a chunk.
func TestLoadEndsWithinChunk(t *testing.T) {
	b := newBackend(t)
	const rows = 2*loadedBetweenChecks + 1
	write(t, b, newTraffic(rows).batch(rows))
	table := new(table)
	err := b.reading(t.Context(), func(ctx context.Context, r reader) error {
		_, err := newLoader(&looked{Context: ctx}, r, table).requests(math.MinInt64)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if n := len(table.requests[0].n); n >= rows {
		t.Errorf("%d of %d rows were read", n, rows)
	}
}

func TestCloseEndsLoad(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := newBackend(t)
	done, err := b.cache.turn(t.Context()) // so that the load waits
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ended := make(chan error)
	go func() {
		_, err := (&storage.UserQuery{Org: "default", Filter: storage.All{}}).Answer(t.Context(), b)
		ended <- err
	}()
	for loading := false; !loading; time.Sleep(time.Millisecond) {
		b.cache.mu.Lock()
		loading = b.cache.loading != nil
		b.cache.mu.Unlock()
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, errClosed) {
		t.Errorf("error %v, want %v", err, errClosed)
	}
}
