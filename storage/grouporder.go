package storage

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// GroupSort says by which total groups are put into order. Groups without the total come
// last in both directions; groups with equal totals ascend by their keys. The zero
// GroupSort is by requests, descending.
type GroupSort = OrderBy[TotalKey]

// TotalKey names a total in MetricTotals by its name in JSON. Percentiles have two names,
// such as "latency.p95".
type TotalKey string

// totalRequests is the key of the zero GroupSort.
const totalRequests TotalKey = "requests"

// totalCost is the key of what most questions sort by.
const totalCost TotalKey = "cost"

// groupTotals are the totals by which groups are put into order. Each is a whole number,
// so that comparisons are exact: nanodollars, tokens, and thousandths of a millisecond.
var groupTotals = map[TotalKey]func(*Counts, *Details) plugins.Count{
	totalRequests:              func(c *Counts, _ *Details) plugins.Count { return plugins.Known(c.Requests) },
	"errors":                   func(_ *Counts, d *Details) plugins.Count { return plugins.Known(d.Errors) },
	"cost":                     func(c *Counts, _ *Details) plugins.Count { return unitless(c.Cost) },
	"requests_without_cost":    func(c *Counts, _ *Details) plugins.Count { return plugins.Known(c.WithoutCost) },
	"prompt_tokens":            func(_ *Counts, d *Details) plugins.Count { return d.Input },
	"completion_tokens":        func(_ *Counts, d *Details) plugins.Count { return d.Output },
	"total_tokens":             func(_ *Counts, d *Details) plugins.Count { return d.Input.Plus(d.Output) },
	"prompt_cache_read_tokens": func(_ *Counts, d *Details) plugins.Count { return d.CacheRead },
	"prompt_cache_write_tokens": func(_ *Counts, d *Details) plugins.Count {
		return d.CacheWrite
	},
	"reasoning_tokens":        func(_ *Counts, d *Details) plugins.Count { return d.Reasoning },
	"cache_savings":           func(_ *Counts, d *Details) plugins.Count { return unitless(d.CacheSavings) },
	"cache_loss":              func(_ *Counts, d *Details) plugins.Count { return unitless(d.CacheLoss) },
	"answer_cache_hits":       func(_ *Counts, d *Details) plugins.Count { return plugins.Known(d.AnswerCacheHits) },
	"saved_cost":              func(_ *Counts, d *Details) plugins.Count { return unitless(d.SavedCost) },
	"routing_savings":         func(_ *Counts, d *Details) plugins.Count { return unitless(d.RoutingSavings) },
	"latency.p50":             func(_ *Counts, d *Details) plugins.Count { return thousandths(d.Latency.P50) },
	"latency.p95":             func(_ *Counts, d *Details) plugins.Count { return thousandths(d.Latency.P95) },
	"latency.p99":             func(_ *Counts, d *Details) plugins.Count { return thousandths(d.Latency.P99) },
	"time_to_first_token.p50": func(_ *Counts, d *Details) plugins.Count { return thousandths(d.TimeToFirstToken.P50) },
	"time_to_first_token.p95": func(_ *Counts, d *Details) plugins.Count { return thousandths(d.TimeToFirstToken.P95) },
	"time_to_first_token.p99": func(_ *Counts, d *Details) plugins.Count { return thousandths(d.TimeToFirstToken.P99) },
}

// TotalKeys are the names of all totals by which groups are put into order.
func TotalKeys() []TotalKey { return slices.Sorted(maps.Keys(groupTotals)) }

// Of returns the total of a group: nanodollars, tokens, thousandths of a millisecond, or a
// number of requests. The group has Details, unless the total is a count.
func (k TotalKey) Of(g *GroupTotals) plugins.Count { return groupTotals[k](&g.Counts, g.Details) }

// OfCell is Of for a cell of a group.
func (k TotalKey) OfCell(c *Cell) plugins.Count { return groupTotals[k](&c.Counts, c.Details) }

// IsCount reports whether groups have the total without Details.
func (k TotalKey) IsCount() bool {
	return slices.Contains([]TotalKey{totalRequests, "cost", "requests_without_cost"}, k)
}

// IsSum reports whether the total of a group is the sum of the totals of its cells.
func (k TotalKey) IsSum() bool { return k.duration() == nil }

// IsMoney reports whether the total is in nanodollars.
func (k TotalKey) IsMoney() bool {
	return slices.Contains([]TotalKey{"cost", "cache_savings", "cache_loss", "saved_cost", "routing_savings"}, k)
}

func unitless[T plugins.Unit](q plugins.Quantity[T]) plugins.Count {
	return plugins.Count{N: int64(q.N), Valid: q.Valid}
}

func thousandths(a Amount) plugins.Count {
	return plugins.Count{N: int64(math.Round(a.N * 1000)), Valid: a.Valid}
}

// duration returns the durations of rows whose percentile the total is, nil for a sum.
func (k TotalKey) duration() func(*RowBatch) []plugins.Duration {
	switch name, _, _ := strings.Cut(string(k), "."); name {
	case "latency":
		return func(b *RowBatch) []plugins.Duration { return b.Latency }
	case "time_to_first_token":
		return func(b *RowBatch) []plugins.Duration { return b.TimeToFirstToken }
	}
	return nil
}

// GroupSort is how LargestGroups are put into order.
func (t *Top) GroupSort() GroupSort {
	if t.Sort == (GroupSort{}) {
		return GroupSort{Key: totalRequests, Desc: true}
	}
	return t.Sort
}

// total returns the total that orders a group.
func (t *Top) total(c *Counts, d *Details) plugins.Count { return groupTotals[t.GroupSort().Key](c, d) }

// compare is the order of two totals.
func (t *Top) compare(a, b plugins.Count) int {
	return exact(a).compare(exact(b), t.GroupSort().Desc)
}

// AfterTotal is the place after which the LargestGroups of a set begin: a total, and the
// key of a group with the total. ok is false if the groups begin with the first.
func (q *GroupQuery) AfterTotal(set int) (total plugins.Count, key string, ok bool) {
	after := q.Top.After
	if after == nil || len(q.By) == 0 || q.By[set] == (Dimension{}) {
		return total, "", false
	}
	n, known := after.Values[0].Any().(int64)
	return plugins.Count{N: n, Valid: known}, after.Tie[0], true
}

// isAfter reports whether a group of a set comes behind the place of AfterTotal.
func (q *GroupQuery) isAfter(set int, total plugins.Count, key string) bool {
	after, last, ok := q.AfterTotal(set)
	return !ok || cmp.Or(q.Top.compare(total, after), strings.Compare(key, last)) > 0
}

// ParseGroupSort reads the sort of a MetricsQuery: a total; for a percentile, the name of the
// percentiles and which percentile. Errors are *FilterError.
func ParseGroupSort(raw []byte) (GroupSort, error) {
	seen := make(map[TotalKey]bool)
	var named []TotalKey
	for key := range groupTotals {
		name, _, percentile := strings.Cut(string(key), ".")
		if seen[TotalKey(name)] = true; percentile {
			named = append(named, TotalKey(name))
		}
	}
	sorts, err := parseOrder(raw, seen, named, nil)
	if err != nil || len(sorts) == 0 {
		return GroupSort{}, err
	}
	sort := sorts[0]
	if sort.Name != "" {
		sort.Key, sort.Name = sort.Key+"."+TotalKey(sort.Name), ""
	}
	switch {
	case len(sorts) > 1:
		return GroupSort{}, &FilterError{Path: "sort", Problem: "groups are put into order by one total"}
	case groupTotals[sort.Key] == nil:
		return GroupSort{}, &FilterError{Path: "sort", Problem: Unknown("total", string(sort.Key), TotalKeys())}
	}
	return sort, nil
}
