package clickhouse

import (
	"fmt"
	"math"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// totals are the expressions that a totalsRow begins with. Attempts that did not
// answer count only as cost.
func (g *grouping) totals() []string {
	q := g.query
	if q.CountOnly {
		return []string{"count()", "min(" + millis + ")", "max(" + millis + ")"}
	}
	list := []string{
		"countIf(answered)", "minIf(" + millis + ", answered)", "maxIf(" + millis + ", answered)",
		sums["requests_without_cost"], sums["cost"], "maxIf(toUnixTimestamp64Milli(responded_at), answered)",
		sums["prompt_tokens"], sums["completion_tokens"],
		"countIf(answered AND (isNotNull(input) OR isNotNull(output)))",
		"sumIf(ifNull(latency, 0), answered)", "countIf(answered AND isNotNull(latency))",
		"countIf(answered AND ifNull(status = 429, 0))",
	}
	if q.ActiveDays {
		list = append(list, "uniqExactIf(day, answered)")
	}
	for i := range g.conditions {
		list = append(list, fmt.Sprintf("max(any%d)", i))
	}
	if q.Details {
		list = append(list,
			sums["errors"], sums["prompt_cache_read_tokens"], sums["prompt_cache_write_tokens"], sums["reasoning_tokens"],
			sums["cache_savings"], sums["cache_loss"], sums["answer_cache_hits"], sums["saved_cost"], sums["routing_savings"],
			quantiles("latency"), quantiles("ttft"))
	}
	return list
}

// sums are the totals by which groups are put into order, without the number of requests.
var sums = map[storage.TotalKey]string{
	"errors":                    "countIf(answered AND (ifNull(status >= 400, 0) OR end_state != 'complete'))",
	"cost":                      saturated("sum(toInt128(cost))"),
	"requests_without_cost":     "countIf(isNull(cost))",
	"prompt_tokens":             sum("input"),
	"completion_tokens":         sum("output"),
	"total_tokens":              sum("if(isNull(input), output, toInt128(input) + ifNull(output, 0))"),
	"prompt_cache_read_tokens":  sum("cache_read"),
	"prompt_cache_write_tokens": sum("cache_write"),
	"reasoning_tokens":          sum("reasoning"),
	"cache_savings":             sum("cache_savings"),
	"cache_loss":                sum("cache_loss"),
	"answer_cache_hits":         "countIf(answered AND cache_reference != " + noID + ")",
	"saved_cost":                sum("saved_cost"),
	"routing_savings":           sum("routing_savings"),
	"latency.p50":               percentile("latency", 500),
	"latency.p95":               percentile("latency", 950),
	"latency.p99":               percentile("latency", 990),
	"time_to_first_token.p50":   percentile("ttft", 500),
	"time_to_first_token.p95":   percentile("ttft", 950),
	"time_to_first_token.p99":   percentile("ttft", 990),
}

// sum adds up what requests have in a column.
func sum(column string) string { return saturated("sumIf(toInt128(" + column + "), answered)") }

// saturated is a sum as plugins.Quantity has it: the largest number where it is larger.
func saturated(sum string) string {
	return fmt.Sprintf("toInt64(multiIf(%[1]s > %[2]d, toInt128(%[2]d), %[1]s < %[3]d, toInt128(%[3]d), %[1]s))", sum, math.MaxInt64, math.MinInt64)
}

// percentile is a quantile of a column in thousandths of a millisecond, interpolated and
// rounded by the same steps as storage.Percentiles: a page begins after such a percentile.
func percentile(column string, level int) string {
	place := fmt.Sprintf("%d * (length(sorted) - 1)", level)
	return fmt.Sprintf("if(length(arraySort(groupArrayIf(%s, answered)) AS sorted) = 0, NULL, toInt64(floor(1000 * ("+
		"toFloat64(sorted[intDiv(%[2]s, 1000) + 1] AS low) + toFloat64(sorted[intDiv(%[2]s, 1000) + 2] - low) * modulo(%[2]s, 1000) / 1000) + 0.5)))", column, place)
}

// levels are the quantiles of storage.Percentiles, in thousandths.
var levels = []int{500, 950, 990}

// quantiles selects how many values there are, and the two values around each level.
func quantiles(column string) string {
	var places []string
	for _, level := range levels {
		place := fmt.Sprintf("intDiv(%d * (length(%s_values) - 1), 1000)", level, column)
		places = append(places, fmt.Sprintf("%s_values[%s + 1], %[1]s_values[%[2]s + 2]", column, place))
	}
	return fmt.Sprintf("length(arraySort(groupArrayIf(%[1]s, answered)) AS %[1]s_values), [%s]", column, strings.Join(places, ", "))
}

// totalsRow is a row of a grouping's statement.
type totalsRow struct {
	g    *grouping
	sets []int
	to   []any

	rowCounts
	rowSums
	first, last, ended int64
	latency            int64
	any                []uint8
	latencies, ttfts   quantileRow
	others             []uint64
	cell               int64
	isGroup            uint64 // else a cell
	keys               [][]string
	absent             []uint64 // by set: 0 for the set of the row
}

// rowCounts are how many requests of a row are of some kind, and on how many days they were.
type rowCounts struct {
	requests, withoutCost, withTokens, withLatency, rateLimited, days, errors, hits uint64
}

// rowSums are the sums of a row, nil where no request has a value.
type rowSums struct {
	cost, input, output, cacheRead, cacheWrite, reasoning, cacheSavings, cacheLoss, savedCost, routingSavings *int64
}

// quantileRow is what quantiles selects.
type quantileRow struct {
	count  uint64
	values []int64
}

func newTotalsRow(g *grouping, sets []int) *totalsRow {
	r := &totalsRow{g: g, sets: sets, any: make([]uint8, len(g.conditions)), others: make([]uint64, len(sets)), keys: make([][]string, len(sets)), absent: make([]uint64, len(sets))}
	q := g.query
	r.to = []any{&r.requests, &r.first, &r.last}
	if !q.CountOnly {
		r.to = append(r.to, &r.withoutCost, &r.cost, &r.ended, &r.input, &r.output, &r.withTokens, &r.latency, &r.withLatency, &r.rateLimited)
		if q.ActiveDays {
			r.to = append(r.to, &r.days)
		}
		for i := range r.any {
			r.to = append(r.to, &r.any[i])
		}
		if q.Details {
			r.to = append(r.to, &r.errors, &r.cacheRead, &r.cacheWrite, &r.reasoning, &r.cacheSavings, &r.cacheLoss, &r.hits, &r.savedCost, &r.routingSavings,
				&r.latencies.count, &r.latencies.values, &r.ttfts.count, &r.ttfts.values)
		}
	}
	for i := range sets {
		r.to = append(r.to, &r.others[i])
	}
	r.to = append(r.to, &r.cell, &r.isGroup)
	for i := range sets {
		r.to = append(r.to, &r.keys[i], &r.absent[i])
	}
	return r
}

// group is the group of the row. For the row of a cell, it is the group with the cell's totals.
func (r *totalsRow) group() *storage.GroupTotals {
	q := r.g.query
	t := &storage.GroupTotals{Any: make([]bool, len(q.Any))}
	t.Requests, t.First, t.Last = int64(r.requests), storage.Timestamp(r.first), storage.Timestamp(r.last)
	if !q.CountOnly {
		t.WithoutCost, t.Cost, t.Ended = int64(r.withoutCost), quantity[plugins.Nanodollars](r.cost), storage.Timestamp(r.ended)
		t.Input, t.Output, t.WithTokens = quantity[int64](r.input), quantity[int64](r.output), int64(r.withTokens)
		t.Latency, t.WithLatency, t.RateLimited = plugins.Milliseconds(r.latency), int64(r.withLatency), int64(r.rateLimited)
		t.ActiveDays = int64(r.days)
		for i, any := range r.any {
			t.Any[i] = any != 0
		}
	}
	if q.Details {
		t.Details = new(storage.Details)
		if !q.CountOnly {
			*t.Details = storage.Details{
				Errors: int64(r.errors), Input: t.Input, Output: t.Output, CacheRead: quantity[int64](r.cacheRead),
				CacheWrite: quantity[int64](r.cacheWrite), Reasoning: quantity[int64](r.reasoning),
				CacheSavings: quantity[plugins.Nanodollars](r.cacheSavings), CacheLoss: quantity[plugins.Nanodollars](r.cacheLoss),
				AnswerCacheHits: int64(r.hits), SavedCost: quantity[plugins.Nanodollars](r.savedCost), RoutingSavings: quantity[plugins.Nanodollars](r.routingSavings),
				Latency: r.latencies.percentiles(), TimeToFirstToken: r.ttfts.percentiles(),
			}
		}
	}
	for i, absent := range r.absent {
		if absent != 0 {
			continue
		}
		t.Set = r.sets[i]
		if key := r.keys[i]; len(key) > 0 {
			t.Key = r.g.withTags(key)
		} else if len(q.By) > 0 {
			t.Others, t.ActiveDays = int(r.others[i]), 0
		}
	}
	return t
}

// withTags sets the tag of the session in a key with the dimension BySessionTag.
func (g *grouping) withTags(key []string) []string {
	session := ""
	for i, d := range g.query.By {
		if d.Name == storage.BySession && !g.query.Apart {
			session = key[i]
		}
	}
	for i, d := range g.query.By {
		if d.Name == storage.BySessionTag && !g.query.Apart {
			key[i] = g.tags[session]
		}
	}
	return key
}

func quantity[T plugins.Unit](n *int64) plugins.Quantity[T] {
	if n == nil {
		return plugins.Quantity[T]{}
	}
	return plugins.Quantity[T]{N: T(*n), Valid: true}
}

// percentiles interpolates between the values around each level.
func (r *quantileRow) percentiles() (p storage.Percentiles) {
	if r.count == 0 {
		return p
	}
	for i, to := range []*storage.Amount{&p.P50, &p.P95, &p.P99} {
		low, high := float64(r.values[2*i]), float64(r.values[2*i+1])
		rest := levels[i] * int(r.count-1) % 1000
		*to = storage.Amount{N: low, Valid: true}
		if rest > 0 {
			to.N = low + (high-low)*float64(rest)/1000
		}
	}
	return p
}
