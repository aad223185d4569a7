package storage

import (
	"context"

	"github.com/weirhq/weir/plugins"
)

// SessionMetricsQuery asks what sessions are like over time.
type SessionMetricsQuery struct {
	Org string
	// Filter has leaves about requests and about sessions; see SplitFilter.
	Filter Filter
	// Derived is as in a SessionQuery.
	Derived bool
	// Window chooses requests. Without bounds the series runs from the first to
	// the last request of the sessions.
	Window Window
	// Zone aligns the buckets.
	Zone Zone
	// NameContains is text in the session's name, whatever its case.
	NameContains string
	Series
}

// SessionMetrics is the answer to a SessionMetricsQuery. A session stands in the
// bucket in which it began.
type SessionMetrics struct {
	// SessionCount counts the sessions.
	SessionCount []Point `json:"session_count"`
	// SessionDuration is the quantile of their durations, in seconds: from the
	// start of the first request to the end of the last answer.
	SessionDuration []Point `json:"session_duration"`
	// SessionCost is the quantile of their costs, in US dollars.
	SessionCost []Point         `json:"session_cost"`
	Average     SessionAverages `json:"average"`
}

// SessionAverages are means over the window, each a list of one.
type SessionAverages struct {
	SessionCost     [1]Average `json:"session_cost"`
	SessionDuration [1]Average `json:"session_duration"`
	// SessionCount is the mean per bucket.
	SessionCount [1]Average `json:"session_count"`
}

// Average is a mean, unknown when there is nothing in it.
type Average struct {
	Average Amount `json:"average"`
}

// Answer makes the series from the groups of requests by session.
func (q *SessionMetricsQuery) Answer(ctx context.Context, g Grouper) (*SessionMetrics, error) {
	p := NewCancelCheck(ctx.Err)
	named := func(_, name string) bool { return containsFold(name, q.NameContains, p) }
	type session struct {
		begin       Timestamp
		duration    plugins.Duration
		cost        plugins.Cost
		withoutCost int64
	}
	var sessions []session
	span := never
	question := &GroupQuery{Org: q.Org, Window: q.Window}
	err := chooseSessions(ctx, g, question, q.Filter, q.Derived, p, named, func(g *GroupTotals, _ Session) {
		sessions = append(sessions, session{g.First, g.duration(), g.Cost, g.WithoutCost})
		span = span.include(&g.Totals)
	})
	if err != nil {
		return nil, err
	}
	b := NewBuckets(q.Window.or(span), q.Zone)

	counts := make([]sample[int64], b.Len)
	for i := range counts {
		counts[i] = sample[int64]{bucket: i, value: plugins.Known(0)}
	}
	durations := make([]sample[plugins.Milliseconds], 0, len(sessions))
	costs := make([]sample[plugins.Nanodollars], 0, len(sessions))
	for _, s := range sessions {
		if p.over(1) {
			return nil, p.ended
		}
		bucket := b.Index(s.begin)
		counts[bucket].value.N++
		durations = append(durations, sample[plugins.Milliseconds]{bucket: bucket, value: s.duration})
		costs = append(costs, sample[plugins.Nanodollars]{bucket: bucket, value: s.cost, withoutCost: s.withoutCost})
	}
	durations, costs = quartiles(&q.Series, durations, p), quartiles(&q.Series, costs, p)
	return &SessionMetrics{
		SessionCount:    points(&q.Series, b, counts, p),
		SessionDuration: points(&q.Series, b, durations, p),
		SessionCost:     points(&q.Series, b, costs, p),
		Average: SessionAverages{
			SessionCost:     average(costs),
			SessionDuration: average(durations),
			SessionCount:    average(counts),
		},
	}, p.ended
}
