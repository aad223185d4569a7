//go:build linux

package alert

import (
	"context"
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlite"
)

var benchmarkDatabase = flag.String("alert.database", "", "file of a database that the benchmarks of storage/sqlite have made")

// noContents stands for content that has been deleted.
type noContents struct{}

func (noContents) Content(context.Context, *storage.Record) (*storage.Content, error) {
	return nil, nil //nolint:nilnil // as storage.Contents says
}

func (c noContents) Reader(storage.ContentPart) storage.ContentReader { return c }

func (noContents) Close() {}

// hundredRules are rules on all kinds of totals of records, as many organisations together may have.
func hundredRules() (rules []*Rule) {
	add := func(total, operator string, threshold float64, over time.Duration, than, per, filter string) {
		rules = append(rules, &Rule{
			Name: fmt.Sprint("rule ", len(rules)), Total: total, Operator: operator, Threshold: threshold, Over: caddy.Duration(over),
			Than: than, Per: per, Filter: []byte(filter), To: []string{"ops"},
		})
	}
	const hour, day = time.Hour, 24 * time.Hour
	for i := range 5 {
		is := func(field, operator, value string) string {
			return fmt.Sprintf(`{"request_response_rmt":{%q:{%q:%q}}}`, field, operator, fmt.Sprintf(value, i))
		}
		tenant := fmt.Sprintf(`{"request_response_rmt":{"properties":{"Tenant":{"equals":"tenant-%d"}}}}`, i)
		add("cost", ">", 1e6, hour, "", "", "")
		add("cost", ">", 1e6, 31*day, "", "", is("model", "equals", "model-%d"))
		add("cost", ">", 1e6, day, "", "user", "")
		add("cost", ">", 1e6, day, "", "session", "") // a session dearer than
		add("cost", ">", 1e6, 7*day, "", "model", "")
		add("cost", ">", 1e6, day, "", "property.Tenant", "")
		add("cost", ">", 1e6, hour, "", "tree", "")
		add("errors", ">", 1e6, hour, "", "", is("error_message", "contains", "overloaded %d"))
		add("errors", ">", 1e6, 10*time.Minute, "", "provider", "")
		add("errors", ">", 1e6, hour, "", "", is("error_type", "equals", "error_%d"))
		add("requests", ">", 1e6, hour, "", "", is("error_type", "equals", "insufficient_quota_%d")) // refusals
		add("latency.p95", ">", 1e9, hour, "", "", is("model", "not-equals", "model-%d"))
		add("latency.p95", ">", 1e9, 10*time.Minute, "", "model", "")
		add("time_to_first_token.p99", ">", 1e9, hour, "", "", tenant)
		add("requests", "<", 1, hour, "", "", tenant) // absence
		add("requests", "<", 1, hour, "", "model", "")
		add("cost", ">", 1e6, hour, "last_week", "", "")
		add("requests", ">", 1e6, day, "last_week", "user", "")
		add("total_tokens", ">", 1e12, 7*day, "", "", is("user_id", "equals", "user-%d"))
		add("requests_without_cost", ">", 1e6, day, "", "model", "")
	}
	return rules
}

// BenchmarkHundredRules measures a minute of 100 rules, after the first, which reads all of their
// windows. core-% is the processor time as a part of the minute, on one core.
//
//	go test ./storage/sqlite -run '^$' -bench Analytics/open -benchtime 1x -timeout 2h -sqlite.records 10000000 -sqlite.database /tmp/weir.db
//	go test ./modules/internal/alert -run '^$' -bench HundredRules -benchtime 120x -alert.database /tmp/weir.db
func BenchmarkHundredRules(b *testing.B) {
	if *benchmarkDatabase == "" {
		b.Skip("needs -alert.database")
	}
	db := sqlite.New(*benchmarkDatabase)
	if _, err := db.Open(b.Context(), &storage.Host{Contents: noContents{}}); err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	newest, err := db.Requests(b.Context(), &storage.RequestQuery{Org: "default", Filter: storage.All{}, Limit: 1})
	if err != nil || len(newest) == 0 {
		b.Fatal(len(newest), err)
	}
	const hours = 12 // of which the windows end before the newest record
	at := newest[0].CreatedAt.Time().Add(-hours * time.Hour)
	e := newEngine(b, openLog(b), db, map[string]*receiver{"ops": new(receiver)}, hundredRules()...)
	e.Org = "default"
	processor := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := processor()
	e.Evaluate(b.Context(), at)
	b.Logf("the first minute takes %s", processor()-began)
	began = processor()
	for b.Loop() {
		at = at.Add(time.Minute)
		e.Evaluate(b.Context(), at)
	}
	took := float64(processor() - began)
	for _, w := range e.states {
		if w.failed {
			b.Error("a rule cannot be evaluated")
		}
	}
	b.ReportMetric(took/float64(b.N)/1e6, "cpu-ms/op")
	b.ReportMetric(100*took/float64(b.N)/float64(time.Minute), "core-%")
}
