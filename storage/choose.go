package storage

import (
	"cmp"
	"context"
)

// choice finds the users or sessions that a query is about among the groups of requests.
type choice[T any] struct {
	row    func(*GroupTotals) T
	filter *groupFilter
	value  func(*T, *Field) Value
	// named decides whether a row is chosen by its key, nil if any key will do.
	named func(*T) bool
	// byKey is true if take needs the keys of groups, which cost the most to read.
	byKey bool
	// take is given each chosen row, and returns whether the row is to be kept. Unless
	// the key of a group decides, a kept row is then made once more, with its key.
	take func(*GroupTotals, *T) bool
	keep func(T)
	// found is true once there was any row to choose from.
	found  bool
	cancel *CancelCheck
}

// groupSteps is about how many steps of a CancelCheck a user or session takes.
const groupSteps = 64

// ask finds the rows among the groups of a query.
func (c *choice[T]) ask(ctx context.Context, g Grouper, q *GroupQuery) error {
	byKey := c.byKey || c.named != nil || c.filter.comparesKeys()
	var row T
	value := func(f *Field) Value { return c.value(&row, f) }
	take := func(g *GroupTotals) bool {
		row = c.row(g)
		return (c.named == nil || c.named(&row)) && (c.filter.all() || c.filter.matches(g, value)) && c.take(g, &row)
	}
	q.Choose = func(g *GroupTotals) bool {
		if g.Requests == 0 || c.cancel.over(groupSteps) {
			return false
		}
		c.found = true
		return byKey || take(g)
	}
	err := g.Groups(ctx, q, func(g *GroupTotals) error {
		if !byKey {
			c.keep(c.row(g))
		} else if take(g) {
			c.keep(row)
		}
		return c.cancel.ended
	})
	return cmp.Or(err, c.cancel.ended)
}
