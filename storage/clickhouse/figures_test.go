package clickhouse_test

import (
	"context"
	"flag"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	backend "github.com/weirhq/weir/storage/clickhouse"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

var (
	figures = flag.Int("figures", 0, "how many records, in millions, TestFigures measures with")
	keep    = flag.String("figures.database", "", "the database of TestFigures, which goes on with what it has and keeps it; default: one of its own")
)

// A million records of 30 days, as the gateway writes them, made by the server: of three
// organisations of which the first has 70 %, 50,000 users, sessions of ten calls, and a
// few models. The time of an id is that of its record.
const generate = `INSERT INTO records (org, created_at, request_id, version, provider, model, status, latency, ttft, cost, input, output,
	cache_read, user, session, session_name, responded_at, request_model, response_model, path, target_url, auth_hash, finish, error_type,
	end_state, stream, content_segment, content_ordinal, dialect, response_id, request_bytes, response_bytes, updated_at, properties)
SELECT multiIf(r % 10 < 7, 'acme', r % 10 < 9, 'globex', 'initech'),
	fromUnixTimestamp64Milli(ms, 'UTC'),
	toUUID(concat(substring(id, 5, 8), '-', substring(id, 13, 4), '-7', substring(noise, 1, 3), '-8', substring(noise, 4, 3), '-', substring(noise, 7, 10), substring(id, 15, 2))),
	toUInt128(1700000000) * 4294967296 + n,
	['openai', 'anthropic', 'gemini'][r % 3 + 1] AS p,
	concat(p, '-', toString(r % 4)) AS m,
	if(r % 50 = 0, 429, 200), latency, if(r % 2 = 0, intDiv(latency, 4), NULL), if(r % 100 = 0, NULL, 1000 * (input + 4 * output)), input, output,
	if(r % 3 = 0, intDiv(input, 2), NULL), concat('user-', toString(intDiv(r, 7) % 50000)),
	concat('session-', toString(intDiv(n, 10))), 'chat', fromUnixTimestamp64Milli(ms + latency, 'UTC'), m, m, '/v1/chat/completions',
	'https://api.openai.com/v1/chat/completions', repeat('ab', 32), if(r % 50 = 0, '', 'stop'), if(r % 50 = 0, 'rate_limit_exceeded', ''),
	'complete', r % 2 = 0, 1700000000, n % 100000, 'chat', concat('chatcmpl-', hex(sipHash128(n))), 4 * input, 4 * output,
	fromUnixTimestamp64Milli(ms + latency, 'UTC'), map('env', ['prod', 'staging'][r % 2 + 1], 'tenant', toString(r % 200))
FROM (
	SELECT number + {first:UInt64} AS n, sipHash64(n) AS r, toInt64({start:Int64} + intDiv(number * 2592000000, 1000000)) AS ms,
		leftPad(lower(hex(toUInt64(ms))), 16, '0') AS id, leftPad(lower(hex(sipHash64(n, 1))), 16, '0') AS noise,
		toInt64(300 + r % 5000) AS latency, toInt64(200 + intDiv(r, 3) % 4000) AS input, toInt64(20 + intDiv(r, 5) % 900) AS output
	FROM numbers(1000000)
)`

// TestFigures measures what docs/storage_clickhouse.md tells.
func TestFigures(t *testing.T) {
	if *figures == 0 {
		t.Skip("without -figures")
	}
	o := *clickhousetest.Options(t)
	o.ReadTimeout = 10 * time.Minute
	if *keep != "" {
		o.Auth.Database = *keep
	}
	b := backend.New(backend.Config{Options: o})
	if _, err := b.Open(t.Context(), &storage.Host{}); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	conn, err := clickhouse.Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var rows uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM records").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	end := storage.Millis(time.Now())
	for i := int(rows / 1_000_000); i < *figures; i++ {
		// Each million is of the same 30 days, a millisecond later.
		start := int64(end) - 30*24*time.Hour.Milliseconds() + int64(i)
		ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_partitions_per_insert_block": 0, "max_insert_threads": 1}))
		if err := conn.Exec(ctx, generate, clickhouse.Named("first", i*1_000_000), clickhouse.Named("start", start)); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, conn)
	var bytes, parts uint64
	size := "SELECT sum(rows), sum(bytes_on_disk), count() FROM system.parts WHERE database = currentDatabase() AND table = 'records' AND active"
	if err := conn.QueryRow(t.Context(), size).Scan(&rows, &bytes, &parts); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records in %d parts take %.1f MB a million", rows, parts, float64(bytes)/float64(rows))

	var columns string
	if err := conn.QueryRow(t.Context(), `SELECT arrayStringConcat(groupArray(concat(name, ' ', toString(round(s, 1)))), ', ') FROM (
		SELECT name, data_compressed_bytes / {rows:UInt64} AS s FROM system.columns WHERE database = currentDatabase() AND table = 'records' ORDER BY s DESC LIMIT 12)`,
		clickhouse.Named("rows", rows)).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	t.Logf("the largest columns, in MB a million: %s", columns)

	var ids []uuid.UUID
	found, err := conn.Query(t.Context(), "SELECT request_id FROM records WHERE org = 'acme' ORDER BY sipHash64(request_id) LIMIT 20")
	if err != nil {
		t.Fatal(err)
	}
	for found.Next() {
		var id uuid.UUID
		if err := found.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	found.Close()
	at := 0
	all, lastDay := storage.Window{From: end - 31*24*3600*1000, To: end}, storage.Window{From: end - 24*3600*1000, To: end}
	session := &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, "session_id"), Text: "session-31415"}
	for _, m := range []struct {
		name  string
		times int
		ask   func(context.Context) (any, error)
	}{
		{"point by id", 20, func(ctx context.Context) (any, error) {
			at++
			return b.Request(ctx, storage.RecordKey{Org: "acme", ID: ids[at%len(ids)]})
		}},
		{"newest 50", 10, func(ctx context.Context) (any, error) {
			return b.Requests(ctx, &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 50})
		}},
		{"requests of a session", 10, func(ctx context.Context) (any, error) {
			return b.Requests(ctx, &storage.RequestQuery{Org: "acme", Filter: session, Limit: 50})
		}},
		{"newest 50 sessions of a day", 5, func(ctx context.Context) (any, error) {
			return (&storage.SessionQuery{Org: "acme", Filter: storage.All{}, Window: lastDay, Limit: 50}).Answer(ctx, b)
		}},
		{"newest 50 sessions of all", 3, func(ctx context.Context) (any, error) {
			return (&storage.SessionQuery{Org: "acme", Filter: storage.All{}, Window: all, Limit: 50}).Answer(ctx, b)
		}},
		{"overview of a day by hour, with percentiles", 5, func(ctx context.Context) (any, error) {
			return overview(ctx, b, lastDay, storage.ByHour)
		}},
		{"overview of 30 days by day, with percentiles", 3, func(ctx context.Context) (any, error) {
			return overview(ctx, b, all, storage.ByDay)
		}},
	} {
		var took []time.Duration
		var processor atomic.Int64 // microseconds of the server, which do not depend on who else is busy
		ctx := clickhouse.Context(t.Context(), clickhouse.WithProfileEvents(func(events []clickhouse.ProfileEvent) {
			for _, e := range events {
				if e.ThreadID == 0 && (e.Name == "UserTimeMicroseconds" || e.Name == "SystemTimeMicroseconds") {
					processor.Add(e.Value)
				}
			}
		}))
		for range m.times {
			start := time.Now()
			if _, err := m.ask(ctx); err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		t.Logf("%s: %v, from %v to %v; of the server's processor %v", m.name, took[len(took)/2].Round(time.Millisecond), took[0].Round(time.Millisecond),
			took[len(took)-1].Round(time.Millisecond), (time.Duration(processor.Load()) * time.Microsecond / time.Duration(m.times)).Round(time.Millisecond))
	}
}

// settle waits for the server's own merges, and makes one part of each day but the last,
// as the server does an hour after the last record of a day.
func settle(t *testing.T, conn clickhouse.Conn) {
	t.Helper()
	var days []string
	if err := conn.QueryRow(t.Context(), `SELECT arraySlice(arraySort(groupUniqArray(partition)), 1, -1) FROM system.parts
		WHERE database = currentDatabase() AND table = 'records' AND active`).Scan(&days); err != nil {
		t.Fatal(err)
	}
	for _, day := range days {
		if err := conn.Exec(t.Context(), "OPTIMIZE TABLE records PARTITION "+day+" FINAL SETTINGS optimize_skip_merged_partitions = 1"); err != nil {
			t.Fatal(err)
		}
	}
	for merges := uint64(1); merges > 0; time.Sleep(100 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM system.merges WHERE database = currentDatabase()").Scan(&merges); err != nil {
			t.Fatal(err)
		}
	}
}

func overview(ctx context.Context, b storage.Backend, w storage.Window, by storage.Increment) (any, error) {
	return nil, b.Groups(ctx, &storage.GroupQuery{Org: "acme", Filter: storage.All{}, Window: w, Increment: by, Details: true},
		func(*storage.GroupTotals) error { return nil })
}
