package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// overwritten is a database whose file somebody replaces by an older copy.
type overwritten struct {
	*Backend
	host    *storage.Host
	told    []string
	traffic *traffic
	end     storage.Position // of the last batch
	records []*storage.Record
}

func newOverwritten(t *testing.T) *overwritten {
	o := &overwritten{Backend: New(filepath.Join(t.TempDir(), "weir.db")), traffic: newTraffic(1000)}
	o.host = &storage.Host{Journal: uuid.New(), Contents: noContents{}, Damaged: func(found string) { o.told = append(o.told, found) }}
	t.Cleanup(func() { _ = o.Close() })
	o.start(t)
	return o
}

func (o *overwritten) start(t *testing.T) storage.Position {
	t.Helper()
	p, err := o.Open(t.Context(), o.host)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// write writes batches of so many records.
func (o *overwritten) write(t *testing.T, batches, records int) error {
	t.Helper()
	for range batches {
		batch := o.traffic.batch(records)
		o.end.Ordinal++
		batch.Journal, batch.End = o.host.Journal, o.end
		if err := o.Write(t.Context(), batch); err != nil {
			return err
		}
		o.records = append(o.records, batch.Records...)
	}
	return nil
}

func (o *overwritten) batches(t *testing.T, batches, records int) {
	t.Helper()
	if err := o.write(t, batches, records); err != nil {
		t.Fatal(err)
	}
}

// merged writes batches, merges the log, and returns the file.
func (o *overwritten) merged(t *testing.T) []byte {
	t.Helper()
	o.batches(t, 5, 10)
	erase(t, o.Backend)
	return o.file(t, "")
}

func (o *overwritten) file(t *testing.T, suffix string) []byte {
	t.Helper()
	text, err := os.ReadFile(o.path + suffix)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// put writes over a file, as cp does.
func (o *overwritten) put(t *testing.T, suffix string, text []byte) {
	t.Helper()
	if err := os.WriteFile(o.path+suffix, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// check is what `weir check` says of the database.
func (o *overwritten) check(t *testing.T) error {
	t.Helper()
	_, err := new(Storage).CheckFile(t.Context(), o.path, o.host.Journal, func(*storage.Record) {})
	return err
}

// An older copy that is written over the file while it is open is told at the next batch, which is refused, as
// queries are. The next start has the copy as it was, with its position, from which the host fills it again.
func TestAnOlderCopyOverAnOpenFileIsRefused(t *testing.T) {
	o := newOverwritten(t)
	older, at, records := o.merged(t), o.end, len(o.records)
	o.merged(t)
	o.put(t, "", older)
	for range 2 {
		if err := o.write(t, 1, 10); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("a batch: %v", err)
		}
	}
	if _, err := o.Request(t.Context(), o.records[0].Key()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a query: %v", err)
	}
	if len(o.told) == 0 {
		t.Error("nothing is told")
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	o.wantOlder(t, at, records)
}

// An overwritten file is noticed also if nothing is written any more.
func TestAnOlderCopyIsNotMergedWithTheLog(t *testing.T) {
	o := newOverwritten(t)
	older, at, records := o.merged(t), o.end, len(o.records)
	o.merged(t)
	o.batches(t, 1, 10)
	o.put(t, "", older)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.check(t); err == nil {
		t.Error("Check says nothing")
	}
	o.wantOlder(t, at, records)
}

// After a kill, neither an older file under the log nor an older log over the file passes for the database.
func TestFileAndLogAreOfOneTime(t *testing.T) {
	for _, suffix := range []string{"", "-wal"} {
		t.Run("weir.db"+suffix, func(t *testing.T) {
			o := newOverwritten(t)
			var files, logs [2][]byte // an older log needs a file of the same size, or it is damage
			var ends [2]storage.Position
			var records [2]int
			for i := range files {
				o.batches(t, 5*(1-i), 10)
				o.batches(t, 1, 0)
				erase(t, o.Backend)
				files[i], ends[i], records[i] = o.file(t, ""), o.end, len(o.records)
				o.batches(t, 1, 0)
				logs[i] = o.file(t, "-wal")
			}
			killed := &overwritten{Backend: New(filepath.Join(t.TempDir(), "weir.db")), host: o.host, records: o.records}
			t.Cleanup(func() { _ = killed.Close() })
			killed.put(t, "", files[1])
			killed.put(t, "-wal", logs[1])
			if err := killed.check(t); err != nil {
				t.Fatalf("before: %v", err)
			}
			o.told = nil
			now := 0
			if suffix == "" {
				killed.put(t, suffix, files[0])
			} else {
				killed.put(t, suffix, logs[0])
				now = 1
			}
			if err := killed.check(t); err == nil {
				t.Error("Check says nothing")
			}
			killed.wantOlder(t, ends[now], records[now])
			if len(o.told) != 1 {
				t.Errorf("this is told: %q", o.told)
			}
		})
	}
}

// wantOlder checks that the database opens as it was at a position.
func (o *overwritten) wantOlder(t *testing.T, at storage.Position, records int) {
	t.Helper()
	if p := o.start(t); p != at {
		t.Errorf("the position is %v, want %v", p, at)
	}
	for i, r := range o.records {
		_, err := o.Request(t.Context(), r.Key())
		if i < records && err != nil || i >= records && !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("record %d of %d: %v", i, records, err)
		}
	}
	if problems, err := o.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the database is damaged: %v, %v", problems, err)
	}
	if err := o.check(t); err != nil {
		t.Errorf("Check still says %v", err)
	}
}

// A merge that a reader stops halfway need not be on the disk: after a power cut, the log has all that the file lacks.
func TestAHalfMergedLogIsNeeded(t *testing.T) {
	o := newOverwritten(t)
	o.merged(t)
	o.batches(t, 1, 10)
	unmerged := o.file(t, "")
	reading, err := openReader(o.path)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	for _, text := range []string{"BEGIN", "SELECT count(*) FROM requests"} {
		if _, err := reading.exec(text); err != nil {
			t.Fatal(err)
		}
	}
	// Of a page that is in the log again, a merge up to what the reader sees takes nothing: no batch may follow.
	for _, text := range []string{"INSERT INTO buckets VALUES (1)", "PRAGMA wal_checkpoint(PASSIVE)"} {
		if _, err := o.writer.c.exec(text); err != nil {
			t.Fatal(err)
		}
	}
	o.batches(t, 1, 10)
	if string(o.file(t, "")) == string(unmerged) {
		t.Fatal("nothing was merged: the test proves nothing")
	}
	cut := &overwritten{Backend: New(filepath.Join(t.TempDir(), "weir.db")), host: o.host, records: o.records}
	t.Cleanup(func() { _ = cut.Close() })
	cut.put(t, "", unmerged)
	cut.put(t, "-wal", o.file(t, "-wal"))
	cut.wantOlder(t, o.end, len(o.records))
	if len(o.told) > 0 {
		t.Errorf("this is told: %q", o.told)
	}
}

// A copy of the file from after the log was begun costs nothing: the log has all that changed since. So does a
// merge by another process, such as sqlite3.
func TestACopyThatTheLogCoversCostsNothing(t *testing.T) {
	o := newOverwritten(t)
	copied := o.merged(t)
	o.batches(t, 5, 10)
	o.put(t, "", copied)
	o.batches(t, 5, 10)
	other, err := openWriter(o.path)
	if err == nil {
		_, err = other.exec("PRAGMA wal_checkpoint(PASSIVE)")
	}
	if err = errors.Join(err, other.Close(), o.write(t, 5, 10), o.Close(), o.check(t)); err != nil {
		t.Fatal(err)
	}
	if p := o.start(t); p != o.end || len(o.told) > 0 {
		t.Errorf("the position is %v, want %v, and %q is told", p, o.end, o.told)
	}
	for _, r := range o.records {
		has(t, o.Backend, r)
	}
}
