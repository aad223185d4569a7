package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// Erasure removes the content of some records from the journal's files, and afterwards proves
// that it did. It never has the values by which the records were chosen.
type Erasure struct {
	ID uuid.UUID
	// Org is the organisation whose records these are.
	Org string
	// RequestedAt is when the records were chosen, RequestedBy is the id of the API
	// key, or the beginning of its hash.
	RequestedAt storage.Timestamp
	RequestedBy string
	// Searched are the fields and operators of the filter.
	Searched []string
	// Records counts the records that had content, Bytes the bytes of their bodies as they were
	// sent.
	Records, Bytes int64
	// Erased counts those of the records whose content is in no segment any more.
	Erased int64
	// DoneAt is when the last segment was written, 0 if some are left.
	DoneAt storage.Timestamp
	// Left are the entries in segments that are not written yet, by segment.
	Left map[uint64][]uint32 `json:",omitempty"`
}

// erasures are the erasures of a journal, in the order of creation.
type erasures struct {
	// mu guards the fields. It is held while the file is written.
	mu    sync.Mutex
	all   []*Erasure
	reach Reach
	// refused is why no erasure can be created, nil if one can.
	refused error

	// hidden are the entries that are left to erase, sorted, by segment: nobody can read their
	// content. It is nil if there are none.
	hidden atomic.Pointer[map[uint64][]uint32]
}

// erasuresText is what the file has, as JSON.
type erasuresText struct {
	// Generation counts the writes of the file.
	Generation uint64
	Erasures   []*Erasure
}

// openErasures reads the file, if there is one. Without it, nobody knows what is left to erase.
func (j *Journal) openErasures() {
	e := &j.erasures
	t, err := readErasures(j.dir)
	if err != nil {
		j.options.logger().Error("the list of erasures cannot be read", zap.Error(err))
	}
	e.all, e.reach = t.Erasures, t.reach()
	e.hide()
	if e.refused = j.Compare(ErasuresName, e.reach); e.refused != nil {
		j.options.logger().Error("what is left to erase is not known: the erasures have to be requested again", zap.Error(e.refused))
	}
	signal(j.maintenance.wake)
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
	return t, nil
}

// reach is how far the file reaches, zero if there is none.
func (t *erasuresText) reach() Reach {
	if t.Generation == 0 {
		return Reach{}
	}
	return Reach{t.Generation, 1}
}

// saveErasures writes the file anew. It needs the mutex.
func (j *Journal) saveErasures() error {
	e := &j.erasures
	next := Reach{e.reach.Generation + 1, 1}
	text, err := json.Marshal(erasuresText{next.Generation, e.all})
	if err == nil {
		err = replaceFile(filepath.Join(j.dir, ErasuresName), text)
	}
	if err != nil {
		return fmt.Errorf("the list of erasures cannot be written: %w", err)
	}
	e.reach = next
	j.Note(ErasuresName, next)
	return nil
}

// Erase begins an erasure of the content at some places. It returns once the erasure is durable:
// from then on nobody reads the content. Maintenance removes it from the files, also after a
// crash.
func (j *Journal) Erase(e Erasure, content []storage.ContentRef) error {
	e.Left = make(map[uint64][]uint32)
	for _, ref := range content {
		e.Left[ref.Segment] = append(e.Left[ref.Segment], ref.Ordinal)
	}
	for _, ordinals := range e.Left {
		slices.Sort(ordinals)
	}
	if len(e.Left) == 0 {
		e.DoneAt = j.options.now()
	}
	l := &j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil {
		return l.refused
	}
	l.all = append(l.all, &e)
	if err := j.saveErasures(); err != nil {
		l.all = l.all[:len(l.all)-1]
		return err
	}
	l.hide()
	signal(j.maintenance.wake)
	return nil
}

// Erasures returns the erasures of an organisation, the newest first.
func (j *Journal) Erasures(org string) (all []Erasure) {
	j.erasures.mu.Lock()
	defer j.erasures.mu.Unlock()
	for _, e := range slices.Backward(j.erasures.all) {
		if e.Org == org {
			all = append(all, *e)
		}
	}
	return all
}

// runErasures removes from the segments what is left to erase. Backups and sealing go on between
// two segments. What cannot be written yet is left to the next maintenance.
func (j *Journal) runErasures(ctx context.Context) {
	left := j.erasures.left()
	if len(left) == 0 {
		return
	}
	j.closeErased(left)
	var w rewriter
	for _, number := range slices.Sorted(maps.Keys(left)) {
		var err error
		j.options.Load().LowPriority(func() { err = j.eraseSegment(ctx, &w, number, left[number]) })
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			j.options.logger().Error("content cannot be erased: it is tried again", zap.String("file", segmentPath(j.dir, number, sealedSuffix)), zap.Error(err))
		}
	}
}

// hide makes the entries unreadable that all erasures together still have to remove. It needs the
// mutex.
func (e *erasures) hide() {
	var left map[uint64][]uint32
	for _, one := range e.all {
		for number, ordinals := range one.Left {
			if left == nil {
				left = make(map[uint64][]uint32)
			}
			left[number] = append(left[number], ordinals...)
		}
	}
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

// hides reports whether an entry is left to erase.
func (e *erasures) hides(ref storage.ContentRef) bool {
	_, found := slices.BinarySearch(e.left()[ref.Segment], ref.Ordinal)
	return found
}

// closeErased ends the active segment if something of it is erased, so that it can be sealed.
func (j *Journal) closeErased(left map[uint64][]uint32) {
	j.log.turn.Lock()
	defer j.log.turn.Unlock()
	if s := j.log.active; s != nil && left[s.number] != nil {
		j.log.close(s) // the drain wakes maintenance when the backend has all of it
	}
}

// eraseSegment removes entries from one segment, unless it is still raw.
func (j *Journal) eraseSegment(ctx context.Context, w *rewriter, number uint64, ordinals []uint32) error {
	if !j.takeTurn(ctx) {
		return ctx.Err()
	}
	defer j.giveTurn()
	j.mu.Lock()
	_, raw := j.log.find(number)
	j.mu.Unlock()
	if raw {
		return nil
	}
	err := j.archive.rewrite(ctx, w, number, func(ordinal uint32) bool {
		_, found := slices.BinarySearch(ordinals, ordinal)
		return found
	})
	if err != nil {
		return err
	}
	return j.erasedSegment(number, ordinals)
}

// erasedSegment notes that a segment is written.
func (j *Journal) erasedSegment(number uint64, ordinals []uint32) error {
	j.erasures.mu.Lock()
	defer j.erasures.mu.Unlock()
	for i, e := range j.erasures.all {
		mine, there := e.Left[number]
		if !there || !contains(ordinals, mine) { // else it was created meanwhile
			continue
		}
		next := *e
		next.Left = maps.Clone(e.Left)
		delete(next.Left, number)
		next.Erased += int64(len(mine))
		if len(next.Left) == 0 {
			next.DoneAt = j.options.now()
		}
		j.erasures.all[i] = &next
	}
	j.erasures.hide()
	return j.saveErasures()
}

// contains reports whether a sorted list has all of some values.
func contains(sorted, values []uint32) bool {
	return !slices.ContainsFunc(values, func(v uint32) bool {
		_, found := slices.BinarySearch(sorted, v)
		return !found
	})
}
