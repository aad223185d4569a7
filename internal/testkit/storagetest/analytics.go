package storagetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// RunAnalytics checks that random queries about users, sessions and scores are
// answered as the queries themselves answer from storage.Records, row by row and
// in JSON. open makes a backend on an empty store of its own, without calling
// Open. The flag -storagetest.cases sets the number of queries.
func RunAnalytics(t *testing.T, new func(t *testing.T) storage.Backend, relaxed Relaxed) {
	open := opener{new, relaxed}
	t.Run("random queries", func(t *testing.T) { testRandomAnalytics(t, open) })
	t.Run("pages", func(t *testing.T) { testGroupPages(t, open) })
	t.Run("errors", func(t *testing.T) { testAnalyticsErrors(t, open) })
	t.Run("large sums", func(t *testing.T) { testLargeSums(t, open) })
}

func testRandomAnalytics(t *testing.T, open opener) {
	const perRound = 100
	for seed := range uint64((*cases + perRound - 1) / perRound) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := random(seed)
			records, contents := Records(r, 300)
			sessionTags, annotations := taggedSessions(r, records)
			b := open.new(t)
			s := start(t, open, b, contents)
			batch := Batch(records, storage.Position{Segment: 1})
			batch.Annotations = append(batch.Annotations, annotations...)
			s.write(batch)
			reference := storage.Records{All: records, Content: contents.Of, Tags: sessionTags}
			for range perRound {
				checkAnalytics(t, r, b, reference)
			}
		})
	}
}

// Pages of users, sessions and groups hold each of them once if its requests do not change,
// whatever is written of others meanwhile.
func testGroupPages(t *testing.T, open opener) {
	r := random(21)
	records, contents := Records(r, 200)
	for i, rec := range records {
		rec.Org, rec.UserID, rec.SessionID, rec.SessionName, rec.AttemptOf = orgs[0], fmt.Sprint("user ", i%23), fmt.Sprint("session ", i%29), "", uuid.Nil
		rec.RootID = uuid.Nil
	}
	b := open.new(t)
	s := start(t, open, b, contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	written := uint32(0)
	interrupt := func() { // by requests of others, with the largest and the least sums
		written++
		other := *pick(r, records)
		other.ID, other.UserID, other.SessionID = id(r), fmt.Sprint("other ", written), fmt.Sprint("other ", written)
		other.Content = storage.ContentRef{}
		s.write(Batch([]*storage.Record{&other}, storage.Position{Segment: 2, Ordinal: written}))
	}
	once := func(what any, want int, next func(after string) (names []string, cursor string, err error)) {
		t.Helper()
		seen, after := make(map[string]bool), ""
		for page := 0; page == 0 || after != ""; page++ {
			names, cursor, err := next(after)
			if err != nil {
				t.Fatalf("%+v: %v", what, err)
			}
			for _, name := range names {
				if seen[name] {
					t.Errorf("%+v: %s is on two pages", what, name)
				}
				seen[name] = true
			}
			if after = cursor; page%2 == 0 {
				interrupt()
			}
		}
		for name := range seen {
			if strings.HasPrefix(name, "other") {
				delete(seen, name)
			}
		}
		if len(seen) != want {
			t.Errorf("%+v: the pages hold %d of %d", what, len(seen), want)
		}
	}
	for range 6 {
		sort := storage.UserSort{Key: pick(r, storage.UserSortKeys()), Desc: chance(r, 2)}
		once(sort, 23, func(after string) ([]string, string, error) {
			q := &storage.UserQuery{Org: orgs[0], Filter: storage.All{}, Window: storage.Always, Limit: 9, Sort: []storage.UserSort{sort}}
			return groupPage(t, q, b, after, func(page *storage.UserPage) []storage.User { return page.Users },
				func(u *storage.User) (string, string) { return u.ID, q.Cursor(u).String() })
		})
		order := storage.SessionSort{Key: pick(r, storage.SessionSortKeys()), Desc: chance(r, 2)}
		once(order, 29, func(after string) ([]string, string, error) {
			q := &storage.SessionQuery{Org: orgs[0], Filter: storage.All{}, Window: storage.Always, Limit: 9, Sort: []storage.SessionSort{order}}
			return groupPage(t, q, b, after, func(page []storage.Session) []storage.Session { return page },
				func(s *storage.Session) (string, string) { return s.SessionID, q.Cursor(s).String() })
		})
		total := storage.GroupSort{Key: pick(r, storage.TotalKeys()), Desc: chance(r, 2)}
		once(total, 23, func(after string) ([]string, string, error) {
			q := &storage.MetricsQuery{
				Org: orgs[0], Filter: storage.All{}, Window: storage.Always, By: storage.Dimension{Name: storage.ByUser}, Bucket: storage.BucketNone, Limit: 9, Sort: total,
			}
			return groupPage(t, q, b, after, (*storage.Metrics).Named,
				func(g *storage.MetricGroup) (string, string) { return *g.Key, q.Cursor(g).String() })
		})
	}
}

// groupPage asks for the page after a cursor, and returns the names that are on it and the
// cursor of the last.
func groupPage[A, G any](t *testing.T, q interface {
	storage.Question[A]
	ContinueAfter(cursor string) error
}, b storage.Grouper, after string, groups func(A) []G, place func(*G) (name, cursor string)) (names []string, cursor string, err error) {
	if after != "" {
		err = q.ContinueAfter(after)
	}
	page, failed := q.Answer(t.Context(), b)
	if err = cmp.Or(err, failed); err != nil {
		return nil, "", err
	}
	on := groups(page)
	for i := range on {
		var name string
		name, cursor = place(&on[i])
		names = append(names, name)
	}
	return names, cursor, nil
}

// Content that cannot be read is an error, and so is a context that has ended.
func testAnalyticsErrors(t *testing.T, open opener) {
	broken := errors.New("the disk is on fire")
	records, contents := Records(random(1), 50)
	b := open.new(t)
	_, keeps := b.(storage.ContentKeeper)
	s := start(t, open, b, reader(func(_ context.Context, r *storage.Record) (*storage.Content, error) {
		if keeps { // its queries read no other content than its own
			return contents.Of(r), nil
		}
		return nil, broken
	}))
	s.write(Batch(records, storage.Position{Segment: 1}))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// asked are questions with a filter, by what they ask for.
	queries := func(f storage.Filter) map[string]func(context.Context) error {
		return map[string]func(context.Context) error{
			"Users":          errorOf(&storage.UserQuery{Org: orgs[0], Filter: f, Window: storage.Always}, b),
			"UserOverview":   errorOf(&storage.UserOverviewQuery{Org: orgs[0], Filter: f, Window: storage.Always}, b),
			"Sessions":       errorOf(&storage.SessionQuery{Org: orgs[0], Filter: f, Window: storage.Always}, b),
			"SessionMetrics": errorOf(&storage.SessionMetricsQuery{Org: orgs[0], Filter: f, Window: storage.Always}, b),
			"Scores":         errorOf(&storage.ScoreQuery{Org: orgs[0], Filter: f, Window: storage.Always, Increment: storage.ByDay}, b),
		}
	}
	ofContent := queries(contentQuery.Filter)
	for name, ask := range queries(storage.All{}) {
		if err := ofContent[name](t.Context()); !keeps && !errors.Is(err, broken) {
			t.Errorf("%s = %v, want the error of Contents", name, err)
		}
		if err := ask(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v after its context ended", name, err)
		}
		if err := ask(t.Context()); err != nil {
			t.Errorf("%s = %v afterwards", name, err)
		}
	}
}

// errorOf asks a query for its error alone.
func errorOf[A any](q storage.Question[A], b storage.Grouper) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := q.Answer(ctx, b)
		return err
	}
}

// Sums that are too large for a number stay at the largest, and do not become negative.
func testLargeSums(t *testing.T, open opener) {
	records, contents := Records(random(2), 3)
	for _, r := range records {
		r.Org, r.AttemptOf = orgs[0], uuid.Nil
		r.Cost, r.Usage.Input, r.Usage.Output = plugins.KnownCost(math.MaxInt64-1), plugins.Known(math.MaxInt64/2), plugins.Known(math.MaxInt64-1)
	}
	b := open.new(t)
	start(t, open, b, contents).write(Batch(records, storage.Position{Segment: 1}))
	q := &storage.MetricsQuery{Org: orgs[0], Filter: storage.All{}, Window: storage.Always, Bucket: storage.BucketNone, Limit: 1}
	got, err := q.Answer(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	largest := plugins.Known(math.MaxInt64)
	if m := got.Totals; m.Cost != plugins.KnownCost(math.MaxInt64) || m.PromptTokens != largest || m.CompletionTokens != largest || m.TotalTokens != largest {
		t.Errorf("cost %v, tokens %v, %v and %v: want the largest number", m.Cost, m.PromptTokens, m.CompletionTokens, m.TotalTokens)
	}
}

// taggedSessions gives some sessions a tag, by organisation and session id.
func taggedSessions(r *rand.Rand, records []*storage.Record) (map[string]map[string]string, []*storage.Annotation) {
	byOrg := make(map[string]map[string]string)
	var annotations []*storage.Annotation
	for _, rec := range records {
		if rec.SessionID == "" || !chance(r, 3) {
			continue
		}
		tag := pick(r, tags)
		if byOrg[rec.Org] == nil {
			byOrg[rec.Org] = make(map[string]string)
		}
		byOrg[rec.Org][rec.SessionID] = tag
		annotations = append(annotations, &storage.Annotation{Org: rec.Org, SessionID: rec.SessionID, At: rec.CreatedAt, Tag: &tag})
	}
	return byOrg, annotations
}

// checkAnalytics asks one query of a kind by chance.
func checkAnalytics(t *testing.T, r *rand.Rand, b storage.Grouper, reference storage.Records) {
	t.Helper()
	ctx, records := t.Context(), reference.All
	switch r.IntN(8) {
	case 7:
		q := MetricsQuery(r, records)
		if answer, err := q.Answer(ctx, reference); err == nil && chance(r, 2) {
			if named := answer.Named(); len(named) > 0 {
				q.After = q.Cursor(&named[r.IntN(len(named))])
			}
		}
		checkAnswer(t, q, q.Filter, b, reference)
	case 6:
		q := FacetQuery(r, records)
		checkAnswer(t, q, q.Filter, b, reference)
	case 5:
		checkDetails(t, r, b, reference)
	case 0:
		q := UserQuery(r, records)
		if page, err := q.Answer(ctx, reference); err == nil && len(page.Users) > 0 && chance(r, 2) {
			q.After = q.Cursor(&page.Users[r.IntN(len(page.Users))])
		}
		checkAnswer(t, q, q.Filter, b, reference)
	case 1:
		q := UserOverviewQuery(r, records)
		checkAnswer(t, q, q.Filter, b, reference)
	case 2:
		q := SessionQuery(r, records)
		if sessions, err := q.Answer(ctx, reference); err == nil && len(sessions) > 0 && chance(r, 2) {
			q.After = q.Cursor(&sessions[r.IntN(len(sessions))])
		}
		checkAnswer(t, q, q.Filter, b, reference)
	case 3:
		q := SessionMetricsQuery(r, records)
		checkAnswer(t, q, q.Filter, b, reference)
	case 4:
		q := ScoreQuery(r, records)
		checkAnswer(t, q, q.Filter, b, reference)
	}
}

// checkAnswer compares the answers of a backend and of the reference.
func checkAnswer[Q storage.Question[A], A any](t *testing.T, q Q, f storage.Filter, b storage.Grouper, reference storage.Records) {
	t.Helper()
	got, err := q.Answer(t.Context(), b)
	want, _ := q.Answer(t.Context(), reference)
	same(t, q, f, got, err, want)
}

// same compares answers as clients see them.
func same(t *testing.T, q any, f storage.Filter, got any, err error, want any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%T: %v\n%+v\nfilter %s", q, err, q, storage.AppendJSON(nil, f))
	}
	if g, w := encoded(t, got), encoded(t, want); g != w {
		t.Fatalf("%T\n%+v\nfilter %s\ngot  %s\nwant %s", q, q, storage.AppendJSON(nil, f), g, w)
	}
}

func encoded(t *testing.T, answer any) string {
	t.Helper()
	b, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
