package storage

import (
	"context"

	"github.com/weirhq/weir/plugins"
)

// UserOverviewQuery asks for the cost and the number of requests of users over time.
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

// UserOverview is the answer to a UserOverviewQuery: for each bucket, the quantile of what
// the users did in the bucket.
type UserOverview struct {
	// UserCost is in US dollars.
	UserCost     []Point `json:"user_cost"`
	RequestCount []Point `json:"request_count"`
}

// Answer makes the series from the groups of requests by user. Without bounds it
// asks twice: the first answer shows from when until when the series runs.
func (q *UserOverviewQuery) Answer(ctx context.Context, g Grouper) (*UserOverview, error) {
	p := NewCancelCheck(ctx.Err)
	question := &GroupQuery{Org: q.Org, Window: q.Window, Zone: q.Zone}
	bounded := q.Window.or(never) == q.Window
	if bounded && !q.Distribution {
		question.Buckets = NewBuckets(q.Window, q.Zone)
	}
	var o overview
	numbers := make(map[string]int) // of users in o, by their id; empty unless g is asked twice
	twice := !bounded && !q.Distribution
	span := never
	c := &choice[User]{
		byKey: twice,
		take: func(g *GroupTotals, u *User) bool {
			span = span.include(g.First).include(g.Last)
			if twice {
				numbers[u.ID] = o.users.len
			}
			o.users.add(userMeasures{Counts: g.Counts})
			o.setCells(o.users.len-1, g)
			return false
		},
		cancel: p,
	}
	if err := chooseUsers(ctx, g, question, q.Filter, c); err != nil {
		return nil, err
	}
	w := q.Window.or(span)
	b := NewBuckets(w, q.Zone)
	if twice && b.Len > 0 {
		again := &GroupQuery{Org: q.Org, Filter: question.Filter, Window: w, Zone: q.Zone, By: question.By, Known: true, Buckets: b}
		if err := o.askCells(ctx, g, again, numbers, p); err != nil {
			return nil, err
		}
	}
	cost := func(c *Counts) sample[plugins.Nanodollars] {
		return sample[plugins.Nanodollars]{value: c.Cost, withoutCost: c.WithoutCost}
	}
	count := func(c *Counts) sample[int64] { return sample[int64]{value: plugins.Known(c.Requests)} }
	costs, requests := byUser(&o, q, p, cost), byUser(&o, q, p, count)
	if !q.Distribution && b.Len > 0 {
		costs, requests = byBucket(&o, b, costs, p, cost), byBucket(&o, b, requests, p, count)
	}
	return &UserOverview{
		UserCost:     points(&q.Series, b, costs, p),
		RequestCount: points(&q.Series, b, requests, p),
	}, p.ended
}

// askCells asks g for the cells of the users with these numbers.
func (o *overview) askCells(ctx context.Context, g Grouper, q *GroupQuery, numbers map[string]int, p *CancelCheck) error {
	return g.Groups(ctx, q, func(g *GroupTotals) error {
		if p.over(groupSteps) {
			return p.ended
		}
		if i, ok := numbers[g.Key[0]]; ok {
			o.setCells(i, g)
		}
		return nil
	})
}

// overview has what each user costs and asks, in all and by bucket.
type overview struct {
	users list[userMeasures]
	cells list[userCell]
}

// userMeasures is what a user did. overview.cells[from:to] are the user's cells.
type userMeasures struct {
	Counts
	from, to int
}

// userCell is what a user did in a bucket that begins at start.
type userCell struct {
	start Timestamp
	Counts
}

// setCells keeps the cells of a user that have a request.
func (o *overview) setCells(user int, g *GroupTotals) {
	u := o.users.At(user)
	u.from = o.cells.len
	for i := range g.Cells {
		if c := &g.Cells[i]; c.Requests > 0 {
			o.cells.add(userCell{c.Start, c.Counts})
		}
	}
	u.to = o.cells.len
}

// byUser returns a sample of each user that the query wants.
func byUser[T plugins.Unit](o *overview, q *UserOverviewQuery, p *CancelCheck, measure func(*Counts) sample[T]) samples[T] {
	return dropOutliers(&q.Series, measureAll(&o.users, p, func(u *userMeasures) sample[T] { return measure(&u.Counts) }), p)
}

// byBucket splits the sample of each user into a sample for each bucket with a request of
// the user.
func byBucket[T plugins.Unit](o *overview, b Buckets, users samples[T], p *CancelCheck, measure func(*Counts) sample[T]) samples[T] {
	return func(yield func(sample[T]) bool) {
		for u := range users {
			cells := o.users.At(u.group)
			for i := cells.from; i < cells.to; i++ {
				if p.over(sampleSteps) {
					return
				}
				c := o.cells.At(i)
				s := measure(&c.Counts)
				s.bucket = b.Index(c.start)
				if !yield(s) {
					return
				}
			}
		}
	}
}
