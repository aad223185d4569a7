package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// ErasuresName is the file of the erasures in the journal's directory.
const ErasuresName = "erasures"

// erasures are the erasures of a journal, in the order of creation.
type erasures struct {
	// mu guards the fields. It is held while the files are written.
	mu    sync.Mutex
	all   []*Erasure
	reach Reach
	// refused is why no erasure can be created, nil if one can.
	refused error

	// hidden are the entries that are left to erase, sorted, by segment: nobody can read their
	// content. It is nil if there are none.
	hidden atomic.Pointer[map[uint64][]uint32]
	// finds is true while the content of erased records is left to find: after a restore.
	finds atomic.Bool
	// records are all records of all erasures.
	records atomic.Pointer[erasedRecords]
}

// erasuresText is what the file has, as JSON.
type erasuresText struct {
	// Generation counts the writes of the file.
	Generation uint64
	Erasures   []*Erasure
	// Records is how much of the file of erased records holds.
	Records erasedFile `json:",omitzero"`

	records *erasedRecords
}

// openErasures reads the files, if there are any. Without them, nobody knows what is left to erase.
func (j *Journal) openErasures() {
	e := &j.erasures
	t, err := readErasures(j.dir)
	if err != nil {
		j.options.logger().Error("the list of erasures cannot be read", zap.Error(err))
	}
	e.all, e.reach = t.Erasures, t.reach()
	e.records.Store(t.records)
	e.hide()
	if e.refused = j.Compare(ErasuresName, e.reach); e.refused != nil {
		j.options.logger().Error("what is left to erase is not known: the erasures have to be requested again", zap.Error(e.refused))
	}
}

// readErasures returns an empty list if there is no file, or with an error.
func readErasures(dir string) (t erasuresText, err error) {
	path := filepath.Join(dir, ErasuresName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return erasuresText{}, fmt.Errorf("%s: %w", path, err)
	}
	if t.records, err = readErased(dir, t.Records); err != nil {
		return erasuresText{}, err
	}
	return t, nil
}

// reach is how far the file reaches, zero if there is none.
func (t *erasuresText) reach() Reach {
	if t.Generation == 0 {
		return Reach{}
	}
	return Reach{t.Generation, 1}
}

// write writes the file anew.
func (t *erasuresText) write(dir string) error {
	text, err := json.Marshal(t)
	if err == nil {
		err = replaceFile(filepath.Join(dir, ErasuresName), text)
	}
	if err != nil {
		return fmt.Errorf("the list of erasures cannot be written: %w", err)
	}
	return nil
}

// saveErasures writes the file anew. It needs the mutex.
func (j *Journal) saveErasures() error {
	e := &j.erasures
	next := erasuresText{Generation: e.reach.Generation + 1, Erasures: e.all}
	if records := e.records.Load(); records != nil {
		next.Records = records.file
	}
	if err := next.write(j.dir); err != nil {
		return err
	}
	e.reach = next.reach()
	j.Note(ErasuresName, e.reach)
	return nil
}

// change replaces an erasure by what do makes of a copy, and writes the list.
func (j *Journal) change(id uuid.UUID, do func(*Erasure)) error {
	l := &j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.all {
		if e.ID == id {
			next := *e
			do(&next)
			l.all[i] = &next
		}
	}
	l.hide()
	return j.saveErasures()
}

// hide makes the entries unreadable that all erasures together still have to remove. It needs the
// mutex.
func (e *erasures) hide() {
	var left map[uint64][]uint32
	finds := false
	for _, one := range e.all {
		finds = finds || one.Find
		for number, ordinals := range one.Left {
			if left == nil {
				left = make(map[uint64][]uint32)
			}
			left[number] = append(left[number], ordinals...)
		}
	}
	e.finds.Store(finds)
	if left == nil {
		e.hidden.Store(nil)
		return
	}
	for _, ordinals := range left {
		slices.Sort(ordinals)
	}
	e.hidden.Store(&left)
}

// left returns the entries that are left to erase, sorted, by segment.
func (e *erasures) left() map[uint64][]uint32 {
	if hidden := e.hidden.Load(); hidden != nil {
		return *hidden
	}
	return nil
}

// hides reports whether the content of a record is left to erase.
func (e *erasures) hides(r *storage.Record) bool {
	_, found := slices.BinarySearch(e.left()[r.Content.Segment], r.Content.Ordinal)
	return found || e.finds.Load() && e.records.Load().scope(r.Key()) > 0
}

// unfinished are the erasures that are not done.
func (e *erasures) unfinished() (all []*Erasure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		if one.DoneAt == 0 {
			all = append(all, one)
		}
	}
	return all
}

// findAgain has all erasures repeated in the backend, which is older than it was.
func (j *Journal) findAgain() error {
	l := &j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return nil
	}
	for i, e := range l.all {
		next := *e
		next.Find, next.DoneAt, next.unusedErased = true, 0, false
		l.all[i] = &next
	}
	l.hide()
	return j.saveErasures()
}
