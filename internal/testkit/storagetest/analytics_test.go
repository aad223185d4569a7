package storagetest

import (
	"testing"

	"github.com/weirhq/weir/storage"
)

func TestMemoryAnalytics(t *testing.T) {
	RunAnalytics(t, func(*testing.T) storage.Backend { return &Memory{} }, Relaxed{})
}

// Most queries must have something to answer, and some nothing.
func TestAnalyticsQueriesFindGroups(t *testing.T) {
	r := random(1)
	records, contents := Records(r, 300)
	tags, _ := taggedSessions(r, records)
	reference := storage.Records{All: records, Content: contents.Of, Tags: tags}
	const each = 400
	found := make(map[string]int)
	for range each {
		users := UserQuery(r, records)
		if a, _ := users.Answer(t.Context(), reference); a.Count > 0 {
			found["users"]++
		}
		sessions := SessionQuery(r, records)
		sessions.Offset, sessions.Limit = 0, 1
		if a, _ := sessions.Answer(t.Context(), reference); len(a) > 0 {
			found["sessions"]++
		}
		overview := UserOverviewQuery(r, records)
		if a, _ := overview.Answer(t.Context(), reference); len(a.RequestCount) > 1 {
			found["overview"]++
		}
		metrics := SessionMetricsQuery(r, records)
		if a, _ := metrics.Answer(t.Context(), reference); len(a.SessionCost) > 1 {
			found["metrics"]++
		}
		scores := ScoreQuery(r, records)
		if a, _ := scores.Answer(t.Context(), reference); len(a) > 0 {
			found["scores"]++
		}
	}
	for range each {
		totals := MetricsQuery(r, records)
		if a, _ := totals.Answer(t.Context(), reference); a.Totals.Requests > 0 {
			found["totals"]++
		}
		facets := FacetQuery(r, records)
		if a, _ := facets.Answer(t.Context(), reference); a.Count > 0 {
			found["facets"]++
		}
	}
	for _, kind := range []string{"users", "sessions", "overview", "metrics", "scores", "totals", "facets"} {
		if n := found[kind]; n < each/5 || n > each*9/10 {
			t.Errorf("of %d queries about %s, %d find something", each, kind, n)
		}
	}
}
