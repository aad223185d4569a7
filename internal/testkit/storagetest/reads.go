package storagetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

var cases = flag.Int("storagetest.cases", 300, "random queries that Run compares with storage.Evaluate")

// testRandomQueries asks each set of records a hundred questions.
func testRandomQueries(t *testing.T, open opener) {
	const perRound = 100
	for seed := range uint64((*cases + perRound - 1) / perRound) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel() // a backend may wait for a server
			r := random(seed)
			records, contents := Records(r, 300)
			s := start(t, open, open.new(t), contents)
			half := len(records) / 2
			s.write(Batch(records[:half], storage.Position{Segment: 1}))
			s.write(Batch(records[half:], storage.Position{Segment: 2}))
			for range perRound {
				q := Query(r, records)
				if !q.Random && chance(r, 3) {
					q.After = q.Cursor(pick(r, records), nil)
				}
				if s.agrees(q, records, contents) {
					continue
				}
				q = s.smallest(q, records, contents)
				t.Fatalf("%s\ngot  %v\nwant %v", describe(q), ids(s.query(q)), ids(storage.Evaluate(q, records, contents.Of)))
			}
		})
	}
}

// testColumns asks for some columns of records: they are those of the whole records.
func testColumns(t *testing.T, open opener) {
	r := random(5)
	records, contents := Records(r, 200)
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	for range 20 {
		q := Query(r, records)
		q.Random, q.Offset, q.Limit = false, 0, len(records)
		whole := s.query(q)
		var columns []*storage.Column
		for _, c := range slices.Concat(storage.Columns, storage.DetailColumns) {
			if c.Wire > 0 && chance(r, 4) { // the others are computed
				columns, q.Columns = append(columns, c), append(q.Columns, c.Name)
			}
		}
		some := s.query(q)
		if !slices.Equal(ids(some), ids(whole)) {
			t.Fatalf("of columns %v: %s\ngot  %v\nwant %v", q.Columns, describe(q), ids(some), ids(whole))
		}
		for i, record := range some {
			for _, c := range columns {
				if got, want := c.Get(record), c.Get(whole[i]); !reflect.DeepEqual(got, want) {
					t.Errorf("%s of %v is %v, want %v", c.Name, record.ID, got, want)
				}
			}
			if record.CreatedAt != whole[i].CreatedAt {
				t.Errorf("%v was made at %v, want %v", record.ID, record.CreatedAt, whole[i].CreatedAt)
			}
		}
	}
}

// agrees reports whether the backend answers as Evaluate does.
func (s *store) agrees(q *storage.RequestQuery, records []*storage.Record, contents Contents) bool {
	s.Helper()
	got, want := ids(s.query(q)), ids(storage.Evaluate(q, records, contents.Of))
	if !q.Random {
		return slices.Equal(got, want)
	}
	all := *q
	all.Offset, all.Limit = 0, len(records)
	matching := ids(storage.Evaluate(&all, records, contents.Of))
	return len(got) == len(want) && len(unique(got)) == len(got) &&
		!slices.ContainsFunc(got, func(id uuid.UUID) bool { return !slices.Contains(matching, id) })
}

// smallest cuts a query, that the backend answers wrongly, as long as the
// answer stays wrong.
func (s *store) smallest(q *storage.RequestQuery, records []*storage.Record, contents Contents) *storage.RequestQuery {
	simpler := []func(*storage.RequestQuery){
		func(q *storage.RequestQuery) { q.Filter = storage.All{} },
		func(q *storage.RequestQuery) { q.Sort, q.After = q.Sort[:max(0, len(q.Sort)-1)], nil },
		func(q *storage.RequestQuery) { q.Sort, q.After = q.Sort[min(1, len(q.Sort)):], nil },
		func(q *storage.RequestQuery) { q.Cached, q.Scored, q.Experiment = nil, nil, nil },
		func(q *storage.RequestQuery) { q.Offset, q.Limit = 0, len(records) },
		func(q *storage.RequestQuery) { q.After = nil },
		func(q *storage.RequestQuery) {
			if b, ok := q.Filter.(*storage.Branch); ok {
				q.Filter = b.Left
			}
		},
		func(q *storage.RequestQuery) {
			if b, ok := q.Filter.(*storage.Branch); ok {
				q.Filter = b.Right
			}
		},
	}
	for changed := true; changed; {
		changed = false
		for _, simplify := range simpler {
			c := *q
			simplify(&c)
			if describe(&c) != describe(q) && !s.agrees(&c, records, contents) {
				q, changed = &c, true
			}
		}
	}
	return q
}

// describe prints a query for an error.
func describe(q *storage.RequestQuery) string {
	is := func(b *bool) string {
		if b == nil {
			return "any"
		}
		return fmt.Sprint(*b)
	}
	return fmt.Sprintf("org %q, cached %s, scored %s, experiment %s, sort %+v, random %v, after %+v, offset %d, limit %d, filter %s",
		q.Org, is(q.Cached), is(q.Scored), is(q.Experiment), q.Sort, q.Random, q.After, q.Offset, q.Limit, storage.AppendJSON(nil, q.Filter))
}

func unique(ids []uuid.UUID) map[uuid.UUID]bool {
	set := make(map[uuid.UUID]bool)
	for _, id := range ids {
		set[id] = true
	}
	return set
}

func testOrganisations(t *testing.T, open opener) {
	records, contents := Records(random(10), 100)
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	if got, err := s.Organisations(t.Context()); err != nil || !slices.Equal(got, slices.Sorted(slices.Values(orgs))) {
		t.Errorf("Organisations = %q, %v, want %q", got, err, orgs)
	}
	for _, org := range append(orgs, "nobody", "", "%", "acme\x00") {
		want := 0
		for _, r := range records {
			if r.Org == org {
				want++
			}
		}
		// A filter about organisations chooses within one, not another.
		filter := &storage.Leaf{
			Field: storage.LookupField(storage.RequestResponse, "organization_id"), Op: storage.NotEquals, Text: "x",
		}
		got := s.query(&storage.RequestQuery{Org: org, Filter: filter, Limit: 1000})
		if len(got) != want {
			t.Errorf("organisation %q sees %d records, want %d", org, len(got), want)
		}
		for _, r := range got {
			if r.Org != org {
				t.Fatalf("organisation %q sees a record of %q", org, r.Org)
			}
		}
	}
}

// Pages that follow one another hold every record once, whatever ties and whatever
// is missing; with a cursor also when records are written meanwhile.
func testPages(t *testing.T, open opener) {
	r := random(11)
	records, contents := Records(r, 120)
	later, more := Records(r, 60)
	maps.Copy(contents, more)
	for _, rec := range slices.Concat(records, later) {
		rec.Org = orgs[0]
	}
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	orders := [][]storage.Sort{nil, {{Key: storage.SortIsCached}, {Key: storage.SortUserID, Desc: true}}}
	for _, k := range storage.SortKeys() {
		for _, desc := range []bool{true, false} {
			orders = append(orders, []storage.Sort{{Key: k, Name: propertyNames[0], Desc: desc}})
		}
	}
	for _, order := range orders {
		seen := s.pages(order, len(records), func(q *storage.RequestQuery, seen []*storage.Record) { q.Offset = len(seen) })
		if len(seen) != len(records) {
			t.Errorf("sorted by %v, the pages hold %d of %d records", order, len(seen), len(records))
		}
	}
	s.write(Batch(later[:10], storage.Position{Segment: 2}))
	written := 10
	for i, order := range orders {
		before := written
		seen := s.pages(order, len(records)+len(later), func(q *storage.RequestQuery, seen []*storage.Record) {
			if len(seen) == 0 {
				return
			}
			last := seen[len(seen)-1]
			if err := q.ContinueAfter(q.Cursor(last, contents.Of(last)).String()); err != nil {
				t.Fatalf("sorted by %v, the cursor of %s: %v", order, last.ID, err)
			}
			if written == before && i%4 == 0 { // after the first page
				s.write(Batch(later[written:written+1], storage.Position{Segment: 3, Ordinal: uint32(i)}))
				written++
			}
		})
		for _, r := range slices.Concat(records, later[:before]) {
			if !seen[r.ID] {
				t.Errorf("sorted by %v, no page holds %s", order, r.ID)
			}
		}
	}
}

// pages asks for one page after the other, as next says, until one is not full, and
// answers what the pages hold; no page may hold a record of another page.
func (s *store) pages(order []storage.Sort, limit int, next func(q *storage.RequestQuery, seen []*storage.Record)) map[uuid.UUID]bool {
	s.Helper()
	var seen []*storage.Record
	for {
		q := &storage.RequestQuery{Org: orgs[0], Filter: storage.All{}, Sort: order, Limit: 41}
		next(q, seen)
		page := s.query(q)
		if seen = append(seen, page...); len(seen) > limit {
			s.Fatalf("sorted by %v, the pages hold more records than there are", order)
		}
		if len(page) < q.Limit {
			break
		}
	}
	found := unique(ids(seen))
	if len(found) != len(seen) {
		s.Errorf("sorted by %v, the pages hold %d records twice", order, len(seen)-len(found))
	}
	return found
}

// contentQuery needs the content of every record of one organisation.
var contentQuery = &storage.RequestQuery{
	Org:   orgs[0],
	Limit: 10,
	Filter: &storage.Leaf{
		Field: storage.LookupField(storage.RequestResponse, "request_body"), Op: storage.Contains, Text: "nowhere to be found",
	},
}

// reader is storage.Contents by a function.
type reader func(ctx context.Context, r *storage.Record) (*storage.Content, error)

func (f reader) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	return f(ctx, r)
}

func (f reader) Reader(parts storage.ContentPart) storage.ContentReader {
	return &contentReader{content: f, parts: parts}
}

// Content that cannot be read is an error, not content that does not match, nor
// content that is not kept.
func testContentErrors(t *testing.T, open opener) {
	broken := errors.New("the disk is on fire")
	records, _ := Records(random(12), 50)
	b := open.new(t)
	s := start(t, open, b, reader(func(context.Context, *storage.Record) (*storage.Content, error) { return nil, broken }))
	if _, keeps := b.(storage.ContentKeeper); keeps {
		if err := s.Write(t.Context(), Batch(records, storage.Position{Segment: 1})); !errors.Is(err, broken) {
			t.Errorf("Write = %v, want the error of Contents", err)
		}
		return
	}
	s.write(Batch(records, storage.Position{Segment: 1}))
	if got, err := s.Requests(t.Context(), contentQuery); !errors.Is(err, broken) {
		t.Errorf("Requests = %d records, %v, want the error of Contents", len(got), err)
	}
	s.holds(records)
}

func testCancelled(t *testing.T, open opener) {
	records, contents := Records(random(13), 200)
	cancel := func() {}
	b := open.new(t)
	_, keeps := b.(storage.ContentKeeper)
	s := start(t, open, b, reader(func(ctx context.Context, r *storage.Record) (*storage.Content, error) {
		cancel() // the caller leaves in the middle of a query
		return contents[r.Content], nil
	}))
	s.write(Batch(records, storage.Position{Segment: 1}))

	ctx, c := context.WithCancel(t.Context())
	cancel = c
	if keeps { // its queries ask nobody
		c()
	}
	if got, err := s.Requests(ctx, contentQuery); !errors.Is(err, context.Canceled) {
		t.Errorf("Requests = %d records, %v after its context ended", len(got), err)
	}
	for name, call := range map[string]func() error{
		"Requests": func() error {
			_, err := s.Requests(ctx, &storage.RequestQuery{Org: orgs[0], Filter: storage.All{}, Limit: 10})
			return err
		},
		"Request": func() error {
			_, err := s.Request(ctx, records[0].Key())
			return err
		},
		"Prune": func() error {
			_, err := s.Prune(ctx, epoch<<1)
			return err
		},
		"Write": func() error {
			more, _ := Records(random(14), 5)
			return s.Write(ctx, Batch(more, storage.Position{Segment: 9}))
		},
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v after its context ended", name, err)
		}
	}
	s.holds(records)
	s.reopen(storage.Position{Segment: 1})
}

// Readers see each batch whole or not at all.
func testReadsDuringWrites(t *testing.T, open opener) {
	const batches, perBatch = 20, 15
	records, contents := Records(random(15), batches*perBatch)
	for i, r := range records {
		r.Org, r.UserID = orgs[0], fmt.Sprint("batch ", i/perBatch)
	}
	s := start(t, open, open.new(t), contents)
	user := storage.LookupField(storage.RequestResponse, "user_id")
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				q := &storage.RequestQuery{Org: orgs[0], Limit: len(records), Filter: storage.All{}}
				if i%2 == 0 {
					q.Filter = &storage.Leaf{Field: user, Text: fmt.Sprint("batch ", i/2%batches)}
				}
				got, err := s.Requests(t.Context(), q)
				found := map[string]int{}
				for _, r := range got {
					found[r.UserID]++
				}
				for _, n := range found {
					if n > perBatch || n < perBatch && !s.Partial {
						err = fmt.Errorf("%d records of a batch of %d", n, perBatch)
					}
				}
				if err != nil {
					t.Errorf("a reader found %v", err)
					return
				}
			}
		})
	}
	for i := range batches {
		s.write(Batch(records[i*perBatch:(i+1)*perBatch], storage.Position{Segment: 1, Ordinal: uint32(i)}))
	}
	close(done)
	readers.Wait()
	s.holds(records)
}
