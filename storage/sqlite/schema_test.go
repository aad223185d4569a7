package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// oddNames are such as a hash or SQL may take for others.
var oddNames = []string{"", "nul", "nul\x00", "nul\x00byte", "\xff\xfe", "it's", "日本", strings.Repeat("long ", 10_000)}

// firstRelease makes a database of 0.1.0, with so many sessions.
func firstRelease(t *testing.T, sessions int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "weir.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := openWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := migrations.ReadFile("migrations/0001.sql")
	if err != nil {
		t.Fatal(err)
	}
	run := func(statement string, args ...driver.Value) {
		t.Helper()
		if _, err := c.exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(string(schema))
	run("PRAGMA user_version = 1")
	run("INSERT INTO names (id, kind, name, seen) VALUES (1, 'org', 'acme', 1)")
	for i, name := range oddNames {
		run("INSERT INTO names (id, kind, name, seen) VALUES (?, 'user', ?, ?)", int64(2+i), name, int64(i))
		run("INSERT INTO names (id, kind, name, seen) VALUES (?, 'property:Env', ?, 0)", int64(100+i), name)
	}
	run("WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?)"+
		" INSERT INTO names (id, kind, name, seen) SELECT 1000 + 3 * i, 'session', lower(hex(randomblob(18))), i FROM i", int64(sessions))
	run("INSERT INTO requests (n, org, user, session, end_state, stream, threat, passthrough, subscription, cache_enabled, request_id)"+
		" SELECT id << 20, 1, 2 + id % ?, id, 0, 0, 0, 0, 0, 0, randomblob(16) FROM names WHERE kind = 'session' AND id % 100 = 0", int64(len(oddNames)))
	run("INSERT INTO details (n, attempt, request_bytes, response_bytes, request_omitted, response_omitted, request_truncated, response_truncated, updated_at)" +
		" SELECT n, 1, 0, 0, 0, 0, 0, 0, 0 FROM requests")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyOf copies a database that nobody has open.
func copyOf(t *testing.T, path string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "weir.db")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(copied, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// contents sums up what a database of any version has, and checks that it is whole.
func contents(t *testing.T, c *conn) string {
	t.Helper()
	sum := sha256.New()
	var line []byte
	for _, query := range []string{"SELECT id, kind, name, seen FROM names ORDER BY id", "SELECT n, org, user, session, end_state, stream, request_id FROM requests ORDER BY n", "SELECT * FROM request_log ORDER BY n"} {
		rows := 0
		err := c.query(t.Context(), query, nil, func(row []driver.Value) error {
			rows++
			line = appendRow(line[:0], row)
			sum.Write(line)
			return nil
		})
		if err != nil || rows == 0 {
			t.Fatalf("%d rows of %s: %v", rows, query, err)
		}
	}
	err := c.query(t.Context(), "PRAGMA integrity_check(1)", nil, func(row []driver.Value) error {
		if row[0] != "ok" {
			t.Fatal(row[0])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// appendRow appends the values of a row to a line: there are hundreds of thousands of rows.
func appendRow(line []byte, row []driver.Value) []byte {
	for _, v := range row {
		switch v := v.(type) {
		case int64:
			line = strconv.AppendInt(line, v, 10)
		case string:
			line = strconv.AppendQuote(line, v)
		default:
			line = fmt.Appendf(line, "%q", v)
		}
		line = append(line, ' ')
	}
	return append(line, '\n')
}

// A database of a development version has the version of the schema, and other tables.
func TestOtherTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	b := New(path)
	if _, err := b.Open(t.Context(), hostOf(noContents{})); err != nil {
		t.Fatal(err)
	}
	if _, err := b.writer.c.exec("DROP TABLE journals"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := New(path).Open(t.Context(), hostOf(noContents{})); !errors.Is(err, storage.ErrRejected) || !strings.Contains(err.Error(), "from before 0.1.0") {
		t.Errorf("it opens with %v", err)
	}
}

// contentsOf reads a database as another program does.
func contentsOf(t *testing.T, path string) (sum string, version int64) {
	t.Helper()
	c, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if version, err = c.integer(t.Context(), "PRAGMA user_version"); err != nil {
		t.Fatal(err)
	}
	return contents(t, c), version
}

// wantMigrated opens a database, and checks that its names are found.
func wantMigrated(t *testing.T, path, want string) {
	t.Helper()
	b := New(path)
	opened(t, b)
	if got, version := contentsOf(t, path); got != want || version != 2 {
		t.Errorf("the migrated database has version %d, and what it had before: %v", version, got == want)
	}
	if n := number(t, b, "SELECT count(*) FROM names WHERE hash != name_hash(CAST(name AS BLOB))"); n > 0 {
		t.Errorf("%d names have a wrong hash", n)
	}
	err := b.withReader(t.Context(), func(ctx context.Context, r reader) error {
		return r.c.query(ctx, "SELECT id, kind, name FROM names WHERE kind != 'session' OR id % 100 = 0", nil, func(row []driver.Value) error {
			id, err := b.writer.names.id(row[1].(string), row[2].(string), 0)
			if err == nil && id != row[0] {
				err = fmt.Errorf("%s %.20q has the number %v, and is found as %v", row[1], row[2], row[0], id)
			}
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// A database of before a value was recorded gets its column, and keeps it apart from what
// it has.
func TestMissingColumnsAreAdded(t *testing.T) {
	b := newBackend(t)
	before := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: 1, Model: "m"}
	write(t, b, &storage.Batch{Records: []*storage.Record{before}})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := openWriter(b.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"requests DROP COLUMN job", "requests DROP COLUMN threat", "requests DROP COLUMN parent", "requests DROP COLUMN turn",
		"details DROP COLUMN span_id", "details DROP COLUMN request_bytes", "details DROP COLUMN request_omitted"} {
		if _, err := c.exec("ALTER TABLE " + column); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b = New(b.path)
	opened(t, b)
	after := &storage.Record{
		ID: uuid.New(), Org: "acme", CreatedAt: 2, JobID: "j", Threat: true, ParentID: before.ID, Turn: plugins.Known(2),
		SpanID: "t", RequestBytes: 7, RequestOmitted: true,
	}
	write(t, b, &storage.Batch{Records: []*storage.Record{after}})
	for _, want := range []*storage.Record{before, after} {
		got, err := b.Request(t.Context(), want.Key())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// migrated names the database that the process of a test is to migrate.
const migrated = "WEIR_MIGRATED"

// Whenever a process is killed that migrates a database, that is as it was before or
// migrated: others read it, and the next process goes on with it.
func TestMigrationsAreKilled(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(migrated); path != "" {
		fmt.Println("begins")
		_, err := New(path).Open(t.Context(), hostOf(noContents{}))
		fmt.Println("ends", err)
		return
	}
	before := firstRelease(t, 60_000)
	want, _ := contentsOf(t, before)
	written := func(path string) time.Time {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	// migrate has a process migrate a database, and kills it up to so long after it first
	// wrote anything.
	migrate := func(path string, kill time.Duration) (took time.Duration) {
		t.Helper()
		first := written(path)
		process := exec.Command(os.Args[0], "-test.run=^TestMigrationsAreKilled$")
		process.Env = append(os.Environ(), migrated+"="+path)
		output, err := process.StdoutPipe()
		if err == nil {
			err = process.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = process.Wait() }()
		if _, err := io.ReadFull(output, make([]byte, len("begins\n"))); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if kill > 0 {
			for written(path).Equal(first) && time.Since(start) < 10*time.Second {
				time.Sleep(100 * time.Microsecond)
			}
			time.Sleep(rand.N(kill))
			_ = process.Process.Kill()
		}
		said, _ := io.ReadAll(output)
		if (kill == 0 || len(said) > 0) && !strings.HasPrefix(string(said), "ends <nil>") {
			t.Fatalf("the next process %s", said)
		}
		return time.Since(start)
	}
	took := migrate(copyOf(t, before), 0)
	path := copyOf(t, before)
	for midway, tries := 0, 0; midway < 3; tries++ {
		if tries == 50 {
			t.Fatal("no migration was killed midway")
		}
		migrate(path, took/2)
		switch got, version := contentsOf(t, path); {
		case got != want:
			t.Fatalf("a killed migration leaves version %d with other contents", version)
		case version == 2:
			path = copyOf(t, before)
		default:
			midway++
		}
	}
	wantMigrated(t, path, want)
}

// Who reads a database while it is migrated sees what it was, and then what it is.
func TestMigrationsBesideReaders(t *testing.T) {
	path := firstRelease(t, 1000)
	want, _ := contentsOf(t, path)
	s, err := openSnapshot(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.c.Close()
	wantMigrated(t, path, want)
	if got := contents(t, s.c); got != want {
		t.Error("a reader sees half of the migration")
	}
	if err := s.tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s.c); got != want {
		t.Error("afterwards a reader sees something else")
	}
}

// A migration that fails, or that the end of the process interrupts, changes nothing,
// unless the end came as all was written.
func TestMigrationsFail(t *testing.T) {
	t.Parallel()
	path := firstRelease(t, 20_000)
	want, _ := contentsOf(t, path)
	for _, test := range []struct {
		name, pragma string
		within       time.Duration
		want         string
		mayBeWhole   bool
	}{
		{"a full disk", "PRAGMA max_page_count = 1", time.Hour, "full", false},
		{"a process that ends", pageCache, 5 * time.Millisecond, context.DeadlineExceeded.Error(), true},
	} {
		c, err := openWriter(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.exec(test.pragma); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), test.within)
		if err := c.migrate(ctx); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		cancel()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if got, version := contentsOf(t, path); got != want || version != 1 && (version != 2 || !test.mayBeWhole) {
			t.Errorf("%s leaves version %d, and what was there: %v", test.name, version, got == want)
		}
	}
	wantMigrated(t, path, want)
}
