package storagetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// testSessionTrees compares the trees of random sessions with what their records add up
// to. Each record counts for its node and for all nodes above.
func testSessionTrees(t *testing.T, open opener) {
	r := random(13)
	records, contents := Records(r, 150)
	sessions := []string{"", "chat", "review/7", "Chat"}
	trees := make(map[string]bool)
	for i, rec := range records {
		rec.Org, rec.SessionID = pick(r, orgs[:2]), pick(r, sessions)
		rec.SessionPath = pick(r, []string{"", "/", "/plan", "plan/search", "//plan/search/", "/plan/searching", "/écrire", strings.Repeat("/deep", 40), strings.Repeat("/deep", 41)})
		rec.AttemptOf, rec.ParentID, rec.RootID, rec.Turn = uuid.Nil, uuid.Nil, uuid.Nil, plugins.Count{}
		link(r, rec, records[max(0, i-20):i])
		if rec.SessionID == "" {
			trees[cmp.Or(rec.RootID, rec.ID).String()] = true
		}
	}
	records = append(records, longSession()...)
	sessions = append(sessions, longID)
	s := start(t, open, open.new(t), contents)
	s.write(Batch(records, storage.Position{Segment: 1}))
	const askedTrees = 8 // a backend may wait for a server
	for _, session := range slices.Concat(sessions[1:], slices.Sorted(maps.Keys(trees))[:askedTrees]) {
		for _, by := range []storage.TreeNodes{storage.ByConversation, storage.ByPath} {
			q := &storage.SessionTreeQuery{Org: orgs[0], Session: session, By: by}
			got, err := q.Answer(t.Context(), s)
			want := nodes(q, records)
			if len(want) == 0 {
				if !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("%+v: %v, %v, want ErrNotFound", q, got, err)
				}
				continue
			}
			byID, depths := make(map[string]storage.SessionNode), make(map[string]int)
			for _, n := range got {
				if n.ParentID != nil {
					above, ok := depths[*n.ParentID]
					if depths[n.ID] = above + 1; !ok {
						t.Errorf("%+v: %s comes before the node above it", q, n.ID)
					}
				}
				if n.Depth != depths[n.ID] {
					t.Errorf("%+v: %s has the depth %d, want %d", q, n.ID, n.Depth, depths[n.ID])
				}
				depths[n.ID], n.Depth = n.Depth, 0
				byID[n.ID] = n
			}
			if g, w := encoded(t, byID), encoded(t, want); err != nil || len(got) != len(want) || g != w {
				t.Fatalf("%+v: %v\ngot  %s\nwant %s", q, err, g, w)
			}
		}
	}
}

// longID is a session of more requests than are read at a time.
const longID = "long"

func longSession() (records []*storage.Record) {
	for i := range 1100 {
		rec := &storage.Record{
			ID: uuid.UUID{1, byte(i >> 8), byte(i)}, Org: orgs[0], SessionID: longID, SessionPath: fmt.Sprint("/", i%7),
			CreatedAt: epoch + storage.Timestamp(i/3), Turn: plugins.Known(int64(i + 1)), Cost: plugins.KnownCost(1),
		}
		if i > 0 {
			rec.ParentID = records[i-1].ID
		}
		records = append(records, rec)
	}
	return records
}

// link makes a record continue an earlier record of its session, mostly.
func link(r *rand.Rand, rec *storage.Record, earlier []*storage.Record) {
	var candidates []*storage.Record
	for _, e := range earlier {
		if e.Org == rec.Org && e.SessionID == rec.SessionID && e.AttemptOf == uuid.Nil {
			candidates = append(candidates, e)
		}
	}
	if len(candidates) == 0 || chance(r, 6) {
		if chance(r, 4) { // one that is not there any more
			rec.ParentID = id(r)
		}
		return
	}
	before := pick(r, candidates)
	rec.RootID = cmp.Or(before.RootID, before.ID)
	if chance(r, 5) {
		rec.AttemptOf, rec.ParentID, rec.Turn = before.ID, before.ParentID, before.Turn
		return
	}
	rec.ParentID, rec.Turn = before.ID, pick(r, []plugins.Count{{}, plugins.Known(int64(1)), plugins.Known(int64(2))})
}

// nodes are what a query shall answer, by their ids and without their depths.
func nodes(q *storage.SessionTreeQuery, records []*storage.Record) map[string]storage.SessionNode {
	chosen := make(map[uuid.UUID]*storage.Record)
	for _, rec := range records {
		if rec.Org == q.Org && (rec.SessionID == q.Session || rec.RootID.String() == q.Session || rec.ID.String() == q.Session) {
			chosen[rec.ID] = rec
		}
	}
	above := func(rec *storage.Record) (id string, next *storage.Record) {
		for {
			before, begins := chosen[rec.ParentID], rec.Turn == plugins.Known(int64(1))
			if rec.AttemptOf != uuid.Nil {
				before, begins = chosen[rec.AttemptOf], false
			}
			if before == nil || begins {
				return rec.ID.String(), before
			}
			rec = before
		}
	}
	all := make(map[string]storage.SessionNode)
	for _, rec := range chosen {
		var ids []string // from the record's node upwards
		if q.By == storage.ByPath {
			steps := slices.DeleteFunc(strings.Split(rec.SessionPath, "/"), func(s string) bool { return s == "" })
			for i := min(len(steps), 32); i > 0; i-- {
				ids = append(ids, "/"+strings.Join(steps[:i], "/"))
			}
			if len(steps) > 32 {
				ids = append([]string{"/" + strings.Join(steps, "/")}, ids...)
			}
			ids = append(ids, "/")
		} else {
			for rec := rec; rec != nil; {
				var id string
				id, rec = above(rec)
				ids = append(ids, id)
			}
		}
		for i, id := range ids {
			n, ok := all[id]
			if n.ID = id; !ok || rec.CreatedAt < n.CreatedAt {
				n.CreatedAt = rec.CreatedAt
			}
			if i+1 < len(ids) {
				n.ParentID = &ids[i+1]
			}
			if countFor(&n.Total, rec); i == 0 {
				countFor(&n.Own, rec)
			}
			all[id] = n
		}
	}
	return all
}

// countFor adds a record to what others add up to.
func countFor(t *storage.NodeTotals, rec *storage.Record) {
	t.Cost = t.Cost.Plus(rec.Cost)
	if !rec.Cost.Valid {
		t.RequestsWithoutCost++
	}
	if rec.AttemptOf != uuid.Nil {
		return
	}
	t.Requests++
	t.PromptTokens, t.CompletionTokens = t.PromptTokens.Plus(rec.Usage.Input), t.CompletionTokens.Plus(rec.Usage.Output)
	t.TotalTokens = t.PromptTokens.Plus(t.CompletionTokens)
}
