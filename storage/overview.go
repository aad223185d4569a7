package storage

import "github.com/weirhq/weir/plugins"

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

// Answer makes the series from rows grouped ByUser, which it scans twice: the
// first time shows who counts, and from when until when.
func (q *UserOverviewQuery) Answer(rows Rows) (*UserOverview, error) {
	var users userTotals
	if err := users.scan(rows, q.Filter, q.Window, q.Zone); err != nil {
		return nil, err
	}
	p := NewCancelCheck(rows.Err)
	span := never
	costs := make([]sample[plugins.Nanodollars], 0, len(users.chosen))
	requests := make([]sample[int64], 0, len(users.chosen))
	for _, u := range users.chosen {
		if p.over(groupSteps) {
			return nil, p.ended
		}
		t := users.totals.at(u.group)
		span = span.include(t)
		costs = append(costs, sample[plugins.Nanodollars]{group: u.group, value: t.cost, withoutCost: t.withoutCost})
		requests = append(requests, sample[int64]{group: u.group, value: plugins.Known(t.requests)})
	}
	costs, requests = quartiles(&q.Series, costs, p), quartiles(&q.Series, requests, p)
	w := q.Window.or(span)
	b := NewBuckets(w, q.Zone)
	if !q.Distribution && b.Len > 0 {
		var cells chains[tally]
		err := rows.Scan(users.split.Requests, w, func(r *Row) bool {
			cells.at(r.Group, int32(b.Index(r.CreatedAt))).add(r)
			return true
		})
		if err != nil {
			return nil, err
		}
		costs = byBucket(costs, &cells, p, func(t *tally) sample[plugins.Nanodollars] {
			return sample[plugins.Nanodollars]{value: t.cost, withoutCost: t.withoutCost}
		})
		requests = byBucket(requests, &cells, p, func(t *tally) sample[int64] { return sample[int64]{value: plugins.Known(t.requests)} })
	}
	return &UserOverview{
		UserCost:     points(&q.Series, b, costs, p),
		RequestCount: points(&q.Series, b, requests, p),
	}, p.ended
}

// byBucket takes the sample of each user apart into one for each bucket in which
// there is a request.
func byBucket[T plugins.Unit](users []sample[T], cells *chains[tally], p *CancelCheck, measure func(*tally) sample[T]) (samples []sample[T]) {
	for _, u := range users {
		for i, t := range cells.of(u.group) {
			if p.over(groupSteps) {
				return nil
			}
			if t.requests == 0 {
				continue
			}
			s := measure(t)
			s.bucket = i
			samples = append(samples, s)
		}
	}
	return samples
}
