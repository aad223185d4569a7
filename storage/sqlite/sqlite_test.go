package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of queries in a small heap
	m.Run()
}

func TestContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t *testing.T) storage.Backend {
		return New(filepath.Join(t.TempDir(), "weir.db"))
	}, storagetest.Relaxed{})
}

func newBackend(t testing.TB) *Backend {
	t.Helper()
	b := New(filepath.Join(t.TempDir(), "weir.db"))
	opened(t, b)
	return b
}

func opened(t testing.TB, b *Backend) {
	t.Helper()
	if _, err := b.Open(context.Background(), hostOf(noContents{})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// hostOf is a journal with these contents.
func hostOf(contents storage.Contents) *storage.Host { return &storage.Host{Contents: contents} }

func write(t testing.TB, b *Backend, batch *storage.Batch) {
	t.Helper()
	if err := b.Write(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
}

// has checks that the backend answers the record.
func has(t *testing.T, b *Backend, r *storage.Record) {
	t.Helper()
	if _, err := b.Request(t.Context(), r.Key()); err != nil {
		t.Errorf("record %s: %v", r.ID, err)
	}
}

func TestOpenCreatesPrivateFiles(t *testing.T) {
	// Every letter that means something in a URI or in SQL.
	dir := filepath.Join(t.TempDir(), `a?b#c%41 d'e"f;ü`)
	b := New(filepath.Join(dir, "weir?mode=ro.db"))
	opened(t, b)
	traffic := newTraffic(1)
	write(t, b, traffic.batch(1))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if got, want := strings.Join(names, " "), "weir?mode=ro.db weir?mode=ro.db-shm weir?mode=ro.db-wal"; got != want {
		t.Errorf("the directory has %s, want %s", got, want)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"another file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("a diary, not a database\n", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "the path names some other file"},
		{"a directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is a directory"},
		{"a newer schema", func(t *testing.T, path string) {
			b := New(path)
			opened(t, b)
			if _, err := b.writer.c.exec("PRAGMA user_version = 99"); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}, "use a newer Weir"},
		{"a version below 0", func(t *testing.T, path string) { // a flipped bit
			b := New(path)
			opened(t, b)
			if _, err := b.writer.c.exec("PRAGMA user_version = -2147483647"); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}, "the database is damaged"},
		{"a flipped bit in the name of a column", func(t *testing.T, path string) {
			b := New(path)
			opened(t, b)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bytes.Replace(text, []byte("\tauth_hash "), []byte("\tautH_hash "), 1), 0o600); err != nil {
				t.Fatal(err)
			}
			if problems, err := New(path).Verify(t.Context()); problems == nil && err == nil {
				t.Error("Verify says nothing")
			}
		}, "the database is damaged"},
		{"a damaged file", func(t *testing.T, path string) {
			b := New(path)
			opened(t, b)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 10_000); err != nil {
				t.Fatal(err)
			}
		}, "the database is damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "weir.db")
			test.make(t, path)
			_, err := New(path).Open(t.Context(), hostOf(noContents{}))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open = %v, want %q and the path in it", err, test.want)
			}
		})
	}
}

// endless is a query that ends only when it is interrupted.
func endless(ctx context.Context, r reader) error {
	return r.c.query(ctx, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c", nil,
		func([]driver.Value) error { return nil })
}

func TestDeadlineEndsQuery(t *testing.T) {
	b := newBackend(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.withReader(ctx, endless); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", err)
	}
}

func TestCloseEndsQueries(t *testing.T) {
	b := newBackend(t)
	running, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- b.withReader(t.Context(), func(ctx context.Context, r reader) error {
			close(running)
			return endless(ctx, r)
		})
	}()
	<-running
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, errClosed) {
		t.Errorf("error %v, want %v", err, errClosed)
	}
	if _, err := b.Request(t.Context(), storage.RecordKey{Org: "acme"}); !errors.Is(err, errClosed) {
		t.Errorf("Request = %v, want %v", err, errClosed)
	}
}

func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	traffic := newTraffic(2)
	first, second := traffic.batch(1), traffic.batch(1)
	write(t, b, first)
	other, err := openWriter(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.exec("BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	if err := b.Write(t.Context(), second); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("Write = %v while another process writes", err)
	}
	has(t, b, first.Records[0])
	if _, err := other.exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	write(t, b, second)
	has(t, b, second.Records[0])
}

func TestFullDisk(t *testing.T) {
	b := newBackend(t)
	traffic := newTraffic(2000)
	first, second := traffic.batch(10), traffic.batch(1000)
	write(t, b, first)
	limit := func(pages string) {
		t.Helper()
		if _, err := b.writer.c.exec("PRAGMA max_page_count = " + pages); err != nil {
			t.Fatal(err)
		}
	}
	limit("1") // that is, as many as there are
	if err := b.Write(t.Context(), second); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("Write = %v on a full disk", err)
	}
	has(t, b, first.Records[0])
	if _, err := b.Request(t.Context(), second.Records[0].Key()); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("half a batch was kept: %v", err)
	}
	limit("1000000")
	write(t, b, second)
	for _, r := range second.Records {
		has(t, b, r)
	}
}

// number answers a query for one number.
func number(t *testing.T, b *Backend, query string) (n int64) {
	t.Helper()
	err := b.withReader(t.Context(), func(ctx context.Context, r reader) (err error) {
		n, err = r.c.integer(ctx, query)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPruneLeavesNothing(t *testing.T) {
	b := newBackend(t)
	records, _ := storagetest.Records(newTraffic(1).r, 200)
	write(t, b, storagetest.Batch(records, storage.Position{Segment: 1}))
	var last storage.Timestamp
	for _, r := range records {
		last = max(last, r.CreatedAt)
	}
	const later = storage.Timestamp(2 * 24 * time.Hour / time.Millisecond)
	for more := true; more; {
		var err error
		if more, err = b.Prune(t.Context(), last+later); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"requests", "details", "labels", "scores", "names"} {
		if n := number(t, b, "SELECT count(*) FROM "+table); n != 0 {
			t.Errorf("%s has %d rows when all records are deleted", table, n)
		}
	}
}

// A name that is swept and comes again must not be taken for what else got its
// number meanwhile.
func TestNamesAreNotReused(t *testing.T) {
	b := newBackend(t)
	const day = storage.Timestamp(24 * time.Hour / time.Millisecond)
	traffic := newTraffic(100)
	old, young := traffic.next(), traffic.next()
	old.UserID, young.UserID = "old", "young"
	young.CreatedAt = old.CreatedAt + 10*day
	write(t, b, &storage.Batch{Records: []*storage.Record{old}})
	has(t, b, old) // and the reader remembers its names
	if _, err := b.Prune(t.Context(), old.CreatedAt+5*day); err != nil {
		t.Fatal(err)
	}
	write(t, b, &storage.Batch{Records: []*storage.Record{young}})
	got, err := b.Request(t.Context(), young.Key())
	if err != nil || got.UserID != "young" {
		t.Errorf("user %q, %v, want young", got.UserID, err)
	}
}

// A record that is used for longer than names may lag keeps its names.
func TestSweepSparesUsedNames(t *testing.T) {
	b := newBackend(t)
	const hour = storage.Timestamp(time.Hour / time.Millisecond)
	traffic := newTraffic(100)
	start := traffic.at
	var records []*storage.Record
	for i := range storage.Timestamp(72) {
		r := traffic.next()
		r.UserID, r.CreatedAt = "always", start+i*hour
		records = append(records, r)
		write(t, b, &storage.Batch{Records: []*storage.Record{r}})
	}
	if _, err := b.Prune(t.Context(), start+60*hour); err != nil {
		t.Fatal(err)
	}
	for _, r := range records[60:] {
		if got, err := b.Request(t.Context(), r.Key()); err != nil || got.UserID != "always" {
			t.Errorf("user %q, %v", got.UserID, err)
		}
	}
}
