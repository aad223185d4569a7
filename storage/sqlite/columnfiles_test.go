package sqlite

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// settle writes all files of columns that there are requests for.
func settle(t *testing.T, b *Backend) (files []string) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = b.files.next(t.Context(), chunkRows/32); err != nil {
			t.Fatal(err)
		}
	}
	return columnFilesOf(t, b.files.dir)
}

func columnFilesOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		files = append(files, filepath.Join(dir, e.Name()))
	}
	return files
}

// requestsIn counts the requests of a window as analytics do.
func requestsIn(t *testing.T, b *Backend, w storage.Window) (requests int64) {
	t.Helper()
	err := b.Groups(t.Context(), &storage.GroupQuery{Org: "default", Filter: storage.All{}, Window: w}, func(g *storage.GroupTotals) error {
		requests = g.Requests
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// stored writes records into files of 32 each, and answers them in order of time.
func stored(t *testing.T, b *Backend, records int) ([]*storage.Record, []string) {
	t.Helper()
	batch := newTraffic(records).batch(records)
	write(t, b, batch)
	files := settle(t, b)
	if len(files) < records/chunkRows-2 {
		t.Fatalf("%d files of %d records", len(files), records)
	}
	return batch.Records, files
}

// TestColumnFilesReadBack holds that a file has the values that it was written with, of
// the columns that are asked for, and that no changed byte of it passes.
func TestColumnFilesReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c chunk
	widths := []int64{1, 200, 60_000, 1 << 31, 1 << 50}
	for i := range 100 {
		c.begin(int64(i)*7<<sequenceBits, 5)
		for column := range columnCount {
			if column%7 == 3 {
				continue // not one row has it
			}
			c.count(column, 1000+r.Int64N(widths[column%len(widths)]))
		}
	}
	c.others = true
	c.properties = map[string][]uint32{"a": make([]uint32, 100), `"b`: make([]uint32, 100), "unread": make([]uint32, 100)}
	for i := range 100 {
		c.properties["a"][i], c.properties[`"b`][i] = r.Uint32N(3), r.Uint32()
	}
	path := filepath.Join(t.TempDir(), "c")
	if err := writeColumns(path, &c, c.low-1, c.high); err != nil {
		t.Fatal(err)
	}
	known := region{after: c.low - 1, last: c.high}
	var all [columnCount]bool
	for i := range all {
		all[i] = i != userColumn
	}
	read := func() (*chunk, error) { return new(fileReader).read(path, known, &all, []string{"a", `"b`, "a"}) }
	got, err := read()
	if err != nil {
		t.Fatal(err)
	}
	same := func(got *chunk) bool {
		for column := range columnCount {
			for row := range c.n {
				if column != userColumn && got.value(column, row) != c.value(column, row) {
					return false
				}
			}
		}
		for _, name := range []string{"a", `"b`} {
			if !slices.Equal(got.properties[name], c.properties[name]) {
				return false
			}
		}
		return got.others && len(got.properties) == 2 && slices.Equal(got.n, c.n) && slices.Equal(got.org, c.org) && got.low == c.low && got.high == c.high && got.live == c.live
	}
	if !same(got) {
		t.Error("the file has other values")
	}
	if got.columns[userColumn] != nil {
		t.Error("a column is read that is not needed")
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); err == nil && !same(got) {
			t.Error("a damaged file is read")
		}
	}
	for at := 0; at < len(whole); at += 1 + r.IntN(200) {
		damaged := slices.Clone(whole)
		damaged[at] ^= 1 << r.IntN(8)
		change(damaged)
		change(whole[:at])
	}
}

// TestColumnFilesOfAWindow holds that a query reads the files of its window alone.
func TestColumnFilesOfAWindow(t *testing.T) {
	smallChunks(t)
	b := newBackend(t)
	records, files := stored(t, b, 1000)
	w := storage.Window{From: records[500].CreatedAt, To: records[520].CreatedAt}
	want := requestsIn(t, b, w)
	var regions []region
	err := b.reading(t.Context(), func(ctx context.Context, r reader) (err error) {
		regions, err = r.regions(ctx, firstN(w.From), lastN(w.To))
		return err
	})
	if err != nil || len(regions) > 2 {
		t.Fatalf("%d of %d files have the window, %v", len(regions), len(files), err)
	}
	b.files.writing.Lock() // so that none is written anew
	defer b.files.writing.Unlock()
	for _, file := range files {
		if !slices.ContainsFunc(regions, func(x region) bool { return x.file == filepath.Base(file) }) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := requestsIn(t, b, w); got != want || want < 20 {
		t.Errorf("%d requests, want %d", got, want)
	}
	select {
	case x := <-b.files.damaged:
		t.Errorf("the file of %v was read", x)
	default:
	}
}

// TestColumnFilesOfAnotherState holds that files which the database does not know, as
// those of a newer copy of it, count for nothing, and that what is missing is written
// again.
func TestColumnFilesOfAnotherState(t *testing.T) {
	smallChunks(t)
	b := newBackend(t)
	stored(t, b, 200)
	snapshot, err := b.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	older := t.TempDir()
	if err := snapshot.CopyTo(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	more := newTraffic(200)
	more.at += 1000
	write(t, b, more.batch(200))
	if got := requestsIn(t, b, storage.Always); got != 400 {
		t.Fatalf("%d requests, want 400", got)
	}
	newer := settle(t, b)
	if err := os.Rename(b.files.dir, filepath.Join(older, "weir.db"+columnDirectory)); err != nil {
		t.Fatal(err)
	}
	restored := New(filepath.Join(older, "weir.db"))
	opened(t, restored)
	if got := requestsIn(t, restored, storage.Always); got != 200 {
		t.Errorf("%d requests, want 200", got)
	}
	if files := settle(t, restored); len(files) == 0 || len(files) >= len(newer) {
		t.Errorf("%d files, want fewer than %d", len(files), len(newer))
	}
	if got := requestsIn(t, restored, storage.Always); got != 200 {
		t.Errorf("%d requests, want 200", got)
	}
}

// TestColumnFilesOutliveAnInterruption holds that what was begun when a process ended is
// forgotten, and what has changed since is not.
func TestColumnFilesOutliveAnInterruption(t *testing.T) {
	smallChunks(t)
	b := New(filepath.Join(t.TempDir(), "weir.db"))
	opened(t, b)
	records, files := stored(t, b, 200)
	err := b.writing(func(w *writer) error { // a chunk that is begun and never ended
		return w.beginRegion(t.Context(), &region{after: firstN(records[190].CreatedAt), last: firstN(records[199].CreatedAt)})
	})
	if err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(b.files.dir, "stray"+columnSuffix)
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	changed := *records[3]
	changed.UserID, changed.Cost = "another", plugins.KnownCost(7)
	write(t, b, &storage.Batch{Records: []*storage.Record{&changed}})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), hostOf(noContents{})); err != nil {
		t.Fatal(err)
	}
	if got := columnFilesOf(t, b.files.dir); !slices.Equal(got, files) {
		t.Errorf("files %v, want %v", got, files)
	}
	page, err := (&storage.UserQuery{Org: "default", Filter: &storage.Leaf{Field: field("user_id"), Text: "another"}, Window: storage.Always, Limit: 10}).Answer(t.Context(), b)
	if err != nil || len(page.Users) != 1 || page.Users[0].Cost.N != 7 {
		t.Errorf("%+v, %v", page, err)
	}
	if got := requestsIn(t, b, storage.Always); got != 200 {
		t.Errorf("%d requests, want 200", got)
	}
}

// TestColumnFilesArePruned holds that no file has what was deleted, that a late record of
// that time counts once, and that files are private.
func TestColumnFilesArePruned(t *testing.T) {
	smallChunks(t)
	b := newBackend(t)
	records, files := stored(t, b, 400)
	for _, path := range append(files, b.files.dir) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
	prune(t, b, records[200].CreatedAt)
	if left := columnFilesOf(t, b.files.dir); len(left) == 0 || len(left) > len(files)/2+1 {
		t.Errorf("%d of %d files are left", len(left), len(files))
	}
	want := int64(200)
	if got := requestsIn(t, b, storage.Always); got != want {
		t.Errorf("%d requests, want %d", got, want)
	}
	late := *records[195]
	late.ID = uuid.New()
	write(t, b, &storage.Batch{Records: []*storage.Record{&late}})
	for range 2 {
		if got := requestsIn(t, b, storage.Always); got != want+1 {
			t.Errorf("%d requests, want %d", got, want+1)
		}
		settle(t, b)
	}
	prune(t, b, records[399].CreatedAt+1)
	if left := columnFilesOf(t, b.files.dir); len(left) > 0 {
		t.Errorf("%d files are left of nothing", len(left))
	}
}

func prune(t *testing.T, b *Backend, before storage.Timestamp) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = b.Prune(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
}

// TestColumnFilesFollowAnEditor holds that analytics see what somebody changes in the
// database by hand.
func TestColumnFilesFollowAnEditor(t *testing.T) {
	smallChunks(t)
	b := newBackend(t)
	records, _ := stored(t, b, 200)
	c, err := openWriter(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := firstN(records[10].CreatedAt)
	for _, statement := range []string{
		"DELETE FROM requests WHERE n = (SELECT min(n) FROM requests WHERE n > ?)",
		"UPDATE requests SET cost = NULL, user = NULL WHERE n = (SELECT min(n) FROM requests WHERE n > ?)",
	} {
		if _, err := c.exec(statement, first); err != nil {
			t.Fatal(err)
		}
	}
	if got := requestsIn(t, b, storage.Always); got != 199 {
		t.Errorf("%d requests, want 199", got)
	}
	page, err := (&storage.UserQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: math.MaxInt32}).Answer(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, u := range page.Users {
		total += u.TotalRequests
	}
	if total != 198 {
		t.Errorf("the users have %d requests, want 198", total)
	}
}

// TestColumnFilesAreWrittenAnew holds that a file of which much has changed, or which is
// damaged, is written again.
// When nothing new comes, files are written anew even if one request has changed.
func TestColumnFilesSettle(t *testing.T) {
	smallChunks(t)
	old := settled
	settled = 10 * time.Millisecond
	t.Cleanup(func() { settled = old })
	b := newBackend(t)
	records, files := stored(t, b, 200)
	records[0].UserID = "another"
	write(t, b, &storage.Batch{Records: records[:1]})
	for deadline := time.Now().Add(10 * time.Second); slices.Equal(files, columnFilesOf(t, b.files.dir)); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the files are still %v", files)
		}
	}
	if got := requestsIn(t, b, storage.Always); got != 200 {
		t.Errorf("%d requests, want 200", got)
	}
}

func TestColumnFilesAreWrittenAnew(t *testing.T) {
	smallChunks(t)
	b := newBackend(t)
	records, files := stored(t, b, 200)
	for _, r := range records[:chunkRows/8] {
		r.UserID = "another"
	}
	write(t, b, &storage.Batch{Records: records[:chunkRows/8]})
	if now := settle(t, b); len(now) != len(files) || slices.Equal(now, files) {
		t.Errorf("files %v, want others than %v", now, files)
	}
	files = columnFilesOf(t, b.files.dir)
	if err := os.Truncate(files[0], 100); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); reflect.DeepEqual(files, columnFilesOf(t, b.files.dir)) && time.Now().Before(deadline); {
		if got := requestsIn(t, b, storage.Always); got != 200 {
			t.Fatalf("%d requests, want 200", got)
		}
	}
	if now := settle(t, b); len(now) != len(files) || slices.Equal(now, files) {
		t.Errorf("files %v, want others than %v", now, files)
	}
	if got := requestsIn(t, b, storage.Always); got != 200 {
		t.Errorf("%d requests, want 200", got)
	}
}
