package storage

import "github.com/weirhq/weir/plugins"

// Answer makes the series from rows grouped BySession.
func (q *SessionMetricsQuery) Answer(rows Rows) (*SessionMetrics, error) {
	sessions, err := chooseSessions(rows, q.Filter, q.Window, func(k Key) bool { return containsFold(k.Name, q.NameContains) })
	if err != nil {
		return nil, err
	}
	span := never
	for _, s := range sessions {
		span = span.include(s.totals)
	}
	b := NewBuckets(q.Window.or(span), q.Zone)

	counts := make([]sample, b.Len)
	for i := range counts {
		counts[i] = sample{bucket: i, value: plugins.Known(0)}
	}
	var durations, costs []sample
	for _, s := range sessions {
		i := b.Index(s.first)
		counts[i].value.N++
		durations = append(durations, sample{bucket: i, value: s.duration()})
		costs = append(costs, sample{bucket: i, value: s.cost, withoutCost: s.withoutCost})
	}
	durations, costs = q.quartiles(durations), q.quartiles(costs)
	return &SessionMetrics{
		SessionCount:    q.points(b, counts, one),
		SessionDuration: q.points(b, durations, millisPerSecond),
		SessionCost:     q.points(b, costs, nanosPerDollar),
		Average: SessionAverages{
			SessionCost:     average(costs, nanosPerDollar),
			SessionDuration: average(durations, millisPerSecond),
			SessionCount:    average(counts, one),
		},
	}, nil
}
