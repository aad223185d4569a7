package storagetest

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// A call for which clients ask later is found by the id that its provider gave, only in its
// organisation. Of several calls with the id, the newest is found.
func testResponses(t *testing.T, open opener) {
	records, contents := Records(random(12), 5+len(storage.Polled))
	s := start(t, open, open.new(t), contents)
	finder, ok := s.Backend.(storage.ResponseFinder)
	if !ok {
		t.Skip("the backend finds no responses")
	}
	for i, r := range records {
		r.Org, r.Dialect, r.ResponseID, r.CreatedAt = "acme", plugins.Responses, "resp_"+r.ID.String(), epoch+storage.Timestamp(i)
	}
	records[1].ResponseID, records[2].ResponseID = "resp'twice", "resp'twice"
	records[3].Org = "globex"
	records[4].Dialect = plugins.Chat
	wanted := map[string]uuid.UUID{
		records[0].ResponseID: records[0].ID,
		"resp'twice":          records[2].ID,
		records[3].ResponseID: uuid.Nil,
		records[4].ResponseID: uuid.Nil,
		"resp_unknown":        uuid.Nil,
	}
	for i, d := range storage.Polled {
		r := records[5+i]
		r.Dialect, r.ResponseID = d, string(d)+"_1"
		wanted[r.ResponseID] = r.ID
	}
	s.write(Batch(records, storage.Position{Segment: 1}))
	for id, want := range wanted {
		got, err := finder.Response(t.Context(), "acme", id)
		if want == uuid.Nil && !errors.Is(err, storage.ErrNotFound) || want != uuid.Nil && (err != nil || got.ID != want) {
			t.Errorf("%s: %v, %v", id, got, err)
		}
	}
}
