//go:build linux

package sqlite

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirhq/weir/storage"
)

// BenchmarkAnalytics measures what docs/queries.md promises, on a database of
// -sqlite.records records: first the queries alone, then while 2,000 records a
// second are written. cpu-us counts the process's CPU time in microseconds, and peak-MB
// is the most memory that the process had meanwhile.
func BenchmarkAnalytics(b *testing.B) {
	ctx := b.Context()
	s, t, last := filled(b)
	for more := true; more; {
		var err error
		if more, err = s.files.next(ctx, s.columns.ChunkRows/32); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("open", func(b *testing.B) {
		measure(b, func() error {
			if err := s.Close(); err != nil {
				return err
			}
			_, err := s.Open(ctx, hostOf(noContents{}))
			return err
		})
	})
	b.Run("load", func(b *testing.B) {
		measure(b, func() error {
			s.tails.drop()
			_, err := (&storage.UserQuery{Org: "nobody", Filter: storage.All{}, Window: storage.Always}).Answer(ctx, s)
			return err
		})
	})
	measureAnalytics(b, s, last)
	b.Run("writing", func(b *testing.B) {
		ctx, stop := context.WithCancel(ctx)
		written := make(chan error)
		go func() { written <- writeSteadily(ctx, s, t) }()
		measureAnalytics(b, s, last)
		stop()
		if err := <-written; err != nil {
			b.Error(err)
		}
	})
}

// writeSteadily writes 2,000 records a second.
func writeSteadily(ctx context.Context, s *Backend, t *traffic) error {
	const batch = 200
	for tick := time.Tick(time.Second / (2000 / batch)); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
			if err := s.Write(context.Background(), t.batch(batch)); err != nil {
				return err
			}
		}
	}
}

// asked is a query that is measured.
type asked struct {
	name string
	do   func(context.Context) error
}

func measureAnalytics(b *testing.B, s *Backend, last *storage.Record) {
	for _, q := range analytics(s, last) {
		b.Run(q.name, func(b *testing.B) { measure(b, func() error { return q.do(b.Context()) }) })
	}
}

func analytics(s *Backend, last *storage.Record) []asked {
	month := storage.Window{From: last.CreatedAt - 30*24*3600*1000, To: last.CreatedAt}
	byCost := []storage.UserSort{{Key: storage.UserCost, Desc: true}}
	model := &storage.Leaf{Field: field("model"), Text: "gpt-5"}
	production := &storage.Leaf{Field: field("properties"), Key: "Environment", Text: "production"}
	p99 := storage.Series{Quantile: 990}
	all := storage.Window{From: last.CreatedAt - storage.Timestamp(benchmarkSpan.Milliseconds()), To: last.CreatedAt}
	week := storage.Window{From: last.CreatedAt - 7*24*3600*1000, To: last.CreatedAt}
	usersOf := func(f storage.Filter, w storage.Window) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := (&storage.UserQuery{Org: "default", Filter: f, Window: w, Sort: byCost, Limit: 100}).Answer(ctx, s)
			return err
		}
	}
	users := func(f storage.Filter) func(context.Context) error { return usersOf(f, storage.Always) }
	metrics := func(by storage.Dimension, f storage.Filter) func(context.Context) error {
		return func(ctx context.Context) error {
			q := &storage.MetricsQuery{Org: "default", Filter: f, Window: month, By: by, Bucket: storage.BucketAuto, Limit: 10, Compare: by == (storage.Dimension{})}
			_, err := q.Answer(ctx, s)
			return err
		}
	}
	overview := func(w storage.Window) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := (&storage.UserOverviewQuery{Org: "default", Filter: storage.All{}, Window: w, Series: p99}).Answer(ctx, s)
			return err
		}
	}
	sessionMetrics := func(f storage.Filter, w storage.Window) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := (&storage.SessionMetricsQuery{Org: "default", Filter: f, Window: w, Series: p99}).Answer(ctx, s)
			return err
		}
	}
	sums := func(f storage.Filter, w storage.Window, width storage.Timestamp, by ...storage.Dimension) func(context.Context) error {
		return func(ctx context.Context) error {
			q := &storage.GroupQuery{Org: "default", Filter: f, Window: w, By: by}
			if width > 0 {
				q.Buckets = storage.Buckets{Start: w.From, Width: width, Len: int((w.To-w.From)/width) + 1}
			}
			return s.Groups(ctx, q, func(*storage.GroupTotals) error { return nil })
		}
	}
	byModel := storage.Dimension{Name: "model"}
	accurate := &storage.Leaf{Field: field("scores"), Key: "accuracy", Op: storage.GT, Number: storage.DecimalOf(0.5)}
	queries := []asked{
		{"sums by model", sums(storage.All{}, storage.Always, 0, byModel)},
		{"sums by model and day", sums(storage.All{}, all, 24*3600*1000, byModel)},
		{"sums by user", sums(storage.All{}, storage.Always, 0, storage.Dimension{Name: storage.ByUser})},
		{"sums by property Tenant", sums(storage.All{}, storage.Always, 0, storage.Dimension{Name: storage.ByProperty, Property: "Tenant"})},
		{"sums by property name", sums(storage.All{}, storage.Always, 0, storage.Dimension{Name: storage.ByPropertyName})},
		{"sums by model of slow ones", sums(&storage.Leaf{Field: field("latency"), Op: storage.GT, Number: storage.DecimalOf(4000)}, storage.Always, 0, byModel)},
		{"sums by model of a new session", sums(&storage.Leaf{Field: field("session_id"), Text: last.SessionID}, storage.Always, 0, byModel)},
		{"sums by model of a score", sums(accurate, storage.Always, 0, byModel)},
		{"sums by model of a text of scores in a week", sums(&storage.Leaf{Field: field("scores_column"), Op: storage.Contains, Text: "accuracy"}, week, 0, byModel)},
		{"users", users(storage.All{})},
		{"users of a model", users(model)},
		{"users of a property", users(production)},
		{"users of a week", usersOf(storage.All{}, week)},
		{"first screen of all time", func(ctx context.Context) error { return firstScreen(ctx, s, storage.Always, last.CreatedAt) }},
		{"first screen of 30 days", func(ctx context.Context) error { return firstScreen(ctx, s, month, last.CreatedAt) }},
		{"user overview", overview(month)},
		{"user overview of all time", overview(all)},
		{"newest sessions", func(ctx context.Context) error {
			_, err := (&storage.SessionQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 50}).Answer(ctx, s)
			return err
		}},
		{"newest sessions of a model", func(ctx context.Context) error {
			_, err := (&storage.SessionQuery{Org: "default", Filter: model, Window: storage.Always, Limit: 50}).Answer(ctx, s)
			return err
		}},
		{"dearest sessions of all time", func(ctx context.Context) error {
			q := &storage.SessionQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 50, Sort: []storage.SessionSort{{Key: storage.SessionTotalCost, Desc: true}}}
			_, err := q.Answer(ctx, s)
			return err
		}},
		{"sessions of a name", func(ctx context.Context) error {
			_, err := (&storage.SessionQuery{Org: "default", Filter: storage.All{}, Window: month, Search: "abcde", Limit: 50}).Answer(ctx, s)
			return err
		}},
		{"session metrics", sessionMetrics(storage.All{}, month)},
		{"session metrics of dear ones", sessionMetrics(&storage.Leaf{Field: storage.LookupField(storage.SessionsView, "session_total_cost"), Op: storage.GT, Number: storage.DecimalOf(0.01)}, month)},
		{"session metrics of sessions with a model", sessionMetrics(or(model, &storage.Leaf{Field: storage.LookupField(storage.SessionsView, "session_total_cost"), Op: storage.GT, Number: storage.DecimalOf(0.01)}), month)},
		{"session metrics of all time", sessionMetrics(storage.All{}, all)},
		{"session metrics of all time, twice at once", func(ctx context.Context) error {
			both, ctx := errgroup.WithContext(ctx)
			for range 2 {
				both.Go(func() error { return sessionMetrics(storage.All{}, all)(ctx) })
			}
			return both.Wait()
		}},
		{"scores", func(ctx context.Context) error {
			q := &storage.ScoreQuery{Org: "default", Filter: storage.All{}, Window: month, Increment: storage.ByHour}
			q.Window.From = last.CreatedAt - 14*24*3600*1000
			_, err := q.Answer(ctx, s)
			return err
		}},
		{"metrics", metrics(storage.Dimension{}, storage.All{})},
		{"metrics by model", metrics(storage.Dimension{Name: "model"}, storage.All{})},
		{"metrics by user of a model", metrics(storage.Dimension{Name: storage.ByUser}, model)},
		{"metrics by property", metrics(storage.Dimension{Name: storage.ByProperty, Property: "Environment"}, storage.All{})},
		{"facets", func(ctx context.Context) error {
			q := &storage.FacetQuery{Org: "default", Filter: storage.All{}, Window: month}
			for _, name := range []storage.DimensionName{"model", "provider", "user_id", "status", "end_state", "stream", "request_path", "finish_reason"} {
				q.Fields = append(q.Fields, storage.Dimension{Name: name})
			}
			_, err := q.Answer(ctx, s)
			return err
		}},
		{"facet of users of all time", func(ctx context.Context) error {
			_, err := (&storage.FacetQuery{Org: "default", Filter: storage.All{}, Window: all, Fields: []storage.Dimension{{Name: storage.ByUser}}}).Answer(ctx, s)
			return err
		}},
		{"facet of property names", func(ctx context.Context) error {
			_, err := (&storage.FacetQuery{Org: "default", Filter: storage.All{}, Window: month, Fields: []storage.Dimension{{Name: storage.ByPropertyName}}}).Answer(ctx, s)
			return err
		}},
		{"point", func(ctx context.Context) error {
			_, err := s.Request(ctx, storage.RecordKey{Org: "default", ID: last.ID})
			return err
		}},
	}
	for name, q := range benchmarkQueries(last) {
		queries = append(queries, asked{name, func(ctx context.Context) error {
			_, err := s.Requests(ctx, q)
			return err
		}})
	}
	return queries
}

// firstScreen asks at once for what the dashboard shows first.
func firstScreen(ctx context.Context, s *Backend, w storage.Window, now storage.Timestamp) error {
	const day = 24 * 3600 * 1000
	today := now / day * day
	byCost := storage.GroupSort{Key: "cost", Desc: true}
	questions, ctx := errgroup.WithContext(ctx)
	for _, q := range []*storage.MetricsQuery{
		{Window: w, By: storage.Dimension{Name: "model"}, Bucket: storage.BucketAuto, Sort: byCost, Limit: 5, Compare: w != storage.Always},
		{Window: w, By: storage.Dimension{Name: storage.ByUser}, Bucket: storage.BucketNone, Sort: byCost, Limit: 5},
		{Window: storage.Window{From: today - 20*day, To: now}, Bucket: "1d", Limit: 10},
		{Window: storage.Window{From: today - 7*day, To: today - 1}, Bucket: "1d", Limit: 10},
	} {
		q.Org, q.Filter = "default", storage.All{}
		questions.Go(func() error {
			_, err := q.Answer(ctx, s)
			return err
		})
	}
	return questions.Wait()
}

// BenchmarkDeadline measures how long queries go on after their deadline, which
// comes at any time within them: late-cpu-ms is the most processor time of all.
func BenchmarkDeadline(b *testing.B) {
	s, _, last := filled(b)
	queries := analytics(s, last)
	streamed := New(s.path)
	if _, err := streamed.Open(b.Context(), hostOf(noContents{})); err != nil {
		b.Fatal(err)
	}
	defer streamed.Close()
	streamed.tails.limit = 0
	for _, q := range analytics(streamed, last)[:2] {
		queries = append(queries, asked{q.name + " of too many records", q.do})
	}
	for _, q := range queries {
		b.Run(q.name, func(b *testing.B) {
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			defer cancel()
			whole := time.Hour
			for range 2 { // the first may load
				start := time.Now()
				if err := q.do(ctx); err != nil {
					b.Fatal(err)
				}
				whole = time.Since(start)
			}
			var latest time.Duration
			for i := 0; b.Loop(); i++ {
				const parts = 16
				deadline := time.Now().Add(whole * time.Duration(1+i%(parts-1)) / parts)
				ctx, cancel := context.WithDeadline(b.Context(), deadline)
				var ended atomic.Int64 // by the process's processor time
				stop := context.AfterFunc(ctx, func() { ended.Store(int64(cpuTime())) })
				if err := q.do(ctx); err != nil && ended.Load() > 0 {
					latest = max(latest, cpuTime()-time.Duration(ended.Load()))
				}
				stop()
				cancel()
			}
			b.ReportMetric(float64(latest.Microseconds())/1000, "late-cpu-ms")
		})
	}
}
