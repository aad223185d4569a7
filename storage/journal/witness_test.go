package journal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// fileHarms are what befalls a file. old is the file as it was in the middle, nil if it was not there.
var fileHarms = map[string]func(path string, old []byte) error{
	"gone":  func(path string, _ []byte) error { return os.Remove(path) },
	"empty": func(path string, _ []byte) error { return os.Truncate(path, 0) },
	"cut": func(path string, _ []byte) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, info.Size()/2)
	},
	"old": func(path string, old []byte) error {
		if old == nil {
			return os.Remove(path)
		}
		return os.WriteFile(path, old, 0o600)
	},
}

// position is how far the backend is.
func (b *backend) position() storage.Position {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.batches[len(b.batches)-1].End
}

// harmed is a store that was killed: its first segments are sealed, the others are raw.
func harmed(t *testing.T) (b *backend, o Options, refs []storage.ContentRef, middle map[string][]byte) {
	t.Helper()
	b, o = &backend{}, Options{Dir: t.TempDir(), SegmentBytes: 16 << 10, firstSegment: 1}
	j := open(t, b, o)
	for n := range 12 {
		refs = append(refs, appendSample(t, j, n).Content)
	}
	flush(t, j)
	eventually(t, "a segment is sealed", func() bool { return j.Status().SealedSegments > 0 && j.Status().RawSegments <= 1 })
	alone(j) // else it makes and removes files meanwhile
	middle = map[string][]byte{}
	for _, path := range files(t, o.Dir, "") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		middle[filepath.Base(path)] = text
	}
	for n := 12; n < 30; n++ {
		refs = append(refs, appendSample(t, j, n).Content)
	}
	flush(t, j)
	abandon(j)
	return b, o, refs, middle
}

// Whatever becomes of a file, a start counts each body and each record that is gone, once, and
// Check has a word for it before that.
func TestNoFileIsLostInSilence(t *testing.T) {
	_, any, _, _ := harmed(t)
	for name, harm := range fileHarms {
		for _, path := range files(t, any.Dir, "") {
			file := filepath.Base(path)
			if file == lockName {
				continue
			}
			t.Run(file+" "+name, func(t *testing.T) {
				b, o, refs, middle := harmed(t)
				if err := harm(filepath.Join(o.Dir, file), middle[file]); errors.Is(err, fs.ErrNotExist) {
					t.Skip("this time, there is no such file")
				} else if err != nil {
					t.Fatal(err)
				}
				records, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 100})
				if err != nil {
					t.Fatal(err)
				}
				checked, err := Check(t.Context(), o.Dir, func(_ uuid.UUID, match func(*storage.Record)) (storage.Position, error) {
					for _, r := range records {
						match(r)
					}
					return b.position(), nil
				})
				if err != nil {
					t.Fatal(err)
				}
				var lost int64
				for range 2 { // the second start counts nothing again
					j := open(t, b, o)
					flush(t, j)
					lost = unreadable(t, j, refs)
					i := balanced(t, j)
					var content int64
					for _, l := range i.Losses {
						if l.Reason == storage.LostContent {
							content += l.Count
						}
					}
					if content != lost {
						t.Errorf("%d bodies cannot be read, and %d count as lost: %+v", lost, content, i)
					}
					if i.Seen != int64(len(refs)) || i.Recorded != i.Seen {
						t.Errorf("the reconciliation is %+v", i)
					}
					if lost > 0 && len(i.Damage) == 0 && filepath.Ext(file) != sealedSuffix {
						t.Errorf("%d bodies are lost, and no file is named", lost)
					}
					if err := j.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if lost > 0 && len(checked.Problems) == 0 {
					t.Errorf("%d bodies are lost, and Check says nothing", lost)
				}
			})
		}
	}
}

// restorer is a backend whose file can be written again.
type restorer struct {
	backend
	path string
}

func (b *restorer) RestoreFile(context.Context) error {
	return os.WriteFile(b.path, []byte("x"), 0o600)
}

// A file that somebody deletes while this process uses it is told of, once, and not after that. The database is
// written again.
func TestAFileThatIsDeletedWhileOpenIsTold(t *testing.T) {
	database := filepath.Join(t.TempDir(), "weir.db")
	dir := database + directorySuffix
	j := open(t, &restorer{path: database}, Options{Dir: dir})
	credits, past := filepath.Join(dir, "credits"), filepath.Join(dir, "past")
	j.witness.Attach("credits", nil)
	detach := j.witness.Attach("past", func() (Reach, bool) { return Reach{Generation: 1, Size: 1}, true })
	j.witness.Note("past", Reach{Generation: 1, Size: 1})
	for _, path := range []string{database, credits, past} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	appendSample(t, j, 0)
	flush(t, j)
	j.maintenance.pass(t.Context())
	if found := j.Integrity().Damage; len(found) > 0 {
		t.Fatal(found)
	}
	detach()
	if err := errors.Join(os.Remove(database), os.Remove(credits), os.Remove(past)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j.maintenance.pass(t.Context())
		found := j.Integrity().Damage
		slices.SortFunc(found, func(a, b FileDamage) int { return cmp.Compare(a.File, b.File) })
		if len(found) != 2 || found[0].File != "credits" || found[1].File != "weir.db" {
			t.Errorf("of two files that were deleted this is said: %v", found)
		}
		if _, err := os.Stat(database); err != nil {
			t.Error(err)
		}
	}
}

// A file that this process does not use may be gone.
func TestAFileThatNobodyUsesMayBeDeleted(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	j := open(t, &backend{}, o)
	j.witness.Note("credits", Reach{Generation: 1, Size: 1})
	abandon(j)
	j = open(t, &backend{}, o)
	j.maintenance.pass(t.Context())
	if found := j.Integrity().Damage; len(found) > 0 || j.witness.Reached("credits") == (Reach{}) {
		t.Errorf("of a file that no process has opened this is said: %v", found)
	}
}

// Without both checkpoints nobody knows which other files there were: those that are not there are
// refused until somebody says what holds. Those that are there hold.
func TestWithoutCheckpointsMissingFilesAreRefused(t *testing.T) {
	database := filepath.Join(t.TempDir(), "weir.db")
	o := Options{Dir: database + directorySuffix}
	j := open(t, &backend{}, o)
	appendSample(t, j, 0)
	flush(t, j)
	abandon(j)
	if err := os.WriteFile(database, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range checkpointNames {
		if err := os.Remove(filepath.Join(o.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // also the start after
		j = open(t, &backend{}, o)
		if len(j.Integrity().Damage) == 0 {
			t.Error("nothing is said")
		}
		if err := j.Witness().Compare("control.db", Reach{}); err == nil {
			t.Error("control.db is not refused")
		}
		if err := j.Witness().Compare("credits", Reach{Generation: 1, Size: 1}); err != nil {
			t.Error(err)
		}
		abandon(j)
	}
	if known, err := Forget(o.Dir, "control.db"); !known || err != nil {
		t.Fatal(known, err)
	}
	j = open(t, &backend{}, o)
	if err := j.Witness().Compare("control.db", Reach{}); err != nil {
		t.Error(err)
	}
	if err := j.Witness().Compare("credits", Reach{}); err == nil {
		t.Error("credits is not refused")
	}
	abandon(j)
	if known, err := Forget(o.Dir, CheckpointName); !known || err != nil {
		t.Fatal(known, err)
	}
	if Knows(o.Dir, "credits") {
		t.Error("credits are still waited for")
	}
	j = open(t, &backend{}, o)
	for _, name := range []string{"credits", ErasuresName} {
		if err := j.Witness().Compare(name, Reach{}); err != nil {
			t.Error(err)
		}
	}
	j.Witness().Note("credits", Reach{Generation: 1, Size: 1})
	abandon(j)
	if known, err := Forget(o.Dir, CheckpointName); known || err != nil {
		t.Errorf("a checkpoint that is there is forgotten: %v, %v", known, err)
	}
	j = open(t, &backend{}, o)
	if err := j.Witness().Compare("credits", Reach{}); err == nil {
		t.Error("credits that the checkpoint knows are not refused")
	}
}

// A checkpoint of another store is not taken for this one's.
func TestACheckpointOfAnotherStoreIsRefused(t *testing.T) {
	other, o := Options{Dir: t.TempDir()}, Options{Dir: t.TempDir()}
	for _, o := range []Options{other, o} {
		j := open(t, &backend{}, o)
		appendSample(t, j, 0)
		flush(t, j)
		abandon(j)
	}
	text, err := os.ReadFile(filepath.Join(other.Dir, CheckpointName))
	if err == nil {
		err = os.WriteFile(filepath.Join(o.Dir, CheckpointName), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if j, err := Open(t.Context(), &backend{}, o); err == nil {
		abandon(j)
		t.Error("the store opens")
	}
	if _, err := Check(t.Context(), o.Dir, nil); err == nil {
		t.Error("Check says nothing")
	}
	if err := os.Remove(filepath.Join(o.Dir, CheckpointName)); err != nil {
		t.Fatal(err)
	}
	open(t, &backend{}, o)
}

// undelivered is a store whose backend was out of reach, with two raw segments of one entry each.
func undelivered(t *testing.T, records int) Options {
	o := Options{Dir: t.TempDir(), SegmentBytes: 1, firstSegment: 1}
	j := open(t, &backend{fault: storage.ErrUnavailable}, o)
	for n := range records {
		appendSample(t, j, 4*n) // of one kind
	}
	if err := j.saveReach(true); err != nil {
		t.Fatal(err)
	}
	abandon(j)
	return o
}

// Raw segments whose files were exchanged are known by their salts.
func TestExchangedRawSegmentsLoseNothing(t *testing.T) {
	o := undelivered(t, 2)
	b := &backend{}
	unblock := b.block() // until maintenance has ended, which seals what is delivered
	j := open(t, b, o)
	alone(j)
	unblock()
	flush(t, j)
	abandon(j)
	raw, aside := files(t, o.Dir, rawSuffix), filepath.Join(o.Dir, "aside")
	for _, move := range [][2]string{{raw[0], aside}, {raw[1], raw[0]}, {aside, raw[1]}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	j = open(t, b, o)
	for n, number := range []uint64{1, 2} {
		wantContent(t, j, storage.ContentRef{Segment: number}, 4*n)
	}
	if i := balanced(t, j); i.Recorded != 2 || len(i.Damage) > 0 {
		t.Errorf("the reconciliation is %+v", i)
	}
}

// Files that went round in a circle of any length get their own names back, on disk: a kill after it loses nothing.
func TestExchangedFilesGetTheirNamesBack(t *testing.T) {
	o := undelivered(t, 3)
	j := open(t, &backend{}, o)
	abandon(j)
	raw := files(t, o.Dir, rawSuffix)
	if len(raw) < 3 {
		t.Fatalf("there are %d raw segments", len(raw))
	}
	numbers, salts, own := make(map[uint64]bool), make(map[uint64]uint32), make(map[string][]byte)
	for _, path := range raw {
		n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), rawSuffix), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if own[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		if salts[n], err = readHeader(bytes.NewReader(own[path])); err != nil {
			t.Fatal(err)
		}
		numbers[n] = true
	}
	for i, path := range raw {
		if err := os.WriteFile(path, own[raw[(i+1)%len(raw)]], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.log.undoExchanges(j.log.exchanged(numbers, salts)); err != nil {
		t.Fatal(err)
	}
	for path, text := range own {
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
			t.Errorf("%s has another file, %v", path, err)
		}
	}
}

// A raw segment of another store has none of this one's entries, which is told and counted.
func TestARawSegmentOfAnotherStoreIsTold(t *testing.T) {
	o, other := undelivered(t, 2), undelivered(t, 2)
	for _, path := range files(t, o.Dir, rawSuffix) {
		if err := os.Rename(filepath.Join(other.Dir, filepath.Base(path)), path); err != nil {
			t.Fatal(err)
		}
	}
	if checked, err := Check(t.Context(), o.Dir, nil); err != nil || len(checked.Problems) == 0 {
		t.Errorf("Check says %+v, %v", checked, err)
	}
	j := open(t, &backend{}, o)
	flush(t, j)
	if i := balanced(t, j); i.Seen != 2 || i.Lost() != 2 || len(i.Damage) != 2 {
		t.Errorf("the reconciliation is %+v", i)
	}
}

// A raw segment whose header is damaged keeps its entries, because the checkpoint has what the header had.
func TestADamagedHeaderCostsNothing(t *testing.T) {
	o := undelivered(t, 2)
	for _, path := range files(t, o.Dir, rawSuffix) {
		flip(t, path, int64(headerSize)-1)
	}
	b := &backend{}
	j := open(t, b, o)
	flush(t, j)
	if i := balanced(t, j); i.Seen != 2 || i.Recorded != 2 {
		t.Errorf("the reconciliation is %+v", i)
	}
}
