package storagetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

// checkDetails asks for groups by dimensions by chance.
func checkDetails(t *testing.T, r *rand.Rand, b storage.Grouper, reference storage.Records) {
	t.Helper()
	scores := ScoreQuery(r, reference.All) // has leaves about requests alone
	q := &storage.GroupQuery{
		Org: scores.Org, Filter: scores.Filter, Window: scores.Window, Zone: scores.Zone,
		Details: chance(r, 2), CountOnly: chance(r, 4),
	}
	switch bounded := q.Window.From != storage.Always.From && q.Window.To != storage.Always.To; {
	case chance(r, 3):
		q.Increment = scores.Increment
	case bounded && chance(r, 2):
		q.Buckets = storage.NewBuckets(q.Window, q.Zone)
	}
	for range r.IntN(4) {
		q.By = append(q.By, dimension(r))
	}
	if q.Apart = len(q.By) > 0 && chance(r, 2); q.Apart && chance(r, 2) {
		q.By = append(q.By, storage.Dimension{})
	}
	if chance(r, 2) {
		q.Top = storage.Top{Count: 1 + r.IntN(5), By: storage.LargestGroups}
	}
	ask := func(g storage.Grouper) (groups []storage.GroupTotals, err error) {
		err = g.Groups(t.Context(), q, func(g *storage.GroupTotals) error {
			slices.SortFunc(g.Cells, func(a, b storage.Cell) int { return cmp.Compare(a.Start, b.Start) })
			group := *g // g is valid until each returns
			group.Key, group.Cells = slices.Clone(g.Key), slices.Clone(g.Cells)
			groups = append(groups, group)
			return nil
		})
		slices.SortFunc(groups, func(a, b storage.GroupTotals) int {
			return cmp.Or(cmp.Compare(a.Set, b.Set), slices.Compare(a.Key, b.Key))
		})
		return groups, err
	}
	got, err := ask(b)
	want, _ := ask(reference)
	same(t, q, q.Filter, got, err, want)
}
