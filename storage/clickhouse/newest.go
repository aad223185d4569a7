package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weirhq/weir/storage"
)

// maxNewest bounds the sessions that newest looks for; for more, all are answered.
const maxNewest = 1000

// searchesNewest reports whether a query asks for the newest sessions.
func (g *grouping) searchesNewest() bool {
	q := g.query
	return q.Top.By == storage.NewestGroups && q.Top.Count > 0 && q.Top.Count <= maxNewest &&
		len(q.By) > 0 && q.By[0].Name == storage.BySession && !q.Apart && !q.CountOnly
}

// newest narrows the condition to the newest sessions. When a session began is read from a few
// columns of all records; totals are added up only for the sessions of the page.
func (g *grouping) newest(ctx context.Context) error {
	until := storage.Always.To
	if g.query.Top.Until != nil {
		until = *g.query.Top.Until
	}
	var keys [][]string
	var window storage.Window
	for wanted := g.query.Top.Count; ; {
		p := &reader{g.conn, g.trace, g.sortable, &params{g.args[:len(g.args):len(g.args)]}}
		keys, window = nil, storage.Window{From: storage.Always.To, To: storage.Always.From}
		uncounted := 0
		err := p.query(ctx, fmt.Sprintf("SELECT %s AS key, minIf(%s, attempt_of = %s) AS first, min(%[2]s), max(%[2]s) FROM records FINAL WHERE %[4]s"+
			" GROUP BY key HAVING countIf(attempt_of = %[3]s) > 0 AND first <= %[5]s ORDER BY first DESC LIMIT %[6]d WITH TIES",
			g.keys[0], millis, noID, g.where.sql, p.integer(int64(until)), wanted), func(rows driver.Rows) error {
			var key []string
			var first, from, to int64
			err := rows.Scan(&key, &first, &from, &to)
			if storage.Timestamp(first) == until {
				uncounted++
			}
			keys = append(keys, key)
			window.From, window.To = min(window.From, storage.Timestamp(from)), max(window.To, storage.Timestamp(to))
			return err
		})
		if err != nil {
			return err
		}
		if len(keys) < wanted || len(keys)-uncounted >= g.query.Top.Count {
			break
		}
		wanted = g.query.Top.Count + uncounted
	}
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = key[0]
	}
	g.where.sql = all(append([]string{g.where.sql}, append(g.within(window), "session IN "+g.bind(ids, "Array(String)"),
		"has("+g.bind(keys, "Array(Array(String))")+", "+g.keys[0]+")")...)...)
	return nil
}
