package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// settle writes all files of columns that there are requests for.
func settle(t *testing.T, b *Backend) (files []string) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = b.files.next(t.Context(), b.columns.ChunkRows/32); err != nil {
			t.Fatal(err)
		}
	}
	return columnFilesOf(t, b.columns.Dir)
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
func requestsIn(t *testing.T, b *Backend, w storage.Window) int64 {
	t.Helper()
	return chosenIn(t, b, storage.All{}, w)
}

// chosenIn counts the requests of a window that a filter chooses.
func chosenIn(t *testing.T, b *Backend, f storage.Filter, w storage.Window) (requests int64) {
	t.Helper()
	err := b.Groups(t.Context(), &storage.GroupQuery{Org: "default", Filter: f, Window: w}, func(g *storage.GroupTotals) error {
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
	if len(files) < records/b.columns.ChunkRows-2 {
		t.Fatalf("%d files of %d records", len(files), records)
	}
	return batch.Records, files
}

// TestColumnFilesOfAWindow holds that a query reads the files of its window alone.
func TestColumnFilesOfAWindow(t *testing.T) {
	b := smallChunks(t)
	opened(t, b)
	records, files := stored(t, b, 1000)
	w := storage.Window{From: records[500].CreatedAt, To: records[520].CreatedAt}
	want := requestsIn(t, b, w)
	var regions []columnar.Region
	err := b.withReader(t.Context(), func(ctx context.Context, r reader) (err error) {
		regions, err = r.regions(ctx, columnar.FirstKey(w.From), columnar.LastKey(w.To))
		return err
	})
	if err != nil || len(regions) > 2 {
		t.Fatalf("%d of %d files have the window, %v", len(regions), len(files), err)
	}
	b.files.writing.Lock() // so that none is written anew
	defer b.files.writing.Unlock()
	for _, file := range files {
		if !slices.ContainsFunc(regions, func(x columnar.Region) bool { return x.File == filepath.Base(file) }) {
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

// TestFilesRememberEachQuestion holds that a question is not answered with the sums of another, and
// that of long questions no text stays in memory.
func TestFilesRememberEachQuestion(t *testing.T) {
	b := smallChunks(t)
	opened(t, b)
	users := []string{"\xff", "\xfe", "\uFFFD"} // JSON has the same for all
	batch := newTraffic(1000).batch(1000)
	for i, r := range batch.Records {
		r.UserID = users[i%10/4]
	}
	write(t, b, batch)
	settle(t, b)
	w := storage.Window{From: batch.Records[0].CreatedAt, To: batch.Records[999].CreatedAt}
	ask := func(bucket storage.BucketWidth, f storage.Filter) string {
		q := &storage.MetricsQuery{Org: "default", Filter: f, Window: w, Bucket: bucket, Limit: 1}
		answer, err := q.Answer(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	buckets := slices.Insert(slices.Clone(storage.BucketWidths), 0, storage.BucketMonth) // also before none
	buckets = slices.DeleteFunc(buckets, func(b storage.BucketWidth) bool { return strings.HasSuffix(string(b), "m") })
	var first []string
	for _, bucket := range buckets {
		first = append(first, ask(bucket, storage.All{}))
	}
	for i, bucket := range buckets {
		if got := ask(bucket, storage.All{}); got != first[i] {
			t.Errorf("%s: %s, then %s", bucket, first[i], got)
		}
	}
	by := func(user string) storage.Filter {
		return &storage.Leaf{Field: field("user_id"), Op: storage.NotEquals, Text: user}
	}
	for i, want := range []int64{600, 600, 800} {
		if got := chosenIn(t, b, by(users[i]), w); got != want {
			t.Errorf("%d requests are not of %q, want %d", got, users[i], want)
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 16 {
		ask(storage.BucketNone, by(fmt.Sprint(i, strings.Repeat("x", 512<<10))))
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("16 long filters left %d bytes in memory", after-before)
	}
}

// TestScoresAreInColumns holds that a filter by scores reads the files of columns, and that a
// score that comes after its record's file, changes or goes away is seen at once.
func TestScoresAreInColumns(t *testing.T) {
	b := smallChunks(t)
	opened(t, b)
	records, _ := stored(t, b, 400)
	score := func(scores map[string]float64, of ...*storage.Record) {
		t.Helper()
		batch := &storage.Batch{End: storage.Position{Segment: 2}}
		for _, r := range of {
			batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.RespondedAt, Scores: scores})
		}
		write(t, b, batch)
	}
	above := &storage.Leaf{Field: field("scores"), Key: "accuracy", Op: storage.GT, Number: storage.DecimalOf(0.5)}
	text := &storage.Leaf{Field: field("scores_column"), Op: storage.Contains, Text: `"accuracy":0.75`}
	want := func(n int64) {
		t.Helper()
		for _, f := range []storage.Filter{above, text} {
			if got := chosenIn(t, b, f, storage.Always); got != n {
				t.Errorf("%d requests, want %d: %s", got, n, storage.AppendJSON(nil, f))
			}
		}
	}
	want(0)
	score(map[string]float64{"accuracy": 0.75}, records[:60]...)
	want(60)
	settle(t, b)
	want(60)
	score(map[string]float64{"accuracy": 0.25}, records[0], records[50])
	want(58)
	if err := b.files.rewriteChanged(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(58)
	// What the columns do not know the database does not change.
	if err := b.withWriter(func(w *writer) error {
		_, err := w.c.exec("DROP TRIGGER scores_DELETE")
		if err == nil {
			_, err = w.c.exec("DELETE FROM scores WHERE n <= ?", columnar.LastKey(records[100].CreatedAt))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want(58)
}

// TestColumnFilesOfAnotherState holds that files which the database does not know, as
// those of a newer copy of it, count for nothing, and that what is missing is written
// again.
func TestColumnFilesOfAnotherState(t *testing.T) {
	b := smallChunks(t)
	opened(t, b)
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
	if err := os.Rename(b.columns.Dir, filepath.Join(older, "weir.db"+columnDirectory)); err != nil {
		t.Fatal(err)
	}
	restored := New(filepath.Join(older, "weir.db"))
	restored.columns.ChunkRows = b.columns.ChunkRows
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
	b := smallChunks(t)
	opened(t, b)
	records, files := stored(t, b, 200)
	err := b.withWriter(func(w *writer) error { // a chunk that is begun and never ended
		return w.beginRegion(t.Context(), &columnar.Region{After: columnar.FirstKey(records[190].CreatedAt), Last: columnar.FirstKey(records[199].CreatedAt)})
	})
	if err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(b.columns.Dir, "stray"+columnSuffix)
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
	if got := columnFilesOf(t, b.columns.Dir); !slices.Equal(got, files) {
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
	b := smallChunks(t)
	opened(t, b)
	records, files := stored(t, b, 400)
	for _, path := range append(files, b.columns.Dir) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
	prune(t, b, records[200].CreatedAt)
	if left := columnFilesOf(t, b.columns.Dir); len(left) == 0 || len(left) > len(files)/2+1 {
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
	if left := columnFilesOf(t, b.columns.Dir); len(left) > 0 {
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
	b := smallChunks(t)
	opened(t, b)
	records, _ := stored(t, b, 200)
	c, err := openWriter(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := columnar.FirstKey(records[10].CreatedAt)
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

// When nothing new comes, files are written anew even if one request has changed.
func TestColumnFilesSettle(t *testing.T) {
	b := smallChunks(t)
	b.settled = time.Nanosecond // less than a write takes: what it brings must not be missed
	opened(t, b)
	records, files := stored(t, b, 200)
	records[0].UserID = "another"
	write(t, b, &storage.Batch{Records: records[:1]})
	for deadline := time.Now().Add(time.Minute); slices.Equal(files, columnFilesOf(t, b.columns.Dir)); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the files are still %v", files)
		}
	}
	if got := requestsIn(t, b, storage.Always); got != 200 {
		t.Errorf("%d requests, want 200", got)
	}
}

// TestColumnFilesAreWrittenAnew holds that a file of which much has changed, or which is
// damaged, is written again.
func TestColumnFilesAreWrittenAnew(t *testing.T) {
	b := smallChunks(t)
	opened(t, b)
	records, files := stored(t, b, 200)
	for _, r := range records[:b.columns.ChunkRows/8] {
		r.UserID = "another"
	}
	write(t, b, &storage.Batch{Records: records[:b.columns.ChunkRows/8]})
	if now := settle(t, b); len(now) != len(files) || slices.Equal(now, files) {
		t.Errorf("files %v, want others than %v", now, files)
	}
	files = columnFilesOf(t, b.columns.Dir)
	if err := os.Truncate(files[0], 100); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); reflect.DeepEqual(files, columnFilesOf(t, b.columns.Dir)) && time.Now().Before(deadline); {
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
