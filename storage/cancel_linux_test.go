package storage_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/storage"
)

var errLeft = errors.New("the client left")

// A text operator ends with its query, however long it would take.
func TestTextMatcherEnds(t *testing.T) {
	many := strings.Repeat("a", 1<<20)
	for _, test := range []struct {
		op          storage.Operator
		text, value string
	}{
		{storage.Like, many, "%" + many[:1<<19] + "b"}, // hours
		{storage.ILike, many, "%" + many[:1<<19] + "b"},
		{storage.Contains, strings.Repeat("baaaaaaa", 1<<17), strings.Repeat("a", 8) + "b"},
		{storage.Contains, strings.Repeat("ä", 1<<19), strings.Repeat("Ä", 1<<18) + "b"},
		{storage.NotContains, strings.Repeat("baaaaaaa", 1<<17), strings.Repeat("a", 8) + "b"},
	} {
		looks := 0
		p := storage.NewCancelCheck(func() error { looks++; return errLeft })
		storage.TextMatcher(test.op, test.value, p)(test.text)
		if looks != 1 {
			t.Errorf("%v looked %d times whether its query had ended, want once", test.op, looks)
		}
	}
}

// watched are rows that note for how long nobody looks whether the query ended.
type watched struct {
	storage.Rows
	begun, last time.Duration // of this thread's time
	longest     time.Duration
	left        int // looks until the query ends, -1 for never
}

func (w *watched) Scan(s *storage.Scan) error {
	watching := *s
	watching.Begin = func(unused storage.PartialSums) storage.PartialSums {
		if unused != nil {
			unused = unused.(watchedSums).PartialSums
		}
		return watchedSums{s.Begin(unused), w}
	}
	watching.Merge = func(sums storage.PartialSums, groups [][]int) bool {
		return s.Merge(sums.(watchedSums).PartialSums, groups)
	}
	return w.Rows.Scan(&watching)
}

type watchedSums struct {
	storage.PartialSums
	watched *watched
}

func (s watchedSums) Add(b *storage.RowBatch) bool {
	s.watched.look()
	return s.PartialSums.Add(b)
}

func (w *watched) look() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err) // only for clocks that are none
	}
	if w.begun == 0 {
		w.begun, w.last = time.Duration(now.Nano()), time.Duration(now.Nano())
	}
	w.longest = max(w.longest, time.Duration(now.Nano())-w.last)
	w.last = time.Duration(now.Nano())
}

func (w *watched) Err() error {
	w.look()
	if w.left == 0 {
		return errLeft
	}
	w.left--
	return nil
}

// Answers look all the time whether their query has ended, and end with it.
func TestAnswersEnd(t *testing.T) {
	byTwo := []storage.UserSort{{Key: storage.UserTotalRequests}, {Key: storage.UserCost}}
	users := &storage.UserQuery{Filter: storage.All{}, Window: storage.Always, Sort: byTwo, Limit: 50}
	overview := &storage.UserOverviewQuery{Filter: storage.All{}, Window: storage.Always, Series: storage.Series{Quantile: 990, Interquartile: true}}
	sessions := &storage.SessionQuery{Filter: storage.All{}, Window: storage.Always, Search: "1", Limit: 50}
	metrics := &storage.SessionMetricsQuery{Filter: storage.All{}, Window: storage.Always, Series: storage.Series{Quantile: 990, Interquartile: true}}
	scores := &storage.ScoreQuery{Filter: storage.All{}, Window: storage.Always, Increment: storage.ByMonth}
	const rows = 100_000
	for _, test := range []struct {
		name   string
		groups int
		answer func(storage.Rows) error
	}{
		{"users", 50_000, func(r storage.Rows) error {
			_, err := users.Answer(rowsContext{context.Background(), r}, grouped{r})
			return err
		}},
		{"overview", 50_000, func(r storage.Rows) error {
			_, err := overview.Answer(rowsContext{context.Background(), r}, grouped{r})
			return err
		}},
		{"sessions", 50_000, func(r storage.Rows) error {
			_, err := sessions.Answer(rowsContext{context.Background(), r}, grouped{r})
			return err
		}},
		{"session metrics", 50_000, func(r storage.Rows) error {
			_, err := metrics.Answer(rowsContext{context.Background(), r}, grouped{r})
			return err
		}},
		{"scores", 1, func(r storage.Rows) error {
			_, err := scores.Answer(rowsContext{context.Background(), r}, grouped{r})
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			best, whole := time.Hour, time.Hour
			for range 3 { // as the garbage collector may have its turn
				w := &watched{Rows: madeRows{rows, test.groups}, left: -1}
				if err := test.answer(w); err != nil {
					t.Fatal(err)
				}
				w.look()
				best, whole = min(best, w.longest), min(whole, w.last-w.begun)
			}
			t.Logf("nobody looked for %v of %v", best, whole)
			if best > max(whole/10, 5*time.Millisecond) {
				t.Errorf("nobody looked for %v of %v", best, whole)
			}
			w := &watched{Rows: madeRows{rows, test.groups}}
			if err := test.answer(w); !errors.Is(err, errLeft) {
				t.Errorf("error %v of a query that has ended", err)
			}
		})
	}
}

// rowsContext is the context of the rows' query.
type rowsContext struct {
	context.Context
	storage.Rows
}

func (c rowsContext) Err() error { return c.Rows.Err() }
