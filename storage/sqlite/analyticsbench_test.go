package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir/storage"
)

// BenchmarkAnalytics measures what docs/queries.md promises, on a database of
// -sqlite.records records: first the queries alone, then while 2,000 records a
// second are written. cpu-us counts the process's CPU time in microseconds.
func BenchmarkAnalytics(b *testing.B) {
	ctx := b.Context()
	s, t, last := filled(b)
	b.Run("load", func(b *testing.B) {
		measure(b, func() error {
			s.kept.drop()
			ctx, cancel := context.WithTimeout(ctx, loadTimeout)
			defer cancel()
			_, err := s.Users(ctx, &storage.UserQuery{Org: "nobody", Filter: storage.All{}, Window: storage.Always})
			return err
		})
		b.ReportMetric(float64(s.kept.table.size())/float64(t.n), "bytes/record")
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

func measureAnalytics(b *testing.B, s *Backend, last *storage.Record) {
	ctx := b.Context()
	month := storage.Window{From: last.CreatedAt - 30*24*3600*1000, To: last.CreatedAt}
	byCost := []storage.UserSort{{Key: storage.UserCost, Desc: true}}
	model := &storage.Leaf{Field: field("model"), Text: "gpt-5"}
	production := &storage.Leaf{Field: field("properties"), Key: "Environment", Text: "production"}
	p99 := storage.Series{Quantile: 990}
	users := func(f storage.Filter) func() error {
		return func() error {
			_, err := s.Users(ctx, &storage.UserQuery{Org: "default", Filter: f, Window: storage.Always, Sort: byCost, Limit: 100})
			return err
		}
	}
	for _, bench := range []struct {
		name string
		do   func() error
	}{
		{"users", users(storage.All{})},
		{"users of a model", users(model)},
		{"users of a property", users(production)},
		{"user overview", func() error {
			_, err := s.UserOverview(ctx, &storage.UserOverviewQuery{Org: "default", Filter: storage.All{}, Window: month, Series: p99})
			return err
		}},
		{"newest sessions", func() error {
			_, err := s.Sessions(ctx, &storage.SessionQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 50})
			return err
		}},
		{"newest sessions of a model", func() error {
			_, err := s.Sessions(ctx, &storage.SessionQuery{Org: "default", Filter: model, Window: storage.Always, Limit: 50})
			return err
		}},
		{"session metrics", func() error {
			_, err := s.SessionMetrics(ctx, &storage.SessionMetricsQuery{Org: "default", Filter: storage.All{}, Window: month, Series: p99})
			return err
		}},
		{"scores", func() error {
			q := &storage.ScoreQuery{Org: "default", Filter: storage.All{}, Window: month, Increment: storage.ByHour}
			q.Window.From = last.CreatedAt - 14*24*3600*1000
			_, err := s.Scores(ctx, q)
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) { measure(b, bench.do) })
	}
	for name, q := range benchmarkQueries(last) {
		b.Run(name, func(b *testing.B) {
			measure(b, func() error {
				_, err := s.Requests(ctx, q)
				return err
			})
		})
	}
	b.Run("point", func(b *testing.B) {
		measure(b, func() error {
			_, err := s.Request(ctx, "default", last.ID)
			return err
		})
	})
}
