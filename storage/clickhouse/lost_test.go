package clickhouse_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	backend "github.com/weirhq/weir/storage/clickhouse"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
	"github.com/weirhq/weir/storage/journal"
)

// A database that is deleted is noticed by each node, also by those that start when another has
// created it again: a node counts its records as lost, but for those that it still has.
func TestALostDatabaseIsCounted(t *testing.T) {
	server := clickhousetest.Start(t, "")
	options := func(database string) clickhouse.Options {
		return clickhouse.Options{Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: database}, DialTimeout: time.Second}
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	open := func(dir string) *journal.Journal {
		t.Helper()
		j, err := journal.Open(t.Context(), backend.New(backend.Config{Options: options("weir")}), journal.Options{Dir: dir, SegmentBytes: 8 << 10})
		if err == nil {
			err = j.Connected(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	o := options("default")
	conn, err := clickhouse.Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Nodes that start at once create one schema: only one of much later is another.
	if err := open(t.TempDir()).Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec(t.Context(), "ALTER TABLE weir.schema_version UPDATE at = at - 3600 WHERE 1 SETTINGS mutations_sync = 1"); err != nil {
		t.Fatal(err)
	}
	const calls = 40
	for _, dir := range dirs {
		j := open(dir)
		for n := range calls {
			r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: storage.Millis(time.Now())}
			j.Begin(r)
			content := &storage.Content{Request: storage.Body{Type: "text/plain", Data: make([]byte, 1000)}}
			if err := j.Append(r, storagetest.Kept(r, content)); err != nil {
				t.Fatal(err)
			}
			if n == calls/2 {
				if err := j.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := j.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		again := open(dir)
		again.Reconfigure(journal.Options{Dir: dir, SegmentBytes: 8 << 10}) // wakes what seals
		for again.Status().RawSegments > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if err := again.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Exec(t.Context(), "DROP DATABASE weir SYNC"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		for range 2 { // counted once
			j := open(dir)
			if err := j.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			i := j.Integrity()
			if i.Seen != calls || i.Lost() != calls || i.Unaccounted() != 0 || len(i.Damage) != 1 || i.Losses[0].Reason != storage.LostDatabase {
				t.Errorf("%+v", i)
			}
			if err := j.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A table that is truncated and a partition that is dropped by hand are noticed, at once if Weir looks for
// damage. The next start counts the records if their table was truncated. What retention drops is not missed.
func TestALostTableOrPartitionIsNoticed(t *testing.T) {
	o := clickhousetest.Options(t)
	conn, err := clickhouse.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	dir := t.TempDir()
	open := func() (*journal.Journal, journal.Integrity) {
		t.Helper()
		j, err := journal.Open(t.Context(), backend.New(backend.Config{Options: *o}), journal.Options{Dir: dir, SegmentBytes: 8 << 10})
		if err == nil {
			err = cmp.Or(j.Connected(t.Context()), j.Flush(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		return j, j.Integrity()
	}
	const calls = 40
	j, _ := open()
	var day string
	for range calls {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: storage.Millis(time.Now())}
		day = r.CreatedAt.Time().UTC().Format("20060102")
		j.Begin(r)
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "text/plain", Data: make([]byte, 1000)}})); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	j, _ = open()
	j.Reconfigure(journal.Options{Dir: dir, SegmentBytes: 8 << 10}) // wakes what seals
	for j.Status().RawSegments > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	for i, table := range []string{"content DROP PARTITION", "content", "scores", "records DROP PARTITION", "records"} {
		if problems, err := j.Backend().(storage.Verifier).Verify(t.Context()); len(problems) > 0 || err != nil {
			t.Fatal(problems, err)
		}
		table, isPartition := strings.CutSuffix(table, " DROP PARTITION")
		harm := "TRUNCATE TABLE " + table
		if isPartition {
			harm = "ALTER TABLE " + table + " DROP PARTITION ID '" + day + "'"
		}
		if err := conn.Exec(t.Context(), harm); err != nil {
			t.Fatal(err)
		}
		if problems, err := j.Backend().(storage.Verifier).Verify(t.Context()); len(problems) != 1 || !strings.Contains(problems[0], table) || strings.Contains(problems[0], day) != isPartition || err != nil {
			t.Errorf("after %s, Verify says %q, %v", harm, problems, err)
		}
		for range 2 { // noticed once
			if err := j.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			var integrity journal.Integrity
			j, integrity = open()
			lost := int64(0)
			if table == "records" && !isPartition {
				lost = calls
			}
			if len(integrity.Damage) != i+1 || integrity.Lost() != lost || integrity.Seen != calls || integrity.Unaccounted() != 0 {
				t.Errorf("after %s: %+v", harm, integrity)
			}
		}
	}
	if orgs, err := j.Backend().Organisations(t.Context()); len(orgs) > 0 || err != nil {
		t.Errorf("the organisations are %q, %v", orgs, err)
	}
	if _, err := j.Backend().Prune(t.Context(), storage.Millis(time.Now().AddDate(0, 2, 0))); err != nil {
		t.Fatal(err)
	}
	if problems, err := j.Backend().(storage.Verifier).Verify(t.Context()); len(problems) > 0 || err != nil {
		t.Errorf("after retention, Verify says %q, %v", problems, err)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
