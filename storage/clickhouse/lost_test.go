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

// A table that is truncated is noticed, at once if Weir looks for damage, and counted by the next start
// if it had the records.
func TestATruncatedTableIsNoticed(t *testing.T) {
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
	for range calls {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: storage.Millis(time.Now())}
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
	for i, table := range []string{"content", "scores", "records"} {
		if problems, err := j.Backend().(storage.Verifier).Verify(t.Context()); len(problems) > 0 || err != nil {
			t.Fatal(problems, err)
		}
		if err := conn.Exec(t.Context(), "TRUNCATE TABLE "+table); err != nil {
			t.Fatal(err)
		}
		if problems, err := j.Backend().(storage.Verifier).Verify(t.Context()); len(problems) != 1 || !strings.Contains(problems[0], table) || err != nil {
			t.Errorf("of the truncated table %s Verify says %q, %v", table, problems, err)
		}
		for range 2 { // noticed once
			if err := j.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			var integrity journal.Integrity
			j, integrity = open()
			lost := int64(0)
			if table == "records" {
				lost = calls
			}
			if len(integrity.Damage) != i+1 || integrity.Lost() != lost || integrity.Seen != calls || integrity.Unaccounted() != 0 {
				t.Errorf("after %s was truncated: %+v", table, integrity)
			}
		}
	}
	if orgs, err := j.Backend().Organisations(t.Context()); len(orgs) > 0 || err != nil {
		t.Errorf("the organisations are %q, %v", orgs, err)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
