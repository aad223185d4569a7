package sqlite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// TestSessionPages holds that pages of sessions after cursors have each once, in
// order, and that the backend answers few groups but those of the page.
func TestSessionPages(t *testing.T) {
	b := newBackend(t)
	batch := &storage.Batch{End: storage.Position{Segment: 1}}
	const sessions = 500
	for i := range storage.Timestamp(2 * sessions) {
		session := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i/2)).String()
		batch.Records = append(batch.Records, &storage.Record{
			ID: uuid.Must(uuid.NewV7()), Org: "default", SessionID: session, CreatedAt: 1_790_000_000_000 + i/6,
		})
	}
	write(t, b, batch)
	whole, err := (&storage.SessionQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 1000}).Answer(t.Context(), b)
	if err != nil || len(whole) != sessions {
		t.Fatalf("%d sessions, %v", len(whole), err)
	}
	for _, limit := range []int{1, 2, 7, 499, 500} {
		q := &storage.SessionQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: limit}
		var got []storage.Session
		for {
			page, err := q.Answer(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, page...); len(page) < limit {
				break
			}
			q.After = q.Cursor(&page[limit-1])
		}
		if !slices.Equal(got, whole) {
			t.Errorf("pages of %d have %d sessions, or in another order", limit, len(got))
		}
	}
	groups := 0
	until := whole[sessions/2].CreatedAt
	err = b.Groups(t.Context(), &storage.GroupQuery{
		Org: "default", Filter: storage.All{}, Window: storage.Always, Known: true,
		By:  []storage.Dimension{{Name: storage.BySession}, {Name: storage.BySessionName}},
		Top: storage.Top{Count: 10, By: storage.NewestGroups, Until: &until},
	}, func(g *storage.GroupTotals) error {
		groups++
		if g.First > until {
			t.Errorf("a session began at %s, behind %s", g.First, until)
		}
		return nil
	})
	if err != nil || groups < 10 || groups > 20 {
		t.Errorf("%d groups are answered for a page of 10, %v", groups, err)
	}
}
