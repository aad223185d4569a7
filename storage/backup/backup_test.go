package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	objects "github.com/weirhq/weir/storage/control/embedded"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

// live is an open store.
type live struct {
	*journal.Journal
	path   string
	ledger credits.Ledger
	keys   *objects.Log // nil until a test needs some
}

const price = 3 // nanodollars a record

func begin(t *testing.T, dir string) *live {
	t.Helper()
	path := filepath.Join(dir, "weir.db")
	j, err := journal.Open(t.Context(), sqlite.New(path), journal.Options{Dir: path + journalSuffix, SegmentBytes: 64 << 10, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	l := &live{Journal: j, path: path}
	t.Cleanup(l.end)
	if l.ledger, err = embedded.Open(path+journalSuffix, j, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Connected(t.Context()), l.ledger.Seed(t.Context(), "acme", 1_000_000_000)); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *live) end() {
	_ = l.ledger.Close(context.Background())
	_ = l.Close(context.Background())
}

func (l *live) stores() []Store {
	return []Store{{Name: "default", Dir: l.path + journalSuffix, Journal: l.Journal, Control: l.keys}}
}

// call records an exchange that costs something.
func (l *live) call(t *testing.T, n int) *storage.Record {
	t.Helper()
	r, err := l.try(t.Context(), n)
	if err != nil {
		t.Error(err)
	}
	return r
}

// try is call, which may be refused.
func (l *live) try(ctx context.Context, n int) (*storage.Record, error) {
	r := &storage.Record{
		ID: uuid.New(), Org: "acme", CreatedAt: storage.Millis(time.Now()), Provider: "openai", Dialect: plugins.Chat, Model: "gpt-5",
		UserID: fmt.Sprint("user-", n), EndState: storage.Complete, Cost: plugins.KnownCost(price),
	}
	l.Begin(r)
	defer l.Abandon(r)
	reserved := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 10, Holds: []credits.Hold{{Account: credits.Account{Org: "acme"}}}}
	err := errors.Join(l.ledger.Reserve(ctx, reserved), l.ledger.Charge(ctx, reserved, price), l.ledger.Release(ctx, reserved))
	c := &storage.Content{}
	c.Request.Type, c.Request.Data = "application/json", []byte(body(r))
	c.Response.Type, c.Response.Data = "application/json", []byte(`{"answer":`+body(r)+`}`)
	return r, errors.Join(err, l.Append(r, storagetest.Kept(r, c)))
}

func body(r *storage.Record) string {
	text := "why? "
	for i := range 20 { // what cannot be compressed much
		text += uuid.NewSHA1(r.ID, []byte{byte(i)}).String()
	}
	return fmt.Sprintf(`{"id":%q,"text":%q}`, r.ID, text)
}

// all are the records of a store, with their bodies compared.
func (l *live) all(t *testing.T) map[uuid.UUID]*storage.Record {
	t.Helper()
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := l.Backend().Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	records := map[uuid.UUID]*storage.Record{}
	for _, r := range page {
		records[r.ID] = r
		if c, err := l.Contents().Content(t.Context(), r); err != nil || c == nil || string(c.Request.Data) != body(r) {
			t.Errorf("the body of %s is %v, %v", r.UserID, c, err)
		}
	}
	return records
}

func write(t *testing.T, dir string, l *live) (string, StoreSummary) {
	t.Helper()
	s, err := Write(t.Context(), dir, l.stores())
	if err != nil {
		t.Fatal(err)
	}
	return s.Directory, s.Stores[0]
}

// whole checks a path, and returns what was found of its only store.
func whole(t *testing.T, path string) *StoreReport {
	t.Helper()
	reports, problems, err := Check(t.Context(), path, new(sqlite.Storage))
	if err != nil || len(reports) != 1 {
		t.Fatalf("%d stores, %v", len(reports), err)
	}
	if problems = append(problems, reports[0].Problems...); len(problems) > 0 {
		t.Errorf("%s: %q", path, problems)
	}
	return reports[0]
}

// A backup under load has all that was recorded before one moment, and nothing after it:
// no record is missing that ended before another one of the backup began. It opens as a
// store does after the end of its process, with every body, and with a charge for each
// record.
func TestBackupIsOfOneMoment(t *testing.T) {
	const writers, backups = 6, 3
	l := begin(t, t.TempDir())
	dir := t.TempDir()
	var clock atomic.Int64
	var mu sync.Mutex
	began, ended := map[uuid.UUID]int64{}, map[uuid.UUID]int64{}
	ctx, stop := context.WithCancel(t.Context())
	var calls atomic.Int64
	var load sync.WaitGroup
	for range writers {
		load.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(2 * time.Millisecond)
				from := clock.Add(1)
				r := l.call(t, int(calls.Add(1)))
				to := clock.Add(1)
				mu.Lock()
				began[r.ID], ended[r.ID] = from, to
				mu.Unlock()
			}
		})
	}
	var made []string
	for range backups {
		for before := calls.Load(); calls.Load() < before+100 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		path, _ := write(t, dir, l)
		made = append(made, path)
	}
	stop()
	load.Wait()
	original := l.all(t)

	for _, path := range made {
		checked := whole(t, path)
		to := t.TempDir()
		if _, err := Restore(t.Context(), path, to, ""); err != nil {
			t.Fatal(err)
		}
		if again := whole(t, to); again.Journal.Integrity.Seen != checked.Journal.Integrity.Seen {
			t.Errorf("the restored store has seen %d, and the backup %d", again.Journal.Integrity.Seen, checked.Journal.Integrity.Seen)
		}
		restored := begin(t, to)
		records := restored.all(t)
		last, next := int64(0), clock.Load()+1
		for id, r := range original {
			copied := records[id]
			if copied == nil {
				next = min(next, ended[id])
				continue
			}
			last = max(last, began[id])
			if copied.UserID != r.UserID || copied.CreatedAt != r.CreatedAt || copied.Cost != r.Cost {
				t.Errorf("a record is restored as %+v, and was %+v", copied, r)
			}
		}
		if last > next {
			t.Errorf("a record that ended at %d is missing, and one that began at %d is there", next, last)
		}
		i := restored.Integrity()
		if i.Unaccounted() != 0 || i.Recorded != int64(len(records)) || i.Lost() > writers || i.Lost() != checked.Journal.Integrity.InFlight {
			t.Errorf("%d records, and the balance %+v", len(records), i)
		}
		balance, err := restored.ledger.Balance(t.Context(), credits.Hold{Account: credits.Account{Org: "acme"}})
		if spent := int64(balance.Spent) / price; err != nil || spent < i.Recorded || spent > i.Recorded+writers {
			t.Errorf("%d records are paid, and %d are there: %v", spent, i.Recorded, err)
		}
	}
}

// itemOf is the id of an item that the nth record of a test has added to a conversation.
func itemOf(n int) string { return fmt.Sprintf("item-of-record-%d", n) }

// What was erased after a backup is erased again in a store that is restored from it, and holds that
// were placed after it are in force: as newer backups know, or the directory of the store that was
// moved away.
func TestRestoreRepeatsErasures(t *testing.T) {
	for name, moved := range map[string]bool{"newer backup": false, "moved away": true} {
		t.Run(name, func(t *testing.T) {
			from, dir := t.TempDir(), t.TempDir()
			l := begin(t, from)
			records := make([]*storage.Record, 3)
			scopes := map[int]storage.ErasureScope{0: storage.EraseRecord, 1: storage.EraseContent}
			for n := range records {
				records[n] = l.call(t, n)
				item := &storage.ConversationChange{ID: "shared", Created: n == 0, Metadata: "{}", Add: []string{itemOf(n)}, Items: []string{"{}"}, Record: records[n].ID}
				if err := l.AppendAnnotation(&storage.Annotation{Org: "acme", At: storage.Timestamp(n + 1), Conversation: item}); err != nil {
					t.Fatal(err)
				}
			}
			l.all(t)
			var err error
			if l.keys, err = objects.Open(l.path+journalSuffix, l.Journal, zap.NewNop()); err != nil {
				t.Fatal(err)
			}
			acme := &control.Organisation{Log: l.keys, Name: "acme", By: control.Actor{Key: "key_1"}}
			place := func(reason string) *control.Hold {
				h, err := acme.PlaceHold(t.Context(), []byte(`"all"`), reason)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			place("before")
			old, _ := write(t, dir, l)
			lifted := place("lifted")
			if err := control.Delete[control.Hold](t.Context(), acme, lifted.ID); err != nil {
				t.Fatal(err)
			}
			after := place("after")
			done := func(l *live) {
				t.Helper()
				for deadline := time.Now().Add(20 * time.Second); slices.ContainsFunc(l.Erasures("acme"), func(e journal.Erasure) bool { return e.DoneAt == 0 }); time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%+v", l.Erasures("acme"))
					}
				}
			}
			for n, scope := range scopes {
				e := journal.Erasure{ID: uuid.New(), Org: "acme", Scope: scope, RequestedAt: storage.Millis(time.Now()), Records: 1, Items: 1}
				if err := l.Erase(e, []journal.Chosen{{ID: records[n].ID, Content: records[n].Content}}); err != nil {
					t.Fatal(err)
				}
			}
			done(l)
			var erasures []string
			if moved {
				erasures = []string{from}
			} else {
				write(t, dir, l)
			}
			l.end()
			_ = l.keys.Close(t.Context())
			to := t.TempDir()
			if moved {
				if _, err := Restore(t.Context(), old, to, "", t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no weir.db.segments") {
					t.Errorf("a directory without a store: %v", err)
				}
			}
			r, err := Restore(t.Context(), old, to, "", erasures...)
			if err != nil || r.Erasures != len(scopes) || r.Holds != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			whole(t, to)
			restored, err := objects.Open(filepath.Join(to, "weir.db"+journalSuffix), nil, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			holds, err := control.All[control.Hold](t.Context(), &control.Organisation{Log: restored, Name: "acme"}, control.Page{})
			if err != nil || len(holds) != 2 || !reflect.DeepEqual(holds[1].Object, after) {
				t.Errorf("the holds are %+v, %v", holds, err)
			}
			if events, err := restored.Events(t.Context(), "acme", after.ID, "", 10); err != nil || len(events) != 1 || events[0].Actor.Key != "key_1" {
				t.Errorf("the events are %+v, %v", events, err)
			}
			_ = restored.Close(t.Context())
			l = begin(t, to)
			done(l)
			for n, record := range records {
				got, err := l.Request(t.Context(), record.Key())
				if gone := scopes[n] == storage.EraseRecord; gone != errors.Is(err, storage.ErrNotFound) {
					t.Fatalf("record %d: %v, %v", n, got, err)
				}
				if got == nil {
					continue
				}
				if c, err := l.Contents().Content(t.Context(), got); (c == nil) != (scopes[n] != 0) || err != nil {
					t.Errorf("the content of record %d is %v, %v", n, c, err)
				}
			}
			if c, err := l.Conversation(t.Context(), "acme", "shared", storage.AllItems); err != nil || len(c.Items) != 1 || c.Items[0].ID != itemOf(2) {
				t.Errorf("the conversation is %+v, %v", c, err)
			}
			l.end()
			whole(t, to)
			for n, record := range records {
				user, item := false, false
				err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() {
						text, failed := os.ReadFile(path)
						user, item = user || strings.Contains(string(text), record.UserID), item || strings.Contains(string(text), itemOf(n))
						err = failed
					}
					return err
				})
				if user == (scopes[n] == storage.EraseRecord) || item == (scopes[n] > 0) || err != nil {
					t.Errorf("record %d is in a file: %v, its item: %v, %v", n, user, item, err)
				}
			}
		})
	}
}

// What is sealed is the same file in the next backup, so that a backup costs what is new.
func TestSegmentsAreNotCopiedAgain(t *testing.T) {
	l := begin(t, t.TempDir())
	dir := t.TempDir()
	for n := range 100 {
		l.call(t, n)
	}
	first, s := write(t, dir, l)
	if s.Copied != s.Bytes || !s.Database || s.Files < 5 {
		t.Errorf("the first backup is %+v", s)
	}
	for l.Status().RawSegments > 0 {
		time.Sleep(time.Millisecond)
	}
	second, s := write(t, dir, l)
	third, again := write(t, dir, l)
	if sealed := l.Status().SealedBytes; again.Bytes != s.Bytes || again.Bytes-again.Copied != sealed || sealed == 0 {
		t.Errorf("of a backup of %d bytes, %d are copied again, and %d are sealed", again.Bytes, again.Copied, sealed)
	}
	// Without those before, the third is as whole as it was.
	for _, path := range []string{first, second} {
		whole(t, path)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	whole(t, third)
}

// stored is the directory of a store that was used and is closed.
func stored(t *testing.T) string {
	dir := t.TempDir()
	l := begin(t, dir)
	for n := range 100 {
		l.call(t, n)
	}
	for l.Status().SealedSegments < 2 {
		time.Sleep(time.Millisecond)
	}
	for n := range 20 {
		l.call(t, n)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.end()
	return dir
}

// only is the one file, or the last, that a pattern matches.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return found[len(found)-1]
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flip damages one bit, at a fraction of the file.
func flip(at float64) func([]byte) []byte {
	return func(b []byte) []byte {
		b[int(at*float64(len(b)))] ^= 4
		return b
	}
}

// Whatever is damaged, gone, or of another time is found.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	dir := stored(t)
	early := whole(t, dir)
	if early.Journal.Sealed < 2 || early.Journal.Raw == 0 || early.Journal.Contents != 120 || early.Records != 120 {
		t.Fatalf("the store has %+v", early.Journal)
	}
	// The database of an earlier backup, beside segments of today.
	older := t.TempDir()
	l := begin(t, older)
	l.call(t, 0)
	old, _ := write(t, t.TempDir(), l)
	for n := range 200 {
		l.call(t, n)
	}
	for l.Status().SealedSegments < 2 { // the first may have but the call of the backup
		time.Sleep(time.Millisecond)
	}
	l.end()
	if err := os.Rename(filepath.Join(old, "default", "weir.db"), filepath.Join(older, "weir.db")); err != nil {
		t.Fatal(err)
	}
	if found := problems(t, older); !strings.Contains(found, "weir.db is older than the segments beside it") {
		t.Errorf("found %q", found)
	}
	copied := func(t *testing.T) string {
		to := t.TempDir()
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return to
	}
	for name, tc := range map[string]struct {
		harm func(t *testing.T, dir string)
		want string
	}{
		"body": {func(t *testing.T, dir string) {
			edit(t, only(t, dir, "*/*.raw"), func(b []byte) []byte { return []byte(strings.Replace(string(b), "why?", "WHY?", 1)) })
		}, "the bodies of 1 records are damaged"},
		"metadata": {func(t *testing.T, dir string) {
			edit(t, only(t, dir, "*/*.raw"), func(b []byte) []byte { return []byte(strings.Replace(string(b), "gpt-5", "gpt-6", 1)) })
		}, "1 entries are damaged"},
		"segment gone": {func(t *testing.T, dir string) { remove(t, only(t, dir, "*/*.raw")) }, "records are not where the database has them"},
		"sealed body":  {func(t *testing.T, dir string) { edit(t, only(t, dir, "*/*.blk"), flip(0.4)) }, "from entry"},
		"sealed cut": {func(t *testing.T, dir string) {
			edit(t, only(t, dir, "*/*.blk"), func(b []byte) []byte { return b[:len(b)-9] })
		}, ".blk"},
		"sealed gone": {func(t *testing.T, dir string) { remove(t, only(t, dir, "*/*.blk")) }, ".blk is gone, with the bodies of"},
		"database": {func(t *testing.T, dir string) {
			edit(t, only(t, dir, "*.db"), func(b []byte) []byte { return b[:len(b)/2] })
		}, "weir.db"},
		"database gone": {func(t *testing.T, dir string) {
			remove(t, only(t, dir, "*.db"))
		}, "weir.db is not there"},
		"checkpoint": {func(t *testing.T, dir string) {
			edit(t, only(t, dir, "*/checkpoint"), func(b []byte) []byte { return make([]byte, len(b)) })
		}, "checkpoint is gone or damaged: witness has the same"},
		"count gone": {func(t *testing.T, dir string) { remove(t, only(t, dir, "*/exchanges")) }, "are not counted"},
		"credits":    {func(t *testing.T, dir string) { edit(t, only(t, dir, "*/credits"), flip(0.3)) }, "cannot be trusted"},
		"credits gone": {func(t *testing.T, dir string) {
			remove(t, only(t, dir, "*/credits"))
		}, "it has been deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t)
			tc.harm(t, dir)
			if found := problems(t, dir); !strings.Contains(found, tc.want) {
				t.Errorf("found %q, want %q", found, tc.want)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func problems(t *testing.T, dir string) string {
	t.Helper()
	reports, problems, err := Check(t.Context(), dir, new(sqlite.Storage))
	for _, r := range reports {
		problems = append(problems, r.Problems...)
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	return strings.Join(problems, "\n")
}

// Every file of a backup has a sum, and the restore compares it.
func TestDamagedBackupIsNotRestored(t *testing.T) {
	l := begin(t, t.TempDir())
	for n := range 100 {
		l.call(t, n)
	}
	path, _ := write(t, t.TempDir(), l)
	sums, err := readSums(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		file := filepath.Join(path, name)
		sound, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		edit(t, file, flip(0.7))
		to := t.TempDir()
		if _, err := Restore(t.Context(), path, to, ""); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s was damaged, and the error is %v", name, err)
		}
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("the restore left %v, %v", left, err)
		}
		edit(t, file, func([]byte) []byte { return sound })
	}
	whole(t, path)
}

// A list of sums that is cut, wherever, does not hide a file.
func TestCutListOfSums(t *testing.T) {
	l := begin(t, t.TempDir())
	l.call(t, 1)
	path, _ := write(t, t.TempDir(), l)
	list := filepath.Join(path, sumsName)
	sound, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(sound) - 1 { // the last line may end without a newline
		if err := os.WriteFile(list, sound[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), path, t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), sumsName) {
			t.Errorf("%d of %d bytes of the list: %v", n, len(sound), err)
		}
	}
	if err := os.WriteFile(list, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	whole(t, path)
}

func TestRestoreOverwritesNothing(t *testing.T) {
	dir := stored(t)
	l := begin(t, dir)
	to := t.TempDir()
	made, _ := write(t, to, l)
	for _, name := range []string{"weir.db", "weir.db-wal", "weir.db.segments"} {
		there := t.TempDir()
		if err := os.WriteFile(filepath.Join(there, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), to, there, ""); err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s was there, and the error is %v", name, err)
		}
	}
	if _, err := Restore(t.Context(), to, t.TempDir(), "eu"); err == nil || !strings.Contains(err.Error(), "name one of default") {
		t.Errorf("of an unknown store the error is %v", err)
	}
	if _, err := Restore(t.Context(), t.TempDir(), t.TempDir(), ""); !errors.Is(err, errNone) {
		t.Errorf("of no backup the error is %v", err)
	}
	if r, err := Restore(t.Context(), to, filepath.Join(t.TempDir(), "new"), "default"); err != nil || r.Backup != made || len(r.Files) != 2 || r.Erasures != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Keys that were created while Weir runs are in a backup.
func TestKeysAreInABackup(t *testing.T) {
	l := begin(t, t.TempDir())
	var err error
	if l.keys, err = objects.Open(l.path+journalSuffix, l.Journal, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.keys.Close(context.Background()) })
	made, secret, err := (&control.Organisation{Log: l.keys, Name: "acme"}).CreateKey(t.Context(), control.Settings{Name: "agents"})
	if err != nil {
		t.Fatal(err)
	}
	path, _ := write(t, t.TempDir(), l)
	if found := problems(t, path); found != "" {
		t.Errorf("the check of the backup finds %s", found)
	}
	to := t.TempDir()
	if _, err := Restore(t.Context(), path, to, ""); err != nil {
		t.Fatal(err)
	}
	restored, err := objects.Open(filepath.Join(to, "weir.db"+journalSuffix), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = restored.Close(context.Background()) })
	if k, _, err := control.FindKey(t.Context(), restored, sha256.Sum256([]byte(secret))); err != nil || k.ID != made.ID {
		t.Error(k, err)
	}
}

// A backup that is given up leaves nothing, and one that was cut short is removed by the
// next.
func TestUnfinishedBackupIsNone(t *testing.T) {
	l := begin(t, t.TempDir())
	l.call(t, 1)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "20260101T000000.000Z"+unfinished), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, dir, l.stores()); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, err := Write(t.Context(), dir, []Store{{Name: "../eu", Dir: l.path + journalSuffix, Journal: l.Journal}}); err == nil {
		t.Error("a store was backed up to another directory")
	}
}

// A store in use is not checked, since what it says may change meanwhile.
func TestStoreInUseIsNotChecked(t *testing.T) {
	l := begin(t, t.TempDir())
	if found := problems(t, filepath.Dir(l.path)); !strings.Contains(found, "in use by another process") {
		t.Errorf("found %q", found)
	}
}

// onServer hides that a backend keeps its records in a file.
type onServer struct{ storage.Backend }

// The journal of a store on a server is found by what is in it, and checked alone.
func TestJournalOfAServerIsChecked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weir-data")
	j, err := journal.Open(t.Context(), onServer{sqlite.New(filepath.Join(t.TempDir(), "weir.db"))}, journal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	l := &live{Journal: j}
	if l.ledger, err = embedded.Open(dir, nil, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.end)
	if err := errors.Join(j.Connected(t.Context()), l.ledger.Seed(t.Context(), "acme", 1_000_000_000)); err != nil {
		t.Fatal(err)
	}
	l.call(t, 0)
	to := t.TempDir()
	s, err := Write(t.Context(), to, []Store{{Name: "default", Dir: dir, Journal: j}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{to, s.Directory, filepath.Join(s.Directory, "default"), filepath.Join(s.Directory, "default", "weir-data")} {
		if r := whole(t, path); r.Database || r.Journal.Contents != 1 {
			t.Errorf("%s has %+v", path, r)
		}
	}
}

// Records that are older than the retention when they are appended, as those of an import,
// are deleted and not missing.
func TestRecordsThatRetentionDeletedAreNotMissing(t *testing.T) {
	l := begin(t, t.TempDir())
	old := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: storage.Millis(time.Now().AddDate(0, -2, 0)), EndState: storage.Complete}
	l.Begin(old)
	if err := errors.Join(l.Append(old, nil), l.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	l.Reconfigure(journal.Options{Retention: 30 * 24 * time.Hour, Logger: zap.NewNop()})
	for deleted := false; !deleted; time.Sleep(time.Millisecond) {
		_, err := l.Backend().Request(t.Context(), old.Key())
		deleted = errors.Is(err, storage.ErrNotFound)
	}
	made, _ := write(t, t.TempDir(), l)
	if r := whole(t, made); r.Journal.Raw != 1 {
		t.Errorf("the backup has %+v", r.Journal)
	}
}

// What keys or money rest on is missed if it is gone or older than it was, also if all that a
// package keeps of it is gone, until somebody accepts that.
func TestKeysAndCreditsAreNotForgotten(t *testing.T) {
	for file, names := range map[string][]string{objects.FileName: {objects.FileName}, embedded.FileName: {embedded.FileName, embedded.FileName + ".state"}} {
		for _, harm := range []string{"gone", "empty", "old", "damaged"} {
			t.Run(file+" "+harm, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "weir.db"+journalSuffix)
				use := func(j *journal.Journal) error {
					keys, err := objects.Open(path, j, zap.NewNop())
					if err != nil {
						return err
					}
					defer keys.Close(t.Context())
					e, err := (&control.Organisation{Log: keys, Name: "acme"}).ProjectCreated(uuid.NewString())
					if err == nil {
						err = keys.Commit(t.Context(), "acme", []control.Event{e})
					}
					if err != nil {
						return err
					}
					ledger, err := embedded.Open(path, j, zap.NewNop())
					if err != nil {
						return err
					}
					return errors.Join(ledger.Grant(t.Context(), "acme", 5), ledger.Close(t.Context()))
				}
				run := func() error {
					j, err := journal.Open(t.Context(), sqlite.New(filepath.Join(dir, "weir.db")), journal.Options{Dir: path})
					if err != nil {
						t.Fatal(err)
					}
					defer j.Close(t.Context())
					return errors.Join(j.Connected(t.Context()), use(j))
				}
				if err := run(); err != nil {
					t.Fatal(err)
				}
				old := t.TempDir()
				if err := os.CopyFS(old, os.DirFS(path)); err != nil {
					t.Fatal(err)
				}
				if err := run(); err != nil {
					t.Fatal(err)
				}
				whole(t, dir)
				for _, name := range names {
					var err error
					switch harm {
					case "gone":
						err = os.Remove(filepath.Join(path, name))
					case "empty":
						err = os.Truncate(filepath.Join(path, name), 0)
					case "damaged":
						err = os.WriteFile(filepath.Join(path, name), bytes.Repeat([]byte("not what it was\n"), 1000), 0o600)
					case "old":
						var text []byte
						if text, err = os.ReadFile(filepath.Join(old, name)); err == nil {
							err = os.WriteFile(filepath.Join(path, name), text, 0o600)
						}
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if found := problems(t, dir); !strings.Contains(found, file) {
					t.Errorf("check says %q", found)
				}
				for range 2 {
					if err := run(); !strings.Contains(journal.Advice(err), "file "+file+" ") {
						t.Fatalf("what needs the file says %v", err)
					}
				}
				if _, err := Forget(dir, file); err != nil {
					t.Fatal(err)
				}
				if (harm == "empty" || harm == "damaged") && file == embedded.FileName { // an empty ledger is damaged, too
					return
				}
				if err := run(); err != nil {
					t.Errorf("what was accepted is refused: %v", err)
				}
				whole(t, dir)
			})
		}
	}
}

// A database that is gone or older than it was is filled again from raw and sealed segments.
func TestALostDatabaseIsFilledAgain(t *testing.T) {
	for _, harm := range []string{"gone", "empty", "old"} {
		t.Run(harm, func(t *testing.T) {
			dir := t.TempDir()
			l := begin(t, dir)
			for n := range 30 {
				l.call(t, n)
			}
			old, _ := write(t, t.TempDir(), l)
			for n := range 70 {
				l.call(t, n)
			}
			for l.Status().SealedSegments < 2 {
				time.Sleep(time.Millisecond)
			}
			l.end()
			var err error
			switch harm {
			case "gone":
				err = os.Remove(l.path)
			case "empty":
				err = os.Truncate(l.path, 0)
			case "old":
				err = os.Rename(filepath.Join(old, "default", "weir.db"), l.path)
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l = begin(t, dir)
				if err := l.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				page, err := l.Backend().Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				i := l.Integrity()
				if len(page) != 100 || i.Unaccounted() != 0 || i.Lost() != 0 || len(i.Damage) != 1 || i.Damage[0].File != "weir.db" {
					t.Errorf("of 100 records %d are there, and the reconciliation is %+v", len(page), i)
				}
				l.end()
			}
			whole(t, dir)
		})
	}
}

// A database that is deleted while it is open is written again, with all that it had, also by a backup.
func TestADeletedDatabaseIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, dir)
	for n := range 20 {
		l.call(t, n)
	}
	_ = l.all(t)
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	l.call(t, 20)
	copied, _ := write(t, t.TempDir(), l)
	whole(t, copied)
	l.call(t, 21)
	if records := l.all(t); len(records) != 22 {
		t.Errorf("after the backup there are %d records, want 22", len(records))
	}
	if damage := l.Integrity().Damage; len(damage) != 1 || damage[0].File != "weir.db" || !strings.Contains(damage[0].Found, "written again") {
		t.Errorf("of the database that was deleted this is said: %v", damage)
	}
	l.end()
	whole(t, dir)
	again := begin(t, dir)
	integrity := again.Integrity()
	if records := again.all(t); len(records) != 22 || integrity.Lost() != 0 {
		t.Errorf("after a start there are %d records, want 22: %+v", len(records), integrity)
	}
}
