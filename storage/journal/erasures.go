package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// ErasuresName is the file of the erasures in the journal's directory.
const ErasuresName = "erasures"

// erasures are the erasures of a journal, in the order of creation, and what carries them out.
type erasures struct {
	j *Journal

	// mu guards the fields. It is held while the files are written.
	mu    sync.Mutex
	all   []*Erasure
	reach Reach
	// refused is why no erasure can be created, nil if one can.
	refused error
	// joined is when each node has joined that noteJoined has seen. From reopenFrom on, erasures were requested that
	// have to choose again for one, nil for none.
	joined     map[uuid.UUID]storage.Timestamp
	reopenFrom *storage.Timestamp
	// flushRequest is the number of the last flush that was requested of other nodes.
	flushRequest int64
	// savedAt is when the file was written last, saving how long that took.
	savedAt time.Time
	saving  time.Duration
	// unsaved is true if segmentErased or noteJoined has changed what the file does not have.
	unsaved bool

	// deciding is held while it is decided which conversations go as a whole, and for reading while a
	// change of a conversation is appended. It comes before all other locks.
	deciding sync.RWMutex

	// records are all records of all erasures: nobody can read their content.
	records atomic.Pointer[erasedRecords]
}

// erasuresText is what the file has, as JSON with a sum.
type erasuresText struct {
	// Generation counts the writes of the file.
	Generation uint64
	Erasures   []*Erasure
	Joined     map[uuid.UUID]storage.Timestamp `json:",omitempty"`
	ReopenFrom *storage.Timestamp              `json:",omitempty"`
	// Records is how much of the file of erased records holds.
	Records erasedFile `json:",omitzero"`

	records *erasedRecords
}

// open reads the files, if there are any. Without them, nobody knows what is left to erase.
func (l *erasures) open() {
	t, err := readErasures(l.j.dir)
	if err != nil {
		l.j.options.logger().Error("the list of erasures cannot be read", zap.Error(err))
	}
	l.all, l.joined, l.reopenFrom, l.reach = t.Erasures, t.Joined, t.ReopenFrom, t.reach()
	l.records.Store(t.records)
	l.lastFlush() // what is requested before the first exchange does not have the number of an earlier flush
	if l.refused = l.j.witness.Compare(ErasuresName, l.reach); l.refused != nil {
		l.j.options.logger().Error("what is left to erase is not known: the erasures have to be requested again", zap.Error(l.refused))
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
		err = parseSummed(text, &t)
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
	return Reach{Generation: t.Generation, Size: 1}
}

// write writes the file anew.
func (t *erasuresText) write(dir string) error {
	text, err := json.Marshal(t)
	if err == nil {
		err = replaceFile(filepath.Join(dir, ErasuresName), withSum(text))
	}
	if err != nil {
		return fmt.Errorf("the list of erasures cannot be written: %w", err)
	}
	return nil
}

// save writes the file anew. It needs the mutex.
func (l *erasures) save() error {
	next := erasuresText{Generation: l.reach.Generation + 1, Erasures: l.all, Joined: l.joined, ReopenFrom: l.reopenFrom}
	if records := l.records.Load(); records != nil {
		next.Records = records.file
	}
	began := time.Now()
	if err := next.write(l.j.dir); err != nil {
		return err
	}
	l.savedAt, l.saving, l.unsaved = time.Now(), time.Since(began), false
	l.reach = next.reach()
	l.j.witness.Note(ErasuresName, l.reach)
	l.j.removals.Add(1)
	return nil
}

// change replaces erasures by what do makes of their copies, and writes the list.
func (l *erasures) change(of []*Erasure, do func(*Erasure)) error {
	if len(of) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := make(map[uuid.UUID]bool)
	for _, e := range of {
		changed[e.ID] = true
	}
	for i, e := range l.all {
		if changed[e.ID] {
			next := *e
			do(&next)
			l.all[i] = &next
		}
	}
	return l.save()
}

// lastFlush returns the number of the last flush that an erasure needs, and how much of the file of erased records
// other nodes have to know before they fulfil it. Erasures from then on need the next flush.
func (l *erasures) lastFlush() (request, file int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		l.flushRequest = max(l.flushRequest, e.FlushRequest)
	}
	if records := l.records.Load(); records != nil {
		file = records.file.Size
	}
	return l.flushRequest, file
}

// addOthers remembers what another node has erased.
func (l *erasures) addOthers(parts [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := l.records.Load()
	for _, part := range parts {
		if len(part) > erasedKeyBytes {
			records = records.withOthers(string(part[:erasedKeyBytes]), part[erasedKeyBytes:])
		}
	}
	l.records.Store(records)
	l.j.removals.Add(1)
}

// listedEntries returns the ordinals of the entries that are still to be erased, sorted, by segment.
func (l *erasures) listedEntries() map[uint64][]uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all Erasure
	for _, one := range l.all {
		all.add(one.Left)
	}
	return all.Left
}

// unfinished are the erasures that are not done.
func (l *erasures) unfinished() (all []*Erasure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one.DoneAt == 0 {
			all = append(all, one)
		}
	}
	return all
}

// findAgain has all erasures repeated in the backend, which is older than it was.
func (l *erasures) findAgain() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return nil
	}
	for i, e := range l.all {
		next := *e
		next.Find, next.FindContent, next.DoneAt, next.unusedErased = true, true, 0, false
		l.all[i] = &next
	}
	return l.save()
}
