package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// smallChunks is a backend, not yet open, of which few records fill many chunks.
func smallChunks(t *testing.T) *Backend {
	b := New(filepath.Join(t.TempDir(), "weir.db"))
	b.columns.ChunkRows = 32
	return b
}

// follower does the same to a backend and to one that keeps plain records.
type follower struct {
	*testing.T
	*rand.Rand
	got     *Backend
	want    storagetest.Memory
	records []*storage.Record
	host    *storage.Host
	n       uint32
}

func newFollower(t *testing.T, got *Backend, seed uint64, limit int) *follower {
	f := &follower{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), got: got}
	var contents storagetest.Contents
	f.records, contents = storagetest.Records(f.Rand, 200)
	f.got.tailRows, f.got.columns.Limits.Totals = limit, 1+int(seed)*10
	f.host = hostOf(contents)
	for _, b := range []storage.Backend{f.got, &f.want} {
		if _, err := b.Open(t.Context(), f.host); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
	}
	return f
}

// change writes records, new or amended, and annotations, prunes or forgets.
func (f *follower) change() {
	f.Helper()
	switch f.IntN(10) {
	case 0:
		f.prune(f.records[f.IntN(len(f.records))].CreatedAt)
		return
	case 1:
		f.got.tails.drop()
	case 2:
		f.damage()
	case 3:
		f.reopen()
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

func (f *follower) reopen() {
	f.Helper()
	if err := f.got.Close(); err != nil {
		f.Fatal(err)
	}
	if _, err := f.got.Open(f.Context(), f.host); err != nil {
		f.Fatal(err)
	}
}

// damage changes or deletes a file of columns.
func (f *follower) damage() {
	f.Helper()
	files, err := os.ReadDir(f.got.columns.Dir)
	if err != nil || len(files) == 0 {
		return
	}
	path := filepath.Join(f.got.columns.Dir, files[f.IntN(len(files))].Name())
	switch data, err := os.ReadFile(path); {
	case err != nil: // it is gone meanwhile
	case f.IntN(2) == 0:
		_ = os.Remove(path)
	case len(data) > 0:
		data[f.IntN(len(data))] ^= byte(1 + f.IntN(255))
		_ = os.WriteFile(path, data, 0o600)
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

// ask asks both the same, the backend twice: the second time, it remembers sums of files.
func (f *follower) ask(q any, query func(storage.Backend) (any, error)) {
	f.Helper()
	var answers [3][]byte
	for i, backend := range []storage.Backend{f.got, f.got, &f.want} {
		answer, err := query(backend)
		if err != nil {
			f.Fatalf("%T: %v", q, err)
		}
		answers[i], _ = json.Marshal(answer)
	}
	if got, again, want := string(answers[0]), string(answers[1]), string(answers[2]); got != want || again != want {
		f.Fatalf("%T %+v\ngot   %s\nagain %s\nwant  %s", q, q, got, again, want)
	}
}

// compare asks both something.
func (f *follower) compare() {
	f.Helper()
	ctx := f.Context()
	switch f.IntN(8) {
	case 0:
		q := storagetest.UserQuery(f.Rand, f.records)
		f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 1:
		q := storagetest.UserOverviewQuery(f.Rand, f.records)
		f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 2:
		q := storagetest.SessionQuery(f.Rand, f.records)
		f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 3:
		q := storagetest.SessionMetricsQuery(f.Rand, f.records)
		f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 4:
		q := storagetest.ScoreQuery(f.Rand, f.records)
		f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 5:
		q := &storage.SessionQuery{Org: f.records[f.IntN(9)].Org, Filter: storage.All{}, Window: storage.Always, Offset: f.IntN(3) * f.IntN(20), Limit: f.IntN(50)}
		f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	case 6, 7:
		q := storagetest.MetricsQuery(f.Rand, f.records)
		if f.IntN(3) > 0 {
			q.By = storage.Dimension{Name: storage.ByProperty, Property: "Env"}
		}
		if f.IntN(3) > 0 {
			ops := []storage.Operator{storage.Equals, storage.NotEquals, storage.Contains, storage.NotContains, storage.ILike}
			texts := []string{"", "1", "%", f.records[f.IntN(len(f.records))].Properties["Env"]}
			q.Filter = and(q.Filter, &storage.Leaf{Field: field("properties"), Key: "Env", Op: ops[f.IntN(len(ops))], Text: texts[f.IntN(len(texts))]})
		}
		f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(ctx, b) })
	}
}

// A query sees a batch whole or not at all, whatever answers it: columns, the
// database, or both.
func TestAnalyticsSeeWholeBatches(t *testing.T) {
	b := smallChunks(t)
	opened(t, b)
	const users, batches = 7, 200
	ctx := t.Context()
	production := &storage.Leaf{Field: field("properties"), Key: "Environment", Text: "production"}
	refused := &storage.Leaf{Field: field("status"), Number: storage.DecimalOf(429)}
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
	for name, limit := range map[string]int{"kept": standardBounds.tailRows, "read": 0} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			b := New(filepath.Join(t.TempDir(), "weir.db"))
			b.tailRows = limit
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
	var c columnar.Chunk
	err := b.withReader(t.Context(), func(ctx context.Context, r reader) error {
		_, err := loader{&looked{Context: ctx}, r}.Between(math.MinInt64, math.MaxInt64, rows, func() *columnar.Chunk { return &c })
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if n := c.Len(); n >= rows {
		t.Errorf("%d of %d rows were read", n, rows)
	}
}
