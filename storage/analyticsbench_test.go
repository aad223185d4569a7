package storage_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// madeRows are rows out of thin air, in the order of time: they cost almost
// nothing, so that what aggregates do shows. They are of 90 days.
type madeRows struct{ rows, groups int }

func (m madeRows) Scan(s *storage.Scan) error {
	const batches = 16 // of a part
	sums, groups := s.Begin(nil), make([]int, m.groups+1)
	for i := range groups {
		groups[i] = i
	}
	first := at("2026-08-20T00:00:00Z")
	step := 90 * day / storage.Timestamp(m.rows)
	random := uint32(1)
	for begin := 0; begin < m.rows; begin += storage.BatchRows {
		n := min(storage.BatchRows, m.rows-begin)
		b := storage.RowBatch{
			Len: n, Groups: [][]int{make([]int, n)}, Attempt: make([]bool, n), CreatedAt: make([]storage.Timestamp, n), RespondedAt: make([]storage.Timestamp, n),
			Status: slices.Repeat([]plugins.Count{plugins.Known(200)}, n), Latency: slices.Repeat([]plugins.Duration{plugins.KnownDuration(1500 * time.Millisecond)}, n),
			Cost: slices.Repeat([]plugins.Cost{plugins.KnownCost(2_000_000)}, n), Input: slices.Repeat([]plugins.Count{plugins.Known(100)}, n), Output: slices.Repeat([]plugins.Count{plugins.Known(20)}, n),
			EndState: make([]storage.EndState, n), TimeToFirstToken: make([]plugins.Duration, n), CacheRead: make([]plugins.Count, n), CacheWrite: make([]plugins.Count, n), Reasoning: make([]plugins.Count, n),
			CacheSavings: make([]plugins.Cost, n), CacheLoss: make([]plugins.Cost, n), Cached: make([]bool, n), SavedCost: make([]plugins.Cost, n), RoutingSavings: make([]plugins.Cost, n),
			Score: slices.Repeat([]float64{0.5}, n),
		}
		for i := range n {
			random = random*1664525 + 1013904223
			b.Groups[0][i] = 1 + int(random>>8)%m.groups
			b.CreatedAt[i] = first + storage.Timestamp(begin+i)*step
			b.RespondedAt[i] = b.CreatedAt[i] + 1500
		}
		more := sums.Add(&b)
		if n < storage.BatchRows || begin/storage.BatchRows%batches == batches-1 || !more {
			sums.End()
			if !s.Merge(sums, [][]int{groups}) {
				break
			}
			sums = s.Begin(sums)
		}
	}
	return nil
}

func (madeRows) Keys(_ int, groups []int) (keys []storage.Key) {
	for _, group := range groups {
		keys = append(keys, storage.Key{ID: fmt.Sprint(group)})
	}
	return keys
}

func (madeRows) Limits() (groups, cells int) { return 100_000, 10_000_000 }

func (madeRows) Err() error { return nil }

// BenchmarkAnalytics tells the time for each of a million rows.
func BenchmarkAnalytics(b *testing.B) {
	const rows = 1_000_000
	users := &storage.UserQuery{Filter: storage.All{}, Window: storage.Always, Limit: 50}
	overview := &storage.UserOverviewQuery{Filter: storage.All{}, Window: storage.Always, Series: storage.Series{Quantile: storage.DefaultQuantile}}
	sessions := &storage.SessionQuery{Filter: storage.All{}, Window: storage.Always, Limit: 50}
	metrics := &storage.SessionMetricsQuery{Filter: storage.All{}, Window: storage.Always, Series: storage.Series{Quantile: storage.DefaultQuantile}}
	scores := &storage.ScoreQuery{Filter: storage.All{}, Window: storage.Always, Increment: storage.ByMonth}
	for _, bench := range []struct {
		name   string
		groups int
		answer func(storage.Rows) (any, error)
	}{
		{"users", 10_000, func(r storage.Rows) (any, error) { return users.Answer(context.Background(), grouped{r}) }},
		{"overview", 1_000, func(r storage.Rows) (any, error) { return overview.Answer(context.Background(), grouped{r}) }},
		{"sessions", 50_000, func(r storage.Rows) (any, error) { return sessions.Answer(context.Background(), grouped{r}) }},
		{"session metrics", 50_000, func(r storage.Rows) (any, error) { return metrics.Answer(context.Background(), grouped{r}) }},
		{"scores", 10, func(r storage.Rows) (any, error) { return scores.Answer(context.Background(), grouped{r}) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bench.answer(madeRows{rows, bench.groups}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
