package storagetest

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// The positions of journals that write to one store do not touch.
func testJournals(t *testing.T, open opener) {
	records, contents := Records(random(16), 40)
	s := start(t, open, open.new(t), contents)
	mine, other := Batch(records[:20], storage.Position{Segment: 7, Ordinal: 3}), Batch(records[20:], storage.Position{Segment: 2})
	other.Journal = uuid.UUID{15: 2}
	s.write(mine)
	s.write(other)
	s.reopen(mine.End)
	s.holds(records)
}

// What a journal has changed of a record that another has written is newer, wherever the two
// journals stand. A backend answers how often that was.
func testRevisions(t *testing.T, open opener) {
	records, contents := Records(random(33), 40)
	changed, more := Records(random(34), len(records))
	for ref, c := range more {
		ref.Segment += 100
		contents[ref] = c
	}
	for i, r := range changed {
		if r.Content != (storage.ContentRef{}) {
			r.Content.Segment += 100
		}
		r.ID, r.Org, r.CreatedAt, r.Revision = records[i].ID, records[i].Org, records[i].CreatedAt, 1
		for _, r := range []*storage.Record{records[i], r} {
			r.Scores, r.Feedback, r.UpdatedAt = nil, nil, r.CreatedAt
		}
	}
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 7, Ordinal: 3}))
	other := Batch(changed, storage.Position{Segment: 2})
	other.Journal = uuid.UUID{15: 2}
	s.write(other)
	s.holds(changed)
}

// Two organisations may choose the same id.
func testSameID(t *testing.T, open opener) {
	records, contents := Records(random(17), 2)
	records[0].Org, records[1].Org, records[1].ID = orgs[0], orgs[1], records[0].ID
	for _, r := range records {
		r.Scores, r.Feedback = nil, nil
		r.UpdatedAt = r.CreatedAt
	}
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records[:1], storage.Position{Segment: 1}))
	s.write(Batch(records[1:], storage.Position{Segment: 2}))
	s.holds(records)
}

// A store that is not open says so.
func testUnavailable(t *testing.T, open opener) {
	b := open.new(t)
	ask := func() {
		t.Helper()
		if _, err := b.Requests(t.Context(), &storage.RequestQuery{Org: orgs[0], Filter: storage.All{}, Limit: 1}); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("Requests = %v", err)
		}
		if _, err := b.Request(t.Context(), storage.RecordKey{Org: orgs[0], ID: journal}); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("Request = %v", err)
		}
		if _, err := (&storage.UserQuery{Org: orgs[0], Filter: storage.All{}, Window: storage.Always}).Answer(t.Context(), b); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("Users = %v", err)
		}
	}
	ask()
	s := start(t, open, b, Contents{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ask()
}
