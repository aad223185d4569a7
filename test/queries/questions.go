package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlite"
)

// question is what both are asked.
type question struct {
	name   string
	filter string // of Weir's filter language, "" for all requests
	by     []storage.Dimension
	days   bool   // by day, too
	groups string // the same for DuckDB
	where  string
}

// sums are the sums over all groups of an answer.
type sums struct {
	groups, requests, input, output, latency, limited int64
	cost                                              int64 // billionths of a US dollar
}

const day = 24 * 60 * 60 * 1000 // milliseconds

var questions = []question{
	{name: "all", groups: "true"},
	{name: "by model", by: []storage.Dimension{{Name: "model"}}, groups: "model"},
	{name: "by model and day", by: []storage.Dimension{{Name: "model"}}, days: true, groups: fmt.Sprintf("model, created_at // %d", day)},
	{name: "by user", by: []storage.Dimension{{Name: storage.ByUser}}, groups: `"user"`},
	{name: "by property Tenant", by: []storage.Dimension{{Name: storage.ByProperty, Property: "Tenant"}}, groups: "tenant"},
	{name: "by model, of slow ones", filter: `{"request_response_rmt":{"latency":{"gt":4000}}}`, by: []storage.Dimension{{Name: "model"}}, groups: "model", where: "latency > 4000"},
	{name: "by model, of a property's value", filter: `{"request_response_rmt":{"properties":{"Environment":{"equals":"staging"}}}}`, by: []storage.Dimension{{Name: "model"}}, groups: "model", where: "environment = 'staging'"},
	{name: "by model, of a text in a property", filter: `{"request_response_rmt":{"properties":{"Tenant":{"contains":"nt-77"}}}}`, by: []storage.Dimension{{Name: "model"}}, groups: "model", where: "contains(tenant, 'nt-77')"},
	{name: "by model, of a score", filter: `{"request_response_rmt":{"scores":{"accuracy":{"gt":0.5}}}}`, by: []storage.Dimension{{Name: "model"}}, groups: "model", where: "accuracy > 0.5"},
}

// windowOf returns the window of all requests.
func windowOf(ctx context.Context, db *sql.DB) (w storage.Window, err error) {
	err = db.QueryRowContext(ctx, "SELECT min(created_at), max(created_at) FROM requests").Scan(&w.From, &w.To)
	return w, err
}

// openStore opens the database as a server does.
func openStore(ctx context.Context, path string) (*sqlite.Backend, error) {
	b := sqlite.New(path)
	_, err := b.Open(ctx, &storage.Host{})
	return b, err
}

// askStore asks the store. window is that of all requests.
func (q *question) askStore(ctx context.Context, b *sqlite.Backend, window storage.Window) (answer sums, err error) {
	group := storage.GroupQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, By: q.by}
	if q.filter != "" {
		if group.Filter, err = storage.ParseFilter([]byte(q.filter), storage.RequestResponse); err != nil {
			return answer, err
		}
	}
	if q.days {
		group.Window = window
		group.Buckets = storage.Buckets{Start: window.From / day * day, Width: day, Len: int(window.To/day-window.From/day) + 1}
	}
	err = b.Groups(ctx, &group, func(g *storage.GroupTotals) error {
		answer.groups += max(1, int64(len(g.Cells)))
		answer.requests += g.Requests
		answer.cost += int64(g.Cost.N)
		answer.input += g.Input.N
		answer.output += g.Output.N
		answer.latency += int64(g.Latency)
		answer.limited += g.RateLimited
		return nil
	})
	return answer, err
}

// askDuckDB adds up per group what Weir adds up, and then all groups.
func (q *question) askDuckDB(ctx context.Context, db *sql.DB) (s sums, err error) {
	where := q.where
	if where == "" {
		where = "true"
	}
	err = db.QueryRowContext(ctx, `WITH groups AS (SELECT count(*) AS requests, sum(cost) AS cost, sum(input) AS input, sum(output) AS output,
		sum(latency) AS latency, count(latency), count(input), count(*) FILTER (WHERE status = 429) AS limited,
		count(*) FILTER (WHERE cost IS NULL), min(created_at), max(created_at), max(responded_at)
		FROM requests WHERE `+where+` GROUP BY `+q.groups+`)
		SELECT count(*), sum(requests)::BIGINT, sum(cost)::BIGINT, sum(input)::BIGINT, sum(output)::BIGINT, sum(latency)::BIGINT, sum(limited)::BIGINT FROM groups`).
		Scan(&s.groups, &s.requests, &s.cost, &s.input, &s.output, &s.latency, &s.limited)
	return s, err
}
