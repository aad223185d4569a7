package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

// plan is how SQLite goes about a query, by time or as it is sorted, one step a line, when it reads
// these columns.
func plan(t *testing.T, b *Backend, q *storage.RequestQuery, columns, joins string) string {
	t.Helper()
	var steps []string
	err := b.withReader(t.Context(), func(ctx context.Context, r reader) error {
		x := &query{RequestQuery: q, r: r, where: newCondition(ctx, r, storage.Always)}
		if x.where.query(q); x.where.err != nil {
			return x.where.err
		}
		x.after()
		o := x.timeOrder(true)
		if len(q.Sort) > 0 {
			o = x.order()
		}
		statement, args := x.statement(columns, joins, o)
		return r.c.query(ctx, "EXPLAIN QUERY PLAN "+statement, args, func(row []driver.Value) error {
			steps = append(steps, row[3].(string))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

func TestNamesAreFoundByIndexes(t *testing.T) {
	b := newBackend(t)
	for _, test := range []struct {
		query string
		args  []driver.Value
		want  string
	}{
		{"SELECT id FROM names WHERE " + isName, nameArgs("user", "ann"), "SEARCH names USING INDEX names_hash (hash=?)"},
		{"SELECT n FROM requests WHERE org = " + orgID, nameArgs("org", "acme"), "SEARCH names USING INDEX names_hash (hash=?)"},
		{"SELECT id FROM names WHERE kind = ?", []driver.Value{"user"}, "SEARCH names USING COVERING INDEX names_kind (kind=?)"},
	} {
		var steps []string
		err := b.withReader(t.Context(), func(ctx context.Context, r reader) error {
			return r.c.query(ctx, "EXPLAIN QUERY PLAN "+test.query, test.args, func(row []driver.Value) error {
				steps = append(steps, row[3].(string))
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(steps, test.want) {
			t.Errorf("%s is not answered by %q:\n%s", test.query, test.want, strings.Join(steps, "\n"))
		}
	}
}

func TestQueriesUseIndexes(t *testing.T) {
	b := newBackend(t)
	traffic := newTraffic(500)
	batch := traffic.batch(500)
	write(t, b, batch)
	r := batch.Records[100]
	user := &storage.Leaf{Field: field("user_id"), Text: r.UserID}
	tenant := &storage.Leaf{Field: field("properties"), Key: "Tenant", Text: r.Properties["Tenant"]}
	feature := &storage.Leaf{Field: field("properties"), Key: "Feature", Text: r.Properties["Feature"]}
	slow := &storage.Leaf{Field: field("latency"), Op: storage.GT, Number: storage.DecimalOf(1)}
	since := &storage.Leaf{Field: field("request_created_at"), Op: storage.GTE, Time: r.CreatedAt}

	if got := plan(t, b, &storage.RequestQuery{Org: "default", Filter: storage.All{}, Scored: new(true), Limit: 10}, keyColumns, ""); !strings.HasPrefix(got, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)") {
		t.Errorf("scored requests are not found by their scores:\n%s", got)
	}
	slowest := &storage.RequestQuery{Org: "default", Filter: storage.All{}, Sort: []storage.Sort{{Key: storage.SortLatency}}, Limit: 10}
	if got := plan(t, b, slowest, keyColumns, ""); !strings.HasPrefix(got, "SCAN r\n") {
		t.Errorf("what no index sorts does not read the table in its order:\n%s", got)
	}
	next := &storage.RequestQuery{Org: "default", Filter: slow, Limit: 10}
	next.After = next.Cursor(r, nil)
	if got := plan(t, b, next, keyColumns, ""); got != "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" {
		t.Errorf("the page behind a cursor is not searched for:\n%s", got)
	}
	next.Filter = tenant
	if got := plan(t, b, next, keyColumns, ""); !strings.HasPrefix(got, "SEARCH l USING PRIMARY KEY (bucket=? AND label=? AND n>? AND n<?)") {
		t.Errorf("the page of a property behind a cursor is not searched for:\n%s", got)
	}
	provided := &storage.RequestQuery{Org: "default", Filter: &storage.Leaf{Field: field("response_id"), Text: "chatcmpl-1"}, Limit: 10}
	if got := plan(t, b, provided, keyColumns, ""); !strings.Contains(got, "SEARCH details USING COVERING INDEX details_response_id (<expr>=? AND response_id=? AND rowid>? AND rowid<?)") {
		t.Errorf("a provider's id is not searched for:\n%s", got)
	}
	for _, test := range []struct {
		name   string
		filter storage.Filter
		want   string
	}{
		{"all", storage.All{}, "SCAN r"},
		{"user", and(slow, user), "SEARCH r USING INDEX requests_user (<expr>=? AND user=? AND org=?)"},
		{"user since", and(since, user), "SEARCH r USING INDEX requests_user (<expr>=? AND user=? AND org=? AND rowid>? AND rowid<?)"},
		{"any user", &storage.Leaf{Field: field("user_id"), Op: storage.NotEquals}, "SCAN r"},
		{"user contains", &storage.Leaf{Field: field("user_id"), Op: storage.Contains, Text: "user"}, "SCAN r"},
		{"user or", &storage.Branch{Or: true, Left: slow, Right: user}, "SCAN r"},
		{"user and property", and(tenant, user), "SEARCH r USING INDEX requests_user (<expr>=? AND user=? AND org=?)"},
		{"id", &storage.Leaf{Field: field("request_id"), Text: r.ID.String()}, "SEARCH r USING COVERING INDEX requests_request_id (request_id=? AND org=?)"},
		{"provider's id", and(slow, &storage.Leaf{Field: field("response_id"), Text: "chatcmpl-1"}), "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		{"property", and(slow, tenant), "SEARCH l USING PRIMARY KEY (bucket=? AND label=? AND n>? AND n<?)"},
		{"properties", and(tenant, feature), "SEARCH l USING PRIMARY KEY (bucket=? AND label=? AND n>? AND n<?)"},
		{"property contains", &storage.Leaf{Field: field("properties"), Key: "Tenant", Op: storage.Contains, Text: "1"}, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		{"score", &storage.Leaf{Field: field("scores"), Key: "accuracy", Op: storage.GT, Number: storage.DecimalOf(1)}, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"},
		{"since", and(slow, since), "SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for columns, joins := range map[string]string{keyColumns: "", contentOnly.list: joinDetails} {
				got := plan(t, b, &storage.RequestQuery{Org: "default", Filter: test.filter, Limit: 10}, columns, joins)
				if first, _, _ := strings.Cut(got, "\n"); first != test.want {
					t.Errorf("first step is not %q:\n%s", test.want, got)
				}
				if slices.Contains(strings.Split(got, "\n"), "USE TEMP B-TREE FOR ORDER BY") && test.name != "id" {
					t.Errorf("sorts what lies in order:\n%s", got)
				}
			}
		})
	}
}
