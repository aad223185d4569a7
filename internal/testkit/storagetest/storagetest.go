// Package storagetest is what every storage backend must pass: Run checks the
// contract of storage.Backend, and that random queries over adversarial records
// answer as storage.Evaluate does.
package storagetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Relaxed are the guarantees that a backend does not give, and declares so. The
// zero Relaxed is a local database with transactions.
type Relaxed struct {
	// NoPositions: the store keeps no positions, because what Write has returned
	// for is safe.
	NoPositions bool
	// Partial: a query during a write may see a part of the batch.
	Partial bool
	// Visible is the time until queries see what was written.
	Visible time.Duration
	// PruneGranularity is how much older than asked a record may get.
	PruneGranularity time.Duration
	// KeepsAnnotations: an annotation about a record that is not known yet comes to be seen
	// when it is.
	KeepsAnnotations bool
	// FixedTimes: a record that comes again with another CreatedAt is another one.
	FixedTimes bool
	// Transient: Open and Write fail at times, also after the batch or a part of the batch
	// was applied, and succeed when they are tried again.
	Transient bool
}

// tries bounds how often Open and Write of a Transient backend are tried.
const tries = 100

// Run checks a backend. open makes one on an empty store of its own, without
// calling Open; Run opens it, closes it, and opens it again to see what the
// store kept. The flag -storagetest.cases sets the number of random queries.
func Run(t *testing.T, open func(t *testing.T) storage.Backend, relaxed Relaxed) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, opener)
	}{
		{"position", testPosition},
		{"reopen", testReopen},
		{"idempotent write", testIdempotentWrite},
		{"replaced record", testReplacedRecord},
		{"annotations", testAnnotations},
		{"dropped annotations", testDroppedAnnotations},
		{"tags", testTags},
		{"erased records", testErasedRecords},
		{"repriced records", testRepricedRecords},
		{"views", testViews},
		{"conversations", testConversations},
		{"erased items of conversations", testErasedItems},
		{"responses", testResponses},
		{"spans", testSpans},
		{"journals", testJournals},
		{"revisions", testRevisions},
		{"nodes", testNodes},
		{"same id", testSameID},
		{"unavailable", testUnavailable},
		{"not found", testNotFound},
		{"organisations", testOrganisations},
		{"prune", testPrune},
		{"pages", testPages},
		{"columns", testColumns},
		{"content errors", testContentErrors},
		{"kept content", testKeptContent},
		{"cancelled", testCancelled},
		{"reads during writes", testReadsDuringWrites},
		{"session trees", testSessionTrees},
		{"random queries", testRandomQueries},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, opener{open, relaxed}) })
	}
}

// opener makes a backend on an empty store.
type opener struct {
	new func(t *testing.T) storage.Backend
	Relaxed
}

// journal is the identity of the journal as which tests write.
var journal = uuid.UUID{15: 1}

// store is an open backend that a test looks at.
type store struct {
	*testing.T
	storage.Backend
	Relaxed
	contents storage.Contents
	written  storage.Position
	batches  int
}

func start(t *testing.T, o opener, b storage.Backend, contents storage.Contents) *store {
	t.Helper()
	s := &store{T: t, Backend: b, Relaxed: o.Relaxed, contents: contents}
	s.open(storage.Position{})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// open opens the backend and checks the position that it knows.
func (s *store) open(want storage.Position) {
	s.Helper()
	h := &storage.Host{Journal: journal, Contents: s.contents}
	if s.NoPositions {
		h.Position = s.written
	}
	var got storage.Position
	err := s.try(func() (err error) {
		got, err = s.Backend.Open(s.Context(), h)
		return err
	})
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	if got != want {
		s.Fatalf("Open told position %v, want %v", got, want)
	}
}

func (s *store) reopen(want storage.Position) {
	s.Helper()
	if err := s.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	s.open(want)
}

func (s *store) write(b *storage.Batch) {
	s.Helper()
	if b.Journal == (uuid.UUID{}) {
		b.Journal = journal
	}
	if b.ID == "" {
		s.batches++
		b.ID = fmt.Sprint(s.batches)
	}
	for i, r := range b.Records {
		r.Version = storage.Position{Segment: b.End.Segment, Ordinal: b.End.Ordinal + uint32(i)}
	}
	if err := s.try(func() error { return s.Write(s.Context(), b) }); err != nil {
		s.Fatalf("Write: %v", err)
	}
	if b.Journal == journal {
		s.written = b.End
	}
	time.Sleep(s.Visible)
}

// try calls what may fail at times.
func (s *store) try(call func() error) error {
	err := call()
	for n := 1; err != nil && s.Transient && n < tries; n++ {
		err = call()
	}
	return err
}

func (s *store) query(q *storage.RequestQuery) []*storage.Record {
	s.Helper()
	records, err := s.Requests(s.Context(), q)
	if err != nil {
		s.Fatalf("Requests: %v\n%s", err, describe(q))
	}
	return records
}

// holds checks that the store has exactly these records, with all their fields: as a
// list, and some of them by their ids.
func (s *store) holds(want []*storage.Record) {
	s.Helper()
	found := make(map[storage.RecordKey]*storage.Record)
	for _, org := range orgs {
		for _, r := range s.query(&storage.RequestQuery{Org: org, Filter: storage.All{}, Limit: len(want) + 1}) {
			found[storage.RecordKey{Org: org, ID: r.ID}] = r
		}
	}
	if len(found) != len(want) {
		s.Errorf("the store has %d records, want %d", len(found), len(want))
	}
	for i, r := range want {
		got := found[r.Key()]
		if got == nil {
			s.Fatalf("the store does not list %s of %s", r.ID, r.Org)
		}
		s.same(got, r)
		if i%10 == 0 {
			s.has(r)
		}
	}
}

func (s *store) has(want *storage.Record) {
	s.Helper()
	got, err := s.Request(s.Context(), want.Key())
	if err != nil {
		s.Fatalf("Request(%s, %s): %v", want.Org, want.ID, err)
	}
	s.same(got, want)
}

func (s *store) same(got, want *storage.Record) {
	s.Helper()
	if field := difference(got, want); field != "" {
		g, w := reflect.ValueOf(got).Elem().FieldByName(field), reflect.ValueOf(want).Elem().FieldByName(field)
		s.Fatalf("%s of %s is %#v, want %#v", field, want.ID, g, w)
	}
}

// difference names a field in which two records differ. An empty map or list equals
// nil.
func difference(a, b *storage.Record) string {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		f, g := x.Field(i), y.Field(i)
		if !f.CanInterface() || x.Type().Field(i).Name == "Version" { // what is not stored
			continue
		}
		if k := f.Kind(); (k == reflect.Map || k == reflect.Slice) && f.Len() == 0 && g.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(f.Interface(), g.Interface()) {
			return x.Type().Field(i).Name
		}
	}
	return ""
}

func ids(records []*storage.Record) []uuid.UUID {
	var ids []uuid.UUID
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
