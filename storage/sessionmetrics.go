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

// SessionAverages are means over the window. Each is a list with a single mean.
type SessionAverages struct {
	SessionCost     [1]Average `json:"session_cost"`
	SessionDuration [1]Average `json:"session_duration"`
	// SessionCount is the mean per bucket.
	SessionCount [1]Average `json:"session_count"`
}

// Average is a mean, unknown without values.
type Average struct {
	Average Amount `json:"average"`
}

// Answer makes the series from the groups of requests by session.
func (q *SessionMetricsQuery) Answer(ctx context.Context, g Grouper) (*SessionMetrics, error) {
	p := NewCancelCheck(ctx.Err)
	var sessions list[sessionMeasures]
	span := never
	c := &choice[Session]{
		take: func(g *GroupTotals, _ *Session) bool {
			sessions.add(newSessionMeasures(g))
			span = span.include(g.First).include(g.Last)
			return false
		},
		cancel: p,
	}
	if q.NameContains != "" {
		c.named = func(s *Session) bool { return containsFold(s.SessionName, q.NameContains, p) }
	}
	if err := chooseSessions(ctx, g, &GroupQuery{Org: q.Org, Window: q.Window}, q.Filter, q.Derived, c); err != nil {
		return nil, err
	}
	b := NewBuckets(q.Window.or(span), q.Zone)
	perBucket := make([]int64, b.Len)
	for _, s := range sessions.all() {
		if p.over(sampleSteps) {
			return nil, p.ended
		}
		perBucket[b.Index(s.begin)]++
	}
	counts := func(yield func(sample[int64]) bool) {
		for i, n := range perBucket {
			if !yield(sample[int64]{bucket: i, value: plugins.Known(n)}) {
				return
			}
		}
	}
	durations := dropOutliers(&q.Series, measureAll(&sessions, p, func(s *sessionMeasures) sample[plugins.Milliseconds] {
		return sample[plugins.Milliseconds]{bucket: b.Index(s.begin), value: plugins.Duration{N: s.duration, Valid: s.ended}}
	}), p)
	costs := dropOutliers(&q.Series, measureAll(&sessions, p, func(s *sessionMeasures) sample[plugins.Nanodollars] {
		return sample[plugins.Nanodollars]{bucket: b.Index(s.begin), value: plugins.Cost{N: s.cost, Valid: s.costKnown}, withoutCost: s.withoutCost}
	}), p)
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

// sessionMeasures are what is measured of a session, small as there may be millions.
type sessionMeasures struct {
	begin       Timestamp
	duration    plugins.Milliseconds
	cost        plugins.Nanodollars
	withoutCost int64
	// ended and costKnown are true if the duration and the cost are known.
	ended, costKnown bool
}

func newSessionMeasures(g *GroupTotals) sessionMeasures {
	d := g.duration()
	return sessionMeasures{g.First, d.N, g.Cost.N, g.WithoutCost, d.Valid, g.Cost.Valid}
}
