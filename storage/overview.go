package storage

import (
	"context"

	"github.com/weirhq/weir/plugins"
)

// UserOverviewQuery asks what users cost and ask over time.
type UserOverviewQuery struct {
	Org string
	// Filter has leaves about requests and about users; see SplitFilter.
	Filter Filter
	// Window chooses requests. Without bounds the series runs from the first to
	// the last request of the users.
	Window Window
	// Zone aligns the buckets, and decides what a day is.
	Zone Zone
	Series
}

// UserOverview is the answer to a UserOverviewQuery: the quantile over the users
// of each bucket, of what each did in that bucket.
type UserOverview struct {
	// UserCost is in US dollars.
	UserCost     []Point `json:"user_cost"`
	RequestCount []Point `json:"request_count"`
}

// Answer makes the series from the groups of requests by user. Without bounds it
// asks twice: the first answer shows from when until when the series runs.
func (q *UserOverviewQuery) Answer(ctx context.Context, g Grouper) (*UserOverview, error) {
	o := overview{p: NewCancelCheck(ctx.Err), span: never}
	question := &GroupQuery{Org: q.Org, Window: q.Window, Zone: q.Zone}
	bounded := q.Window.or(never) == q.Window
	if bounded && !q.Distribution {
		question.Buckets = NewBuckets(q.Window, q.Zone)
	}
	if _, err := chooseUsers(ctx, g, question, q.Filter, o.p, o.add); err != nil {
		return nil, err
	}
	w := q.Window.or(o.span)
	b := NewBuckets(w, q.Zone)
	if !bounded && !q.Distribution && b.Len > 0 {
		if err := o.addCells(ctx, g, &GroupQuery{Org: q.Org, Filter: question.Filter, Window: w, Zone: q.Zone, By: question.By, Known: true, Buckets: b}); err != nil {
			return nil, err
		}
	}
	costs, requests := quartiles(&q.Series, o.costs, o.p), quartiles(&q.Series, o.requests, o.p)
	if !q.Distribution && b.Len > 0 {
		costs = byBucket(&o, b, costs, func(c *Counts) sample[plugins.Nanodollars] {
			return sample[plugins.Nanodollars]{value: c.Cost, withoutCost: c.WithoutCost}
		})
		requests = byBucket(&o, b, requests, func(c *Counts) sample[int64] { return sample[int64]{value: plugins.Known(c.Requests)} })
	}
	return &UserOverview{
		UserCost:     points(&q.Series, b, costs, o.p),
		RequestCount: points(&q.Series, b, requests, o.p),
	}, o.p.ended
}

// overview has what each user costs and asks, in all and by bucket.
type overview struct {
	p        *CancelCheck
	span     Window
	ids      []string
	costs    []sample[plugins.Nanodollars]
	requests []sample[int64]
	cells    [][]userCell // by user
}

// userCell is what a user did in a bucket that begins at start.
type userCell struct {
	start Timestamp
	Counts
}

// add adds a user.
func (o *overview) add(u User, g *GroupTotals) {
	o.span = o.span.include(&g.Totals)
	i := len(o.ids)
	o.ids = append(o.ids, u.ID)
	o.costs = append(o.costs, sample[plugins.Nanodollars]{group: i, value: g.Cost, withoutCost: g.WithoutCost})
	o.requests = append(o.requests, sample[int64]{group: i, value: plugins.Known(g.Requests)})
	o.cells = append(o.cells, userCells(g))
}

// userCells are the cells in which there is a request.
func userCells(g *GroupTotals) []userCell {
	cells := make([]userCell, 0, len(g.Cells))
	for _, c := range g.Cells {
		if c.Requests > 0 {
			cells = append(cells, userCell{c.Start, c.Counts})
		}
	}
	return cells
}

// addCells asks what the users did by bucket.
func (o *overview) addCells(ctx context.Context, g Grouper, q *GroupQuery) error {
	numbers := make(map[string]int, len(o.ids))
	for i, id := range o.ids {
		numbers[id] = i
	}
	return g.Groups(ctx, q, func(g *GroupTotals) error {
		if o.p.over(groupSteps) {
			return o.p.ended
		}
		if i, ok := numbers[g.Key[0]]; ok {
			o.cells[i] = userCells(g)
		}
		return nil
	})
}

// byBucket splits the sample of each user into one for each bucket in which
// there is a request.
func byBucket[T plugins.Unit](o *overview, b Buckets, users []sample[T], measure func(*Counts) sample[T]) (samples []sample[T]) {
	for _, u := range users {
		for i := range o.cells[u.group] {
			if o.p.over(groupSteps) {
				return nil
			}
			c := &o.cells[u.group][i]
			s := measure(&c.Counts)
			s.bucket = b.Index(c.start)
			samples = append(samples, s)
		}
	}
	return samples
}
