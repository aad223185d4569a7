package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

func testPosition(t *testing.T, open opener) {
	s := start(t, open, open.new(t), Contents{})
	for _, end := range []storage.Position{{Segment: 1}, {Segment: 1, Ordinal: 7}, {Segment: 1 << 40, Ordinal: 1<<32 - 1}} {
		s.write(&storage.Batch{End: end})
		s.reopen(end)
	}
}

func testReopen(t *testing.T, open opener) {
	records, contents := Records(random(1), 200)
	s := start(t, open, open.new(t), contents)
	end := storage.Position{Segment: 3, Ordinal: 9}
	s.write(Batch(records, end))
	s.holds(records)
	s.reopen(end)
	s.holds(records)
}

func testIdempotentWrite(t *testing.T, open opener) {
	records, contents := Records(random(2), 100)
	s := start(t, open, open.new(t), contents)
	end := storage.Position{Segment: 1, Ordinal: 100}
	for range 3 {
		s.write(Batch(records, end))
	}
	s.holds(records)
	for _, r := range records[40:60] {
		s.write(Batch([]*storage.Record{r}, end))
	}
	s.holds(records)
}

// An amended record takes the place of the first record and leaves no value of the first
// record behind, while scores, feedback and properties set later stay.
func testReplacedRecord(t *testing.T, open opener) {
	r := random(3)
	first, contents := Records(r, 60)
	amended, more := Records(r, 60)
	maps.Copy(contents, more)
	s := start(t, open, open.new(t), contents)
	var annotations []*storage.Annotation
	for _, f := range first {
		annotations = append(annotations, &storage.Annotation{
			Org: f.Org, RequestID: f.ID, At: epoch << 1, Property: &storage.Property{Name: "late", Value: "label"},
		})
	}
	s.write(Batch(first, storage.Position{Segment: 1, Ordinal: 1}))
	s.write(&storage.Batch{Annotations: annotations, End: storage.Position{Segment: 1, Ordinal: 2}})

	batch := &storage.Batch{End: storage.Position{Segment: 1, Ordinal: 3}}
	for i, a := range amended {
		a.ID, a.Org = first[i].ID, first[i].Org
		if s.FixedTimes {
			a.CreatedAt = first[i].CreatedAt
		}
		a.Scores, a.Feedback = nil, nil
		batch.Records = append(batch.Records, new(*a))

		a.Scores, a.Feedback, a.UpdatedAt = first[i].Scores, first[i].Feedback, epoch<<1
		a.Properties = storage.Merge(a.Properties, map[string]string{"late": "label"})
	}
	s.write(batch)
	s.holds(amended)
	for i, a := range amended {
		l := &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, "request_id"), Text: a.ID.String()}
		q := &storage.RequestQuery{Org: a.Org, Filter: &storage.Branch{Left: l, Right: &storage.Leaf{
			Field: storage.LookupField(storage.RequestResponse, "model"), Text: first[i].Model,
		}}, Limit: 10}
		if got := len(s.query(q)) == 1; got != (a.Model == first[i].Model) {
			t.Errorf("the amended record matches model %q: %v, its own is %q", first[i].Model, got, a.Model)
		}
	}
}

func testAnnotations(t *testing.T, open opener) {
	records, contents := Records(random(4), 1)
	r := records[0]
	r.Scores, r.Feedback, r.Properties = nil, nil, map[string]string{"env": "dev", "kept": "yes"}
	r.UpdatedAt = r.CreatedAt
	s := start(t, open, open.new(t), contents)
	end := storage.Position{Segment: 1}
	annotation := func(f storage.Annotation) *storage.Annotation {
		f.Org, f.RequestID = r.Org, r.ID
		return &f
	}

	written := *r
	written.Scores, written.Feedback = map[string]float64{"in the record": 1}, &storage.Feedback{ID: 3} // not read
	first := &storage.Batch{Records: []*storage.Record{&written}, End: end, Annotations: []*storage.Annotation{
		annotation(storage.Annotation{At: r.CreatedAt + 10, Scores: map[string]float64{"quality": 0.25, "helpful": 1}}),
	}}
	second := &storage.Batch{End: end, Annotations: []*storage.Annotation{
		annotation(storage.Annotation{At: r.CreatedAt + 30, Scores: map[string]float64{"quality": 0.75}}),
		annotation(storage.Annotation{At: r.CreatedAt + 20, Feedback: &storage.Feedback{ID: 4, Rating: true, CreatedAt: r.CreatedAt + 20}}),
		annotation(storage.Annotation{At: r.CreatedAt + 25, Feedback: &storage.Feedback{ID: 5, Rating: false, CreatedAt: r.CreatedAt + 25}}),
		annotation(storage.Annotation{At: r.CreatedAt + 5, Property: &storage.Property{Name: "env", Value: "prod"}}),
		annotation(storage.Annotation{At: r.CreatedAt + 5, Property: &storage.Property{Name: "Env", Value: ""}}),
	}}
	want := *r
	want.Scores = map[string]float64{"quality": 0.75, "helpful": 1}
	want.Feedback = &storage.Feedback{ID: 5, CreatedAt: r.CreatedAt + 25}
	want.Properties = map[string]string{"env": "prod", "Env": "", "kept": "yes"}
	want.UpdatedAt = r.CreatedAt + 30

	s.write(first)
	s.write(second)
	s.has(&want)
	s.write(second)
	s.has(&want)
	s.reopen(end)
	s.has(&want)

	third := &storage.Batch{End: end, Annotations: []*storage.Annotation{
		annotation(storage.Annotation{At: r.CreatedAt + 40, Removed: []string{"quality", storage.FeedbackScore, "never given"}}),
	}}
	want.Scores, want.Feedback, want.UpdatedAt = map[string]float64{"helpful": 1}, nil, r.CreatedAt+40
	s.write(third)
	s.has(&want)
	for name, found := range map[string]int{"quality": 0, "helpful": 1, storage.FeedbackScore: 0} {
		filter, err := storage.ParseFilter([]byte(`{"request_response_rmt":{"scores":{"` + name + `":{"gte":0}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if list, err := s.Requests(t.Context(), &storage.RequestQuery{Org: r.Org, Filter: filter, Limit: 9}); err != nil || len(list) != found {
			t.Errorf("%d records have the score %s, want %d: %v", len(list), name, found, err)
		}
	}
	s.write(&storage.Batch{End: end, Annotations: []*storage.Annotation{
		annotation(storage.Annotation{At: r.CreatedAt + 50, Scores: map[string]float64{"quality": 0.5}}),
	}})
	want.Scores, want.UpdatedAt = map[string]float64{"helpful": 1, "quality": 0.5}, r.CreatedAt+50
	s.has(&want)
	s.reopen(end)
	s.has(&want)
}

// Annotations change nothing in records of other organisations, and nothing comes to
// be from annotations about records that do not exist.
func testDroppedAnnotations(t *testing.T, open opener) {
	records, contents := Records(random(5), 20)
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	batch := &storage.Batch{End: storage.Position{Segment: 2}}
	drop := func(key storage.RecordKey) {
		batch.Annotations = append(batch.Annotations, &storage.Annotation{
			Org: key.Org, RequestID: key.ID, At: epoch << 1, Scores: map[string]float64{"quality": 9},
			Feedback: &storage.Feedback{ID: 99, Rating: true, CreatedAt: epoch}, Property: &storage.Property{Name: "x", Value: "y"},
		})
	}
	for _, r := range records {
		drop(storage.RecordKey{Org: r.Org + "'", ID: r.ID})
	}
	unknown := storage.RecordKey{Org: orgs[0], ID: id(random(6))}
	drop(unknown)
	s.write(batch)
	s.holds(records)
	if _, err := s.Request(t.Context(), unknown); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Request = %v for an id that no record has", err)
	}

	after, _ := Records(random(5), 1)
	after[0].ID, after[0].Org, after[0].Scores, after[0].Feedback, after[0].Properties = unknown.ID, unknown.Org, nil, nil, nil
	s.write(Batch(after, storage.Position{Segment: 3}))
	got, err := s.Request(t.Context(), unknown)
	if err != nil {
		t.Fatal(err)
	}
	if (got.Scored() || len(got.Properties) > 0) && !s.KeepsAnnotations {
		t.Errorf("an annotation from before the record is seen: scores %v, feedback %v, properties %v", got.Scores, got.Feedback, got.Properties)
	}
}

// The newest tag of a session holds, in its organisation alone.
func testTags(t *testing.T, open opener) {
	s := start(t, open, open.new(t), Contents{})
	gold, none := "gold", ""
	for range 2 {
		s.write(&storage.Batch{
			Annotations: []*storage.Annotation{
				{Org: "acme", SessionID: "s'1", At: epoch, Tag: &gold},
				{Org: "acme", SessionID: "s'1", At: epoch + 1, Tag: &none},
				{Org: "globex", SessionID: "s'1", At: epoch + 1, Tag: &gold},
			},
			End: storage.Position{Segment: 1, Ordinal: 5},
		})
	}
	s.reopen(storage.Position{Segment: 1, Ordinal: 5})
	for _, test := range []struct{ org, session, want string }{
		{"acme", "s'1", ""}, {"globex", "s'1", "gold"}, {"globex", "s'2", ""}, {"nobody", "s'1", ""},
	} {
		if tag, err := s.SessionTag(t.Context(), test.org, test.session); tag != test.want || err != nil {
			t.Errorf("SessionTag(%q, %q) = %q, %v, want %q", test.org, test.session, tag, err, test.want)
		}
	}
	want := []*storage.Annotation{{Org: "acme", SessionID: "s'1", At: epoch + 1, Tag: &none}}
	if tags, err := s.SessionTags(t.Context(), "acme"); !reflect.DeepEqual(tags, want) || err != nil {
		t.Errorf("SessionTags = %+v, %v, want %+v", tags, err, want)
	}
	if orgs, err := s.Organisations(t.Context()); !slices.Equal(orgs, []string{"acme", "globex"}) || err != nil {
		t.Errorf("Organisations = %q, %v", orgs, err)
	}
}

// Erased records are gone, or name nobody and count as before; all others stay as they are, also
// those of the same id in another organisation. The tag of a session goes with its last record.
func testErasedRecords(t *testing.T, open opener) {
	b := open.new(t)
	eraser, ok := b.(storage.RecordEraser)
	if !ok {
		t.Skip("single records cannot be erased")
	}
	records, contents := Records(random(7), 80)
	twin := *records[0]
	twin.Org, twin.Scores, twin.Feedback = "twin of "+twin.Org, nil, nil
	s := start(t, open, b, contents)
	end := storage.Position{Segment: 1}
	batch := Batch(append(slices.Clone(records), &twin), end)
	tagged := make(map[string]bool)
	for i, r := range records {
		if r.SessionID == "" || i > 40 {
			r.SessionID = fmt.Sprint("session of ", i/3)
			batch.Records[i].SessionID = r.SessionID
		}
		if !tagged[r.Org+r.SessionID] {
			batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: r.Org, SessionID: r.SessionID, At: epoch, Tag: new("gold")})
		}
		tagged[r.Org+r.SessionID] = true
	}
	s.write(batch)
	var left []*storage.Record
	gone := map[storage.ErasureScope]map[string][]uuid.UUID{storage.EraseIdentity: {}, storage.EraseRecord: {}}
	for i, r := range records {
		switch scope := []storage.ErasureScope{storage.EraseRecord, storage.EraseIdentity, 0, 0}[i/3%4]; scope {
		case storage.EraseIdentity:
			left = append(left, r.Erased(scope))
			fallthrough
		case storage.EraseRecord:
			gone[scope][r.Org] = append(gone[scope][r.Org], r.ID)
		default:
			left = append(left, r)
		}
	}
	for range 2 {
		for scope, byOrg := range gone {
			for org, ids := range byOrg {
				if err := eraser.EraseRecords(t.Context(), org, append(ids, id(random(8))), scope); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := eraser.EraseUnused(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.holds(left)
		s.has(&twin)
		s.reopen(end)
	}
	sessions := make(map[string]bool)
	for _, r := range left {
		sessions[r.Org+r.SessionID] = true
	}
	for _, r := range records {
		want := ""
		if sessions[r.Org+r.SessionID] {
			want = "gold"
		}
		if tag, err := s.SessionTag(t.Context(), r.Org, r.SessionID); tag != want || err != nil {
			t.Fatalf("the session %q of %s has the tag %q, %v, want %q", r.SessionID, r.Org, tag, err, want)
		}
	}
	again := *records[0] // the backend takes what the host gives it
	s.write(Batch([]*storage.Record{&again}, storage.Position{Segment: 2}))
	s.has(&again)
}

// Records get other costs, and keep their annotations and their content. A record that has changed
// since it was read stays as it is, and so does one of the same id in another organisation. A
// backend that is no Repricer gets the records as new versions.
func testRepricedRecords(t *testing.T, open opener) {
	b := open.new(t)
	records, contents := Records(random(9), 60)
	twin := *records[0]
	twin.Org, twin.Scores, twin.Feedback = "twin of "+twin.Org, nil, nil
	s := start(t, open, b, contents)
	s.write(Batch(append(slices.Clone(records), &twin), storage.Position{Segment: 7, Ordinal: 3}))
	byOrg := make(map[string][]storage.Repricing)
	var next []*storage.Record
	for i, r := range records {
		if i%3 == 0 {
			continue
		}
		priced := *r
		priced.Cost, priced.PriceVersion, priced.UpdatedAt = plugins.KnownCost(plugins.Nanodollars(i)), "2026-11-29+ä'", r.UpdatedAt+1000
		priced.ListCost, priced.CacheSavings, priced.UsageComplete = plugins.Cost{}, plugins.KnownCost(-plugins.Nanodollars(i)), i%2 == 0
		byOrg[r.Org] = append(byOrg[r.Org], storage.Repricing{Before: r, After: &priced})
		records[i] = &priced
		next = append(next, &priced)
	}
	repricer, ok := b.(storage.Repricer)
	if !ok {
		s.write(Batch(next, storage.Position{Segment: 8}))
		s.holds(records)
		s.has(&twin)
		return
	}
	for range 2 {
		for org, changes := range byOrg {
			stale, unknown := *changes[0].Before, *changes[0].Before
			stale.Usage.Output, unknown.ID = plugins.Known(stale.Usage.Output.N+1), id(random(10))
			other := *changes[0].After
			other.Cost = plugins.KnownCost(1 << 40)
			done, err := repricer.Reprice(t.Context(), org, append(slices.Clone(changes[1:]), storage.Repricing{Before: &stale, After: &other}, storage.Repricing{Before: &unknown, After: &other}))
			if err != nil {
				t.Fatal(err)
			}
			if len(done) != len(changes)-1 {
				t.Fatalf("%d of %d records have other costs", len(done), len(changes)-1)
			}
			if done, err = repricer.Reprice(t.Context(), org, changes[:1]); err != nil || len(done) != 1 {
				t.Fatalf("%d changes, %v", len(done), err)
			}
			for i := range changes {
				changes[i].Before = changes[i].After // what is changed already may be changed again
			}
		}
		s.holds(records)
		s.has(&twin)
		s.reopen(storage.Position{Segment: 7, Ordinal: 3})
	}
}

// The newest view of a name holds, in its organisation alone, until it is deleted.
func testViews(t *testing.T, open opener) {
	s := start(t, open, open.new(t), Contents{})
	view := func(name, screen, state string, at storage.Timestamp) *storage.View {
		return &storage.View{Name: name, Screen: screen, State: state, UpdatedAt: epoch + at}
	}
	save := func(org string, v *storage.View) *storage.Annotation {
		return &storage.Annotation{Org: org, At: v.UpdatedAt, View: v}
	}
	failed, slow := view("errors' \U0001F525", "requests", "f=status>=400&x='", 1), view("a", "overview", "", 2)
	for range 2 {
		s.write(&storage.Batch{
			Annotations: []*storage.Annotation{
				save("acme", view(failed.Name, "sessions", "old", 0)), save("acme", failed), save("acme", slow),
				save("acme", view("gone", "users", "x", 0)), save("acme", view("gone", "", "", 1)), save("acme", view("never was", "", "", 1)),
				save("globex", view(failed.Name, "users", "globex's", 3)),
			},
			End: storage.Position{Segment: 1, Ordinal: 5},
		})
	}
	s.reopen(storage.Position{Segment: 1, Ordinal: 5})
	for more := true; more; {
		var err error
		if more, err = s.Prune(t.Context(), epoch+1000); err != nil {
			t.Fatal(err)
		}
	}
	for org, want := range map[string][]storage.View{"acme": {*slow, *failed}, "globex": {*view(failed.Name, "users", "globex's", 3)}, "nobody": nil} {
		if got, err := s.Views(t.Context(), org); !slices.Equal(got, want) || err != nil {
			t.Errorf("Views(%q) = %v, %v, want %v", org, got, err, want)
		}
	}
}

func testNotFound(t *testing.T, open opener) {
	records, contents := Records(random(7), 10)
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	unknown := id(random(8))
	for _, key := range []storage.RecordKey{
		{Org: orgs[0], ID: unknown},
		{Org: records[0].Org, ID: unknown},
		{Org: records[0].Org, ID: uuid.Nil},
		{Org: "nobody", ID: records[0].ID},
		{Org: "", ID: records[0].ID},
		{Org: records[0].Org + "\x00", ID: records[0].ID},
	} {
		if r, err := s.Request(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Request(%q, %s) = %v, %v, want ErrNotFound", key.Org, key.ID, r, err)
		}
	}
}

func testPrune(t *testing.T, open opener) {
	records, contents := Records(random(9), 700)
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	for _, before := range []storage.Timestamp{epoch, epoch + 3, epoch + 10*24*3600*1000, epoch << 1} {
		for steps := 0; ; steps++ {
			more, err := s.Prune(t.Context(), before)
			if err != nil {
				t.Fatalf("Prune: %v", err)
			}
			if !more {
				break
			}
			if steps > len(records) {
				t.Fatalf("Prune says after %d steps that there is more", steps)
			}
		}
		var remaining []*storage.Record
		for _, r := range records {
			old := r.CreatedAt < before
			if old && r.CreatedAt >= before-storage.Timestamp(s.PruneGranularity.Milliseconds()) {
				_, err := s.Request(t.Context(), r.Key())
				old = errors.Is(err, storage.ErrNotFound)
			}
			if !old {
				remaining = append(remaining, r)
			} else if _, err := s.Request(t.Context(), r.Key()); !errors.Is(err, storage.ErrNotFound) {
				t.Fatalf("Request = %v for a pruned record", err)
			}
		}
		s.holds(remaining)
		records = remaining
	}
	// What is pruned may come again, without its annotations.
	again, _ := Records(random(9), 1)
	if len(records) > 0 {
		t.Fatalf("%d records outlive what was pruned long after them", len(records))
	}
	again[0].Scores, again[0].Feedback, again[0].UpdatedAt = nil, nil, again[0].CreatedAt
	s.write(&storage.Batch{Records: again, End: storage.Position{Segment: 2}})
	s.holds(again)
}
