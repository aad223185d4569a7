package recording

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// The poller reads the records of batches and sessions that it may ask for, and not those of what clients
// ask about them, nor the results of batches: a round reads no more records than it has questions.
func TestPollerReadsWhatItAsksFor(t *testing.T) {
	now := time.Now()
	filter, err := question.ParseFilter(unsettledTerms, now)
	if err != nil {
		t.Fatal(err)
	}
	const batch, session = plugins.Batches, plugins.Runs
	for _, c := range []struct {
		path, finish string
		dialect      plugins.Dialect
		age          time.Duration
		without      string // what the record does not have
		want         bool
	}{
		{"/v1/batches", "", batch, 8 * 24 * time.Hour, "", true},
		{"/v1/messages/batches", "", batch, 8 * 24 * time.Hour, "", true},
		{"/v1/messages/batches/", "", batch, 8 * 24 * time.Hour, "", true},
		{"/v1beta/models/gemini-2.5-flash:batchGenerateContent", "", batch, 8 * 24 * time.Hour, "", true},
		{"/v1/batches", "", batch, 6 * 24 * time.Hour, "", false},
		{"/v1/batches", "", batch, 31 * 24 * time.Hour, "", false},
		{"/v1/batches", batchRecorded, batch, 8 * 24 * time.Hour, "", false},
		{"/v1/batches", "", batch, 8 * 24 * time.Hour, "account", false},
		{"/v1/batches", "", batch, 8 * 24 * time.Hour, "node", false},
		{"/v1/batches", "", batch, 8 * 24 * time.Hour, "id", false},
		{"/v1/batches/batch_1", "", batch, 8 * 24 * time.Hour, "", false},
		{"/v1/messages/batches/msgbatch_1/results", "", plugins.Messages, 8 * 24 * time.Hour, "", false},
		{"/v1beta/batches/b1", "", plugins.GenerateContent, 8 * 24 * time.Hour, "", false},
		{"/v1beta/models/gemini-embedding-001:batchEmbedContents", "", plugins.Embeddings, 8 * 24 * time.Hour, "", false},
		{"/v1/sessions", "idle", session, 2 * time.Hour, "", true},
		{"/v1/sessions/", "", session, 2 * time.Hour, "account", true},
		{"/v1/agents/sessions", "in_progress", session, 8 * 24 * time.Hour, "account", true},
		{"/v1/sessions", "idle", session, 30 * time.Minute, "", false},
		{"/v1/sessions", sessionEnded, session, 2 * time.Hour, "", false},
		{"/v1/sessions/sess_1", "idle", session, 2 * time.Hour, "", false},
		{"/v1/sessions/sess_1/events/stream", "", session, 2 * time.Hour, "", false},
	} {
		r := &storage.Record{
			ID: uuid.New(), Org: "rich", Path: c.path, Finish: c.finish, Dialect: c.dialect, CreatedAt: storage.Millis(now.Add(-c.age)),
			Account: "a", GatewayNode: "n", ResponseID: "i",
		}
		switch c.without {
		case "account":
			r.Account = ""
		case "node":
			r.GatewayNode = ""
		case "id":
			r.ResponseID = ""
		}
		found := storage.Evaluate(&storage.RequestQuery{Org: "rich", Filter: filter, Limit: 1}, []*storage.Record{r}, nil)
		if read := len(found) == 1; read != c.want || c.want && !isBatch(r) && !isSession(r) {
			t.Errorf("%s of %v that is %q without %q: read %t, want %t", c.path, c.age, c.finish, c.without, read, c.want)
		}
	}
}

// Of more records than fit a round, those wait that were asked for last.
func TestRoundsAreBounded(t *testing.T) {
	next := make(map[uuid.UUID]time.Time)
	var records []*storage.Record
	now := time.Now()
	for i := range maxPolls + 5 {
		r := &storage.Record{ID: uuid.New()}
		records = append(records, r)
		if i < 10 {
			next[r.ID] = now.Add(time.Duration(i) * time.Second)
		}
	}
	later := slices.Collect(maps.Keys(next))
	slices.SortFunc(later, func(a, b uuid.UUID) int { return next[a].Compare(next[b]) })
	kept := longestWaiting(records, next)
	if len(kept) != maxPolls+1 {
		t.Fatalf("%d records are left", len(kept))
	}
	for i, r := range kept[len(kept)-6:] {
		if r.ID != later[i] {
			t.Errorf("record %d is not the one that waits longest", i)
		}
	}
}
