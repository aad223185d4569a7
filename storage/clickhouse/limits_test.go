package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

// users is the part of a configuration that has the user default, who may do all, and
// others.
const users = `<users><default><password></password><profile>default</profile><quota>default</quota></default>%s</users>
	<profiles><default/></profiles><quotas><default/></quotas>`

// Every statement that the server saw, of the schema, inserts, queries and retention,
// had bounds of its time, its memory and its rows.
func TestLimitsOfEveryStatement(t *testing.T) {
	server := clickhousetest.Start(t, fmt.Sprintf(users, "")+`<query_log><database>system</database><table>query_log</table></query_log>`)
	b := New(Config{Options: clickhouse.Options{
		Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: "weir"}, Settings: clickhouse.Settings{"max_memory_usage": 123 << 20},
	}})
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), 50)
	if _, err := b.Open(t.Context(), &storage.Host{Contents: contents}); err != nil {
		t.Fatal(err)
	}
	batch := storagetest.Batch(records, storage.Position{Segment: 1})
	batch.ID = "1"
	if err := b.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"Requests": func() error {
			_, err := b.Requests(t.Context(), &storage.RequestQuery{Org: records[0].Org, Filter: storage.All{}, Limit: 5})
			return err
		},
		"Request": func() error {
			_, err := b.Request(t.Context(), records[0].Key())
			return err
		},
		"Content": func() error {
			_, err := b.Content(t.Context(), records[0])
			return err
		},
		"Groups": func() error {
			q := &storage.GroupQuery{Org: records[0].Org, Filter: storage.All{}, Window: storage.Always}
			return b.Groups(t.Context(), q, func(*storage.GroupTotals) error { return nil })
		},
		"Organisations": func() error { _, err := b.Organisations(t.Context()); return err },
		"Views":         func() error { _, err := b.Views(t.Context(), records[0].Org); return err },
		"SessionTags":   func() error { _, err := b.SessionTags(t.Context(), records[0].Org); return err },
	} {
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if _, err := b.Prune(t.Context(), lastMoment); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.Exec(t.Context(), "SYSTEM FLUSH LOGS query_log"); err != nil {
		t.Fatal(err)
	}
	rows, err := b.conn.Query(t.Context(), `SELECT query_kind, query, Settings['max_execution_time'], Settings['max_memory_usage'], Settings['max_result_rows']
		FROM system.query_log WHERE type = 'QueryFinish' AND is_initial_query AND interface = 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := make(map[string]int)
	for rows.Next() {
		var kind, query, seconds, memory, result string
		if err := rows.Scan(&kind, &query, &seconds, &memory, &result); err != nil {
			t.Fatal(err)
		}
		seen[kind]++
		if bound, err := strconv.Atoi(seconds); err != nil || bound < 1 || bound > 60 || memory != fmt.Sprint(123<<20) || result != "5000000" {
			t.Errorf("a statement has the bounds %q seconds, %q bytes, %q rows: %s", seconds, memory, result, query)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Create", "Insert", "Select", "Alter"} {
		if seen[kind] == 0 {
			t.Errorf("of %s no statement was seen, of %v", kind, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// A store whose user may not do all that it needs says which rights to grant, before it
// takes a batch. Those that it names suffice.
func TestOpenNamesMissingRights(t *testing.T) {
	const user = `<%s><password></password><profile>default</profile><quota>default</quota><grants>%s</grants></%[1]s>`
	grants := func(list ...string) (text string) {
		for _, g := range list {
			text += "<query>GRANT " + g + "</query>"
		}
		return text
	}
	all := []string{"CREATE DATABASE ON weir.*", "CREATE TABLE ON weir.*", "TABLE ENGINE ON ReplacingMergeTree", "SELECT ON weir.*", "INSERT ON weir.*",
		"ALTER DELETE ON weir.*", "ALTER SETTINGS ON weir.*", "ALTER ADD COLUMN ON weir.*", "SELECT ON system.parts"}
	server := clickhousetest.Start(t, fmt.Sprintf(users, fmt.Sprintf(user, "reader", grants("SELECT ON weir.*"))+
		fmt.Sprintf(user, "writer", grants(all[:5]...))+fmt.Sprintf(user, "whole", grants(all...))))
	as := func(user string) *Backend {
		return New(Config{Options: clickhouse.Options{Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: "weir", Username: user}}})
	}
	for user, missing := range map[string][]string{
		"reader": {"CREATE DATABASE", "CREATE TABLE", "TABLE ENGINE", "INSERT", "ALTER DELETE", "ALTER SETTINGS", "ALTER ADD COLUMN", "SELECT ON system.parts"},
		"writer": {"ALTER DELETE", "ALTER SETTINGS", "ALTER ADD COLUMN", "SELECT ON system.parts"},
	} {
		_, err := as(user).Open(t.Context(), &storage.Host{})
		if err == nil {
			t.Errorf("%s opens a store without %v", user, missing)
			continue
		}
		if n := strings.Count(err.Error(), "GRANT "); n != len(missing) {
			t.Errorf("%s: %d grants are named, want %d: %v", user, n, len(missing), err)
		}
		for _, right := range missing {
			if !strings.Contains(err.Error(), "GRANT "+right) || !strings.Contains(err.Error(), "TO `"+user+"`") {
				t.Errorf("%s: %q is not named: %v", user, right, err)
			}
		}
	}
	whole := as("whole")
	whole.config.Cluster = "main"
	o := whole.options()
	o.Auth.Database = "system"
	conn, err := clickhouse.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = whole.checkRights(t.Context(), conn, false)
	for _, right := range []string{"TABLE ENGINE ON ReplicatedReplacingMergeTree", "CLUSTER ON *.*", "SYSTEM SYNC REPLICA ON `weir`.*"} {
		if err == nil || !strings.Contains(err.Error(), "GRANT "+right+" TO `whole`") {
			t.Errorf("with a cluster, %q is not named: %v", right, err)
		}
	}
	whole.config.Cluster = ""
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), 20)
	if _, err := whole.Open(t.Context(), &storage.Host{Contents: contents}); err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if err := whole.Write(t.Context(), storagetest.Batch(records, storage.Position{Segment: 1})); err != nil {
		t.Error(err)
	}
	if _, err := whole.Prune(t.Context(), lastMoment); err != nil {
		t.Error(err)
	}
	if _, err := whole.Organisations(t.Context()); err != nil {
		t.Error(err)
	}
}

// A query ends with its context, on the server too: within 200 ms, in one of some tries,
// since the machine may have no time for it.
func TestCancel(t *testing.T) {
	b, _ := filled(t, 5)
	const running = "SELECT count() FROM system.processes WHERE query LIKE '%cancelled here%' AND query NOT LIKE '%processes%'"
	for _, statement := range []string{
		"SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))",
		"SELECT number % 1009 AS n, quantiles(0.5, 0.9)(number) FROM numbers(100000000000) GROUP BY n",
		"SELECT 1 WHERE 1 IN (SELECT max(sipHash64(number)) FROM numbers(1000000000000))",
	} {
		best := time.Hour
		for try := 0; try < 10 && best > 200*time.Millisecond; try++ {
			r, err := b.reader("acme")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- r.query(ctx, statement+" /* cancelled here */", func(driver.Rows) error { return nil })
			}()
			wait := func(want uint64) {
				t.Helper()
				for n, deadline := 1-want, time.Now().Add(10*time.Second); n != want; {
					if err := b.conn.QueryRow(t.Context(), running).Scan(&n); err != nil {
						t.Fatal(err)
					}
					if time.Now().After(deadline) {
						t.Fatalf("the server runs %d of it, want %d: %s", n, want, statement)
					}
				}
			}
			wait(1)
			began := time.Now()
			cancel()
			if err := explain(ctx, <-ended); !errors.Is(err, context.Canceled) {
				t.Errorf("the query ended with %v", err)
			}
			wait(0)
			best = min(best, time.Since(began))
		}
		t.Logf("%v: %s", best.Round(time.Millisecond), statement)
		if best > 200*time.Millisecond {
			t.Errorf("the server goes on for %v with a query that nobody waits for: %s", best, statement)
		}
	}
}

// A server that takes connections and answers nothing is out of reach: the host learns
// it, and tries again.
func TestServerThatHangs(t *testing.T) {
	o := clickhousetest.Options(t)
	through := newHangingProxy(t, o.Addr[0])
	o.Addr, o.DialTimeout = []string{through.Addr().String()}, time.Second
	b := New(Config{Options: *o, Timeout: time.Second})
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), 5)
	if _, err := b.Open(t.Context(), &storage.Host{Contents: contents}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	through.hang.Store(true)
	for range 2 { // on the connection that there is, and on a new one
		begin := time.Now()
		batch := storagetest.Batch(records, storage.Position{Segment: 1})
		batch.ID = "1"
		if err := b.Write(t.Context(), batch); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("Write = %v, want that the server is unavailable", err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("Write took %s", took)
		}
	}
}

// hangingProxy forwards bytes to a server until it hangs.
type hangingProxy struct {
	net.Listener
	hang atomic.Bool
}

func newHangingProxy(t *testing.T, to string) *hangingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &hangingProxy{Listener: l}
	forward := func(from, to net.Conn) {
		defer to.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if p.hang.Load() {
				continue
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go forward(client, server)
			go forward(server, client)
		}
	}()
	return p
}
