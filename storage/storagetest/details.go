package storagetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

// checkDetails asks for detailed totals by dimensions by chance.
func checkDetails(t *testing.T, r *rand.Rand, b storage.Grouper, reference storage.Records) {
	t.Helper()
	scores := ScoreQuery(r, reference.All) // which has leaves about requests alone
	q := &storage.GroupQuery{Org: scores.Org, Filter: scores.Filter, Window: scores.Window, Zone: scores.Zone, Increment: scores.Increment, Details: true}
	for range r.IntN(3) {
		q.By = append(q.By, storage.Dimension{Name: pick(r, []storage.DimensionName{
			storage.ByUser, storage.ByModel, storage.ByProvider, storage.ByStatus, storage.ByEndState,
			storage.ByFinish, storage.ByPath, storage.ByPropertyName,
		})})
	}
	ask := func(g storage.Grouper) (groups []storage.GroupTotals, err error) {
		err = g.Groups(t.Context(), q, func(g *storage.GroupTotals) error {
			slices.SortFunc(g.Cells, func(a, b storage.Cell) int { return cmp.Compare(a.Start, b.Start) })
			groups = append(groups, *g)
			return nil
		})
		slices.SortFunc(groups, func(a, b storage.GroupTotals) int { return slices.Compare(a.Key, b.Key) })
		return groups, err
	}
	got, err := ask(b)
	want, _ := ask(reference)
	same(t, q, q.Filter, got, err, want)
}
