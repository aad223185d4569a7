package clickhouse

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

// filled is a backend with made-up records.
func filled(t *testing.T, n int) (*Backend, []*storage.Record) {
	t.Helper()
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), n)
	return filledWith(t, records, contents), records
}

func filledWith(t *testing.T, records []*storage.Record, contents storage.Contents) *Backend {
	t.Helper()
	b := New(Config{Options: *clickhousetest.Options(t)})
	if _, err := b.Open(t.Context(), &storage.Host{Contents: contents}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	batch := storagetest.Batch(records, storage.Position{Segment: 1})
	batch.ID = "1"
	if err := b.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	tables = regexp.MustCompile(`(?:FROM|JOIN) ([a-z_]+)( FINAL)?`)
	ofOne  = regexp.MustCompile(`^(?:FROM|JOIN) [a-z_]+(?: FINAL)? (?:PRE)?WHERE org = \{org:String\}`)
)

// Every table that a statement reads stands under the organisation, and no statement
// has a text that a caller chose.
func TestOrganisationInEveryStatement(t *testing.T) {
	b, records := filled(t, 50)
	var mu sync.Mutex
	statements := make(map[string]bool)
	b.trace = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		statements[s] = true
	}
	r := rand.New(rand.NewPCG(2, 0))
	for range 15 {
		q := storagetest.Query(r, records)
		if _, err := b.Requests(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		s, m := storagetest.SessionQuery(r, records), storagetest.MetricsQuery(r, records)
		if _, err := s.Answer(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Answer(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, rec := range records[:10] {
		if _, err := b.Content(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if _, err := b.SessionTag(t.Context(), rec.Org, rec.SessionID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Conversations(t.Context(), "globex", "", 10); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Conversation(t.Context(), "globex", "alpha", storage.AllItems); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := b.Response(t.Context(), "globex", "alpha"); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := b.Conversation(t.Context(), "globex", "alpha", storage.AllItems); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := b.Conversations(t.Context(), "globex", "alpha", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Spans(t.Context(), "globex", []storage.SpanKey{{Key: "alpha", Until: 1}}); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for s := range statements {
		for _, at := range tables.FindAllStringSubmatchIndex(s, -1) {
			seen[s[at[2]:at[3]]] = true
			if !ofOne.MatchString(s[at[0]:]) {
				t.Errorf("a table is read without its organisation: %s", s)
			}
		}
		for _, chosen := range []string{"alpha", "DROP TABLE", "日本", "globex"} {
			if strings.Contains(s, chosen) {
				t.Errorf("a statement has %q in it: %s", chosen, s)
			}
		}
	}
	for _, table := range []string{"records", "content", "scores", "late_properties", "session_tags", "conversation_changes", "span_keys"} {
		if !seen[table] {
			t.Errorf("no statement reads %s", table)
		}
	}
}

// A page is found by one statement, also where it ends within a millisecond.
func TestPageFoundAtOnce(t *testing.T) {
	var records []*storage.Record
	for i := range 300 {
		records = append(records, &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: storage.Timestamp(1_795_219_200_000 + i/2)})
	}
	b := filledWith(t, records, nil)
	searches := 0
	b.trace = func(s string) {
		if strings.HasPrefix(s, "SELECT created_at, request_id FROM records") {
			searches++
		}
	}
	q := &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: 101}
	if page, err := b.Requests(t.Context(), q); len(page) != q.Limit || err != nil || searches != 1 {
		t.Errorf("%d records, found by %d statements, %v", len(page), searches, err)
	}
}

// A search in bodies holds few of them at a time, however many records it has to match.
func TestBodiesAreReadInPortions(t *testing.T) {
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), 300)
	for _, r := range records {
		r.Org, r.RequestBytes = "acme", 1<<20
	}
	b := filledWith(t, records, contents)
	portions := 0
	b.trace = func(s string) {
		if strings.Contains(s, "FROM content") {
			portions++
		}
	}
	q := &storage.RequestQuery{Org: "acme", Limit: 10, Filter: &storage.Leaf{
		Field: storage.LookupField(storage.RequestResponse, "request_body"), Op: storage.Contains, Text: "in no body",
	}}
	if page, err := b.Requests(t.Context(), q); len(page) != 0 || err != nil {
		t.Errorf("%d records, %v", len(page), err)
	}
	most := prefetchedBytes >> 20
	if least := len(records) / 2 / most; portions < least {
		t.Errorf("the bodies were read by %d statements, want %d or more", portions, least)
	}
}

// The server groups by a statement of every shape, and answers what the records add up to.
func TestGroupings(t *testing.T) {
	b, records := filled(t, 100)
	reference, org := storage.Records{All: records}, records[0].Org
	b.trace = func(s string) {
		if strings.HasPrefix(s, "SELECT created_at, request_id FROM records") {
			t.Errorf("the server does not group: %s", s)
		}
	}
	answer := func(g storage.Grouper, q *storage.GroupQuery) string {
		var groups []storage.GroupTotals
		err := g.Groups(t.Context(), q, func(g *storage.GroupTotals) error {
			slices.SortFunc(g.Cells, func(a, b storage.Cell) int { return cmp.Compare(a.Start, b.Start) })
			groups = append(groups, *g)
			return nil
		})
		slices.SortFunc(groups, func(a, b storage.GroupTotals) int {
			return cmp.Or(cmp.Compare(a.Set, b.Set), slices.Compare(a.Key, b.Key))
		})
		encoded, _ := json.Marshal(groups)
		return fmt.Sprintf("%s, %v", encoded, err)
	}
	window := storage.Window{From: records[0].CreatedAt, To: records[0].CreatedAt}
	for _, r := range records {
		window.From, window.To = min(window.From, r.CreatedAt), max(window.To, r.CreatedAt)
	}
	failed := &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, "status"), Op: storage.GTE, Number: storage.DecimalOf(400)}
	for _, by := range [][]storage.Dimension{
		nil, {{Name: "model"}}, {{Name: storage.BySession}, {Name: storage.BySessionTag}}, {{Name: storage.ByTree}},
		{{}}, {{}, {Name: "status"}, {Name: "stream"}, {Name: storage.ByPropertyName}, {Name: storage.ByProperty, Property: "env"}},
	} {
		for _, top := range []storage.Top{{}, {Count: 2, By: storage.LargestGroups}} {
			for _, q := range []storage.GroupQuery{
				{}, {CountOnly: true}, {Details: true}, {ActiveDays: true, Any: []storage.Filter{failed}, Known: len(by) > 0 && by[0].Name != ""},
			} {
				q.Org, q.Filter, q.Window, q.By, q.Top, q.Zone = org, storage.All{}, window, by, top, storage.FixedZone(-330)
				q.Apart = len(by) > 0 && by[0] == storage.Dimension{}
				for _, cells := range []storage.Increment{"", storage.ByDay, storage.ByMonth, "buckets"} {
					if q.Increment = cells; cells == "buckets" {
						q.Increment, q.Buckets = "", storage.NewBuckets(q.Window, q.Zone)
					}
					if got, want := answer(b, &q), answer(reference, &q); got != want {
						t.Errorf("%+v\ngot  %s\nwant %s", q, got, want)
					}
				}
			}
		}
	}
	for _, limit := range []int{1, 3, 1000} { // the newest sessions are looked for first
		for q := (&storage.SessionQuery{Org: org, Filter: storage.All{}, Window: storage.Always, Limit: limit}); ; {
			got, err := q.Answer(t.Context(), b)
			want, _ := q.Answer(t.Context(), reference)
			if !reflect.DeepEqual(got, want) || err != nil {
				t.Fatalf("%+v\ngot  %+v, %v\nwant %+v", q, got, err, want)
			}
			if len(want) == 0 {
				break
			}
			q.After = q.Cursor(&want[len(want)-1])
		}
	}
}

// What is learned again in another month replaces what was learned before, in records
// and in filters.
func TestScoreOfTwoMonths(t *testing.T) {
	b, records := filled(t, 1)
	r := records[0]
	const month = 31 * 24 * 60 * 60 * 1000
	for i, value := range []float64{200, 100} {
		err := b.Write(t.Context(), &storage.Batch{ID: fmt.Sprint("month ", i), End: storage.Position{Segment: 1}, Annotations: []*storage.Annotation{
			{Org: r.Org, RequestID: r.ID, At: r.UpdatedAt + storage.Timestamp(1+i)*month, Scores: map[string]float64{"again": value}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Request(t.Context(), r.Key())
	if err != nil {
		t.Fatal(err)
	}
	if got.Scores["again"] != 100 {
		t.Errorf("the scores are %v, want that of the second month", got.Scores)
	}
	for value, want := range map[float64]int64{100: 1, 200: 0} {
		f := &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, "scores"), Key: "again", Number: storage.DecimalOf(value)}
		q := &storage.GroupQuery{Org: r.Org, Filter: f, Window: storage.Always, CountOnly: true}
		err := b.Groups(t.Context(), q, func(g *storage.GroupTotals) error {
			if g.Requests != want {
				t.Errorf("%d records have the score %v, want %d", g.Requests, value, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A table of before a value was recorded gets its column.
func TestMissingColumnsAreAdded(t *testing.T) {
	o := clickhousetest.Options(t)
	conn, err := clickhouse.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reopened := func() *Backend {
		b := New(Config{Options: *o})
		if _, err := b.Open(t.Context(), &storage.Host{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	write := func(b *Backend, r *storage.Record) {
		if err := b.Write(t.Context(), &storage.Batch{ID: r.Model, Records: []*storage.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	now := storage.Millis(time.Now())
	before := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: now, Model: "m"}
	write(reopened(), before)
	for _, column := range []string{"job", "threat", "parent", "turn", "trace_id", "request_bytes", "responded_at"} {
		if err := conn.Exec(t.Context(), "ALTER TABLE records DROP COLUMN "+column); err != nil {
			t.Fatal(err)
		}
	}
	b := reopened()
	after := &storage.Record{
		ID: uuid.New(), Org: "acme", CreatedAt: now, Model: "n", JobID: "j", Threat: true, ParentID: before.ID, Turn: plugins.Known(2),
		TraceID: "t", RequestBytes: 7, RespondedAt: now,
	}
	write(b, after)
	for _, want := range []*storage.Record{before, after} {
		got, err := b.Request(t.Context(), want.Key())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// A schema that this build does not know is never used.
func TestOpenRefusesSchema(t *testing.T) {
	for name, change := range map[string]string{
		"newer":    "INSERT INTO schema_version (version, checksum) VALUES (2, 'of a later version')",
		"checksum": "INSERT INTO schema_version (version, checksum) VALUES (1, 'of another build')",
	} {
		t.Run(name, func(t *testing.T) {
			o := clickhousetest.Options(t)
			conn, err := clickhouse.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			b := New(Config{Options: *o})
			if err := conn.Exec(t.Context(), b.statements(versionTable)[0]); err != nil {
				t.Fatal(err)
			}
			if name == "newer" {
				if err := conn.Exec(t.Context(), "INSERT INTO schema_version (version, checksum) VALUES (1, '')"); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.Exec(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Open(t.Context(), &storage.Host{}); !errors.Is(err, storage.ErrRejected) {
				t.Errorf("Open = %v, want ErrRejected", err)
			}
		})
	}
}

// The statements for a cluster are ones that the server can parse.
func TestClusterStatements(t *testing.T) {
	b := New(Config{Options: *clickhousetest.Options(t), Cluster: "the `main` one"})
	conn, err := clickhouse.Open(&b.config.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	migration, err := migrations.ReadFile("migrations/0001.sql")
	if err != nil {
		t.Fatal(err)
	}
	statements := append(b.statements(versionTable), b.statements(string(migration))...)
	statements = append(statements, "ALTER TABLE records"+b.onCluster()+" DROP PARTITION ID '20260101'", "CREATE DATABASE weir"+b.onCluster())
	for table := range markedTables {
		statements = append(statements, syncReplica(table))
	}
	for _, s := range statements {
		var formatted string
		row := conn.QueryRow(t.Context(), "SELECT formatQuery({s:String})", clickhouse.Named("s", s))
		if err := row.Scan(&formatted); err != nil {
			t.Errorf("%v: %s", err, s)
		}
		if !strings.Contains(formatted, "ON CLUSTER") && !strings.Contains(formatted, "SYNC REPLICA") {
			t.Errorf("not for the cluster: %s", s)
		}
	}
}

// The database and its tables come to be with the first Open, and stay with the next.
func TestOpenCreates(t *testing.T) {
	o := *clickhousetest.Options(t)
	o.Auth.Database += "_new"
	b := New(Config{Options: o})
	for range 2 {
		if _, err := b.Open(t.Context(), &storage.Host{}); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	o.Auth.Database = "default"
	conn, err := clickhouse.Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(t.Context(), "DROP DATABASE "+b.config.Options.Auth.Database+" SYNC"); err != nil {
		t.Fatal(err)
	}
}

// What the server does not sort by itself is bounded.
func TestSortByLatePropertyIsBounded(t *testing.T) {
	b, records := filled(t, 50)
	org := records[0].Org
	late := &storage.Annotation{Org: org, RequestID: records[0].ID, At: records[0].CreatedAt, Property: &storage.Property{Name: "Late", Value: "x"}}
	if err := b.Write(t.Context(), &storage.Batch{ID: "2", Annotations: []*storage.Annotation{late}, End: storage.Position{Segment: 2}}); err != nil {
		t.Fatal(err)
	}
	q := &storage.RequestQuery{Org: org, Filter: storage.All{}, Limit: 5, Sort: []storage.Sort{{Key: storage.SortProperties, Name: "Late"}}}
	if page, err := b.Requests(t.Context(), q); err != nil || len(page) != 5 || page[0].ID != records[0].ID {
		t.Errorf("%d requests, %v", len(page), err)
	}
	b.sortable = 5
	var refused *storage.FilterError
	if _, err := b.Requests(t.Context(), q); !errors.As(err, &refused) {
		t.Errorf("more requests than may be sorted: %v", err)
	}
}
