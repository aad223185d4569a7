package storage

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// MetricsQuery asks what requests add up to, over time and by group.
type MetricsQuery struct {
	Org    string
	Filter Filter
	// Window chooses requests. Without bounds the series runs from the first to the
	// last request.
	Window Window
	// Zone aligns the buckets.
	Zone Zone
	// By groups the requests; the zero Dimension makes no groups.
	By Dimension
	// Bucket is the width of the points.
	Bucket BucketWidth
	// Compare asks for the totals of the period before, of the same length.
	Compare bool
	// Sort puts the groups into order.
	Sort GroupSort
	// After, if not nil, is the place after which the groups begin.
	After *Cursor[TotalKey]
	// Limit is the number of groups, the first after After in the order of Sort. All
	// other groups, also the groups before After, make one more group.
	Limit int
}

// Metrics is the answer to a MetricsQuery.
type Metrics struct {
	// Bucket is the width of the points, "none" without points.
	Bucket BucketWidth  `json:"bucket"`
	Totals MetricTotals `json:"totals"`
	// Points are the totals over time.
	Points []MetricPoint `json:"points"`
	// Previous is nil unless the query has Compare, and there is a period before.
	Previous *MetricTotals `json:"previous"`
	// Groups are in the order of the query; the group of all others is the last. Without
	// a dimension there are no groups.
	Groups []MetricGroup `json:"groups"`
}

// MetricGroup is a group of requests over time.
type MetricGroup struct {
	// Key is the value of the dimension, "" for requests without a value; nil for the
	// group of others.
	Key *string `json:"key"`
	// Others counts the groups that make the group of others; 0 in all other groups.
	Others int           `json:"others,omitempty"`
	Totals MetricTotals  `json:"totals"`
	Points []MetricPoint `json:"points"`

	// order is the total that the query sorts by.
	order plugins.Count
}

// MetricPoint is what the requests of a bucket add up to.
type MetricPoint struct {
	RangeStart Timestamp `json:"range_start"`
	RangeEnd   Timestamp `json:"range_end"`
	MetricTotals
}

// MetricTotals are what requests add up to. Sums add what is known, and are unknown
// where nothing is known. Of attempts that did not answer, only the cost counts.
type MetricTotals struct {
	Requests int64 `json:"requests"`
	// Errors counts the requests with a status from 400, and those that did not end
	// complete.
	Errors int64        `json:"errors"`
	Cost   plugins.Cost `json:"cost"`
	// RequestsWithoutCost counts the requests and attempts that Cost lacks.
	RequestsWithoutCost    int64         `json:"requests_without_cost"`
	PromptTokens           plugins.Count `json:"prompt_tokens"`
	CompletionTokens       plugins.Count `json:"completion_tokens"`
	TotalTokens            plugins.Count `json:"total_tokens"`
	PromptCacheReadTokens  plugins.Count `json:"prompt_cache_read_tokens"`
	PromptCacheWriteTokens plugins.Count `json:"prompt_cache_write_tokens"`
	ReasoningTokens        plugins.Count `json:"reasoning_tokens"`
	// CacheSavings is what providers' caches saved, negative where the caches cost more.
	CacheSavings plugins.Cost `json:"cache_savings"`
	// CacheLoss is what providers' caches could have saved, and did not.
	CacheLoss plugins.Cost `json:"cache_loss"`
	// AnswerCacheHits counts the requests that Weir's cache answered, and SavedCost is what their
	// answers had cost.
	AnswerCacheHits int64        `json:"answer_cache_hits"`
	SavedCost       plugins.Cost `json:"saved_cost"`
	// RoutingSavings is what it saved to stay where a provider's cache had the conversation.
	RoutingSavings plugins.Cost `json:"routing_savings"`
	// Latency and TimeToFirstToken are in milliseconds.
	Latency          Percentiles `json:"latency"`
	TimeToFirstToken Percentiles `json:"time_to_first_token"`
}

func metricTotals(c *Counts, d *Details) MetricTotals {
	return MetricTotals{
		Requests:               c.Requests,
		Errors:                 d.Errors,
		Cost:                   c.Cost,
		RequestsWithoutCost:    c.WithoutCost,
		PromptTokens:           d.Input,
		CompletionTokens:       d.Output,
		TotalTokens:            d.Input.Plus(d.Output),
		PromptCacheReadTokens:  d.CacheRead,
		PromptCacheWriteTokens: d.CacheWrite,
		ReasoningTokens:        d.Reasoning,
		CacheSavings:           d.CacheSavings,
		CacheLoss:              d.CacheLoss,
		AnswerCacheHits:        d.AnswerCacheHits,
		SavedCost:              d.SavedCost,
		RoutingSavings:         d.RoutingSavings,
		Latency:                d.Latency,
		TimeToFirstToken:       d.TimeToFirstToken,
	}
}

// Answer makes the series from the groups of requests. Errors about the query are
// *FilterError.
func (q *MetricsQuery) Answer(ctx context.Context, g Grouper) (*Metrics, error) {
	w, err := q.window(ctx, g)
	if err != nil {
		return nil, err
	}
	buckets, width, err := q.Bucket.cut(w, q.Zone)
	if err != nil {
		return nil, err
	}
	answer := &Metrics{Bucket: width, Groups: []MetricGroup{}}
	question := &GroupQuery{
		Org: q.Org, Filter: q.Filter, Window: w, Zone: q.Zone, Buckets: buckets, Details: true,
		By: []Dimension{{}}, Apart: true, Top: Top{Count: q.Limit, By: LargestGroups, Sort: q.Sort, After: q.After},
	}
	if q.By != (Dimension{}) {
		question.By = append(question.By, q.By)
	}
	err = g.Groups(ctx, question, func(group *GroupTotals) error {
		totals, points := metricTotals(&group.Counts, group.Details), metricPoints(buckets, group.Cells)
		if group.Set == 0 {
			answer.Totals, answer.Points = totals, points
			return nil
		}
		m := MetricGroup{Others: group.Others, Totals: totals, Points: points, order: question.Top.total(&group.Counts, group.Details)}
		if group.Key != nil {
			m.Key = new(group.Key[0])
		}
		answer.Groups = append(answer.Groups, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(answer.Groups, func(a, b MetricGroup) int {
		switch { // the group of all others is the last
		case a.Key == nil:
			return 1
		case b.Key == nil:
			return -1
		}
		return cmp.Or(question.Top.compare(a.order, b.order), cmp.Compare(*a.Key, *b.Key))
	})
	if !q.Compare || w.To < w.From {
		return answer, nil
	}
	before := Window{From: w.From - (w.To - w.From) - 1, To: w.From - 1}
	err = g.Groups(ctx, &GroupQuery{Org: q.Org, Filter: q.Filter, Window: before, Details: true}, func(group *GroupTotals) error {
		answer.Previous = new(metricTotals(&group.Counts, group.Details))
		return nil
	})
	return answer, err
}

// Named are the groups without the group of all others.
func (m *Metrics) Named() []MetricGroup {
	if n := len(m.Groups); n > 0 && m.Groups[n-1].Key == nil {
		return m.Groups[:n-1]
	}
	return m.Groups
}

// More returns the cursor after the last group of an answer, or nil if no group follows. On the
// first page, the group of all others says whether one does; on a later page, that group has the
// earlier groups, too.
func (q *MetricsQuery) More(ctx context.Context, g Grouper, m *Metrics) (after *Cursor[TotalKey], err error) {
	named := m.Named()
	if len(named) < q.Limit || q.After == nil && len(named) == len(m.Groups) {
		return nil, nil
	}
	rest := *q
	rest.After, rest.Limit, rest.Bucket, rest.Compare = q.Cursor(&named[len(named)-1]), 1, BucketNone, false
	if q.After == nil {
		return rest.After, nil
	}
	following, err := rest.Answer(ctx, g)
	if err != nil || len(following.Named()) == 0 {
		return nil, err
	}
	return rest.After, nil
}

// Cursor is the place of a group in the order of the query.
func (q *MetricsQuery) Cursor(g *MetricGroup) *Cursor[TotalKey] {
	return &Cursor[TotalKey]{Sorts: q.sorts(), Values: []Value{exact(g.order)}, Tie: [2]string{*g.Key}}
}

// ContinueAfter sets After to a cursor of a query with the same sort, in the form of
// its String; otherwise the error is ErrCursor.
func (q *MetricsQuery) ContinueAfter(cursor string) (err error) {
	q.After, err = parseCursor(cursor, q.sorts(), false)
	return err
}

func (q *MetricsQuery) sorts() []GroupSort { return []GroupSort{(&Top{Sort: q.Sort}).GroupSort()} }

// window is the window of the query, with both bounds.
func (q *MetricsQuery) window(ctx context.Context, g Grouper) (Window, error) {
	w := q.Window.or(never)
	if w == q.Window {
		return w, nil
	}
	err := g.Groups(ctx, &GroupQuery{Org: q.Org, Filter: q.Filter, Window: q.Window, CountOnly: true}, func(all *GroupTotals) error {
		if all.Requests > 0 {
			w = q.Window.or(Window{From: all.First, To: all.Last})
		}
		return nil
	})
	return w, err
}

// metricPoints are the buckets with the totals of their cells; buckets without a cell are
// included.
func metricPoints(b Buckets, cells []Cell) []MetricPoint {
	points := make([]MetricPoint, b.Len)
	for i := range points {
		points[i].RangeStart, points[i].RangeEnd = b.Bounds(i)
	}
	for i := range cells {
		c := &cells[i]
		points[b.Index(c.Start)].MetricTotals = metricTotals(&c.Counts, c.Details)
	}
	return points
}
