package clickhouse_test

import (
	"context"
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
		again := open(dir) // seals what is over
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
