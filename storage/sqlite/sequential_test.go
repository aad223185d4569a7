//go:build !race

package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// Answers must not depend on whether the records have room in memory.
func TestAnalytics(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"kept": standardBounds.tailRows, "read": 0} {
		t.Run(name, func(t *testing.T) {
			storagetest.RunAnalytics(t, func(t *testing.T) storage.Backend {
				b := smallChunks(t)
				b.tailRows, b.columns.Limits.Totals = limit, 7
				return b
			}, storagetest.Relaxed{})
		})
	}
}

// Whatever happens to records between queries, answers are those of a backend
// that keeps plain records.
func TestAnalyticsFollowWrites(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"kept": standardBounds.tailRows, "almost full": 50, "read": 0} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				small := smallChunks(t)
				small.columns.MaxProperties = []int{0, 3, small.columns.MaxProperties}[seed]
				f := newFollower(t, small, seed, limit)
				files := 0
				for range 40 {
					f.change()
					files += len(columnFilesOf(t, f.got.columns.Dir))
					for range 4 {
						f.compare()
					}
				}
				if files == 0 {
					t.Error("there have never been files of columns")
				}
			})
		}
	}
}

// The largest groups are the same, however many groups there are.
func TestLargestGroups(t *testing.T) {
	for _, users := range []int{3, 100, 1000} {
		f := newFollower(t, New(filepath.Join(t.TempDir(), "weir.db")), 1, standardBounds.tailRows)
		batch := &storage.Batch{End: storage.Position{Segment: 1, Ordinal: 1}}
		for i := range 1000 {
			r := *f.records[i%len(f.records)]
			r.ID, r.UserID = orderedID(r.CreatedAt, f.Rand), fmt.Sprint(f.IntN(users))
			batch.Records = append(batch.Records, &r)
		}
		for _, b := range []storage.Backend{f.got, &f.want} {
			if err := b.Write(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		for _, bucket := range []storage.BucketWidth{storage.BucketAuto, storage.BucketNone} {
			q := &storage.MetricsQuery{Org: f.records[0].Org, Filter: storage.All{}, Window: storage.Window{From: f.records[0].CreatedAt - 1000*3600*24*30, To: f.records[0].CreatedAt + 1000*3600*24*30}, By: storage.Dimension{Name: storage.ByUser}, Bucket: bucket, Limit: 5, Compare: true}
			f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(t.Context(), b) })
			for _, key := range storage.TotalKeys() {
				q.Sort = storage.GroupSort{Key: key, Desc: f.IntN(2) == 0}
				q.After = nil
				f.ask(q, func(b storage.Backend) (any, error) {
					answer, err := q.Answer(t.Context(), b)
					if err == nil && b == &f.want {
						q.After = q.Cursor(&answer.Groups[f.IntN(len(answer.Named()))])
					}
					return answer, err
				})
				f.ask(q, func(b storage.Backend) (any, error) { return q.Answer(t.Context(), b) })
			}
		}
	}
}

// More names than a list may have are decided on in another way, with the same
// answers.
func TestFiltersOfManyNames(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	records, contents := storagetest.Records(newTraffic(1).r, 200)
	write(t, b, storagetest.Batch(records, storage.Position{Segment: 1}))
	for _, most := range []int{b.listedNames, 10, 2, 0} {
		b.listedNames, b.fewNames = most, most/3
		for _, op := range []storage.Operator{storage.Like, storage.ILike, storage.Contains, storage.NotContains} {
			for _, text := range []string{"", "a", "alpha", "%", "%a%", "nobody"} {
				for _, l := range []*storage.Leaf{{Field: field("user_id")}, {Field: field("properties"), Key: "Env"}, {Field: field("assets")}} {
					l.Op, l.Text = op, text
					q := &storage.RequestQuery{Org: "acme", Filter: l, Limit: 1000}
					got, err := b.Requests(t.Context(), q)
					if want := storage.Evaluate(q, records, contents.Of); err != nil || len(got) != len(want) {
						t.Errorf("at most %d names, %s: %d records, %v, want %d", most, storage.AppendJSON(nil, l), len(got), err, len(want))
					}
				}
			}
		}
	}
}
