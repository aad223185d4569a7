package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// sealedName is the file of the list of sealed segments in the journal's directory.
const sealedName = "sealed"

// sealedList knows the sealed segments. It is kept in a file, so that content that is
// deleted or damaged afterwards is missed, and counts as lost once.
type sealedList struct {
	mu       sync.Mutex
	segments map[uint64]sealed // by number
	lost     []storage.Loss    // content
	unsaved  bool              // the file says something else

	saving sync.Mutex // held while the file is written
}

// sealedText is what the file has, as JSON. Losses are in the form of lossWire.
type sealedText struct {
	Segments map[uint64]sealed
	Losses   [][]byte
}

// sealed is what is known of a sealed segment without reading it.
type sealed struct {
	// Size is that of its file.
	Size int64
	// Newest is when the newest record was created, in milliseconds.
	Newest int64
	// Entries have content, and Lost of them have lost it: all, or those that need the
	// blocks that begin with the ordinals in Damaged.
	Entries, Lost int64
	Damaged       []uint32 `json:",omitempty"`
}

// open reads the file, if there is one.
func (l *sealedList) open(dir string) error {
	var t sealedText
	text, err := os.ReadFile(filepath.Join(dir, sealedName))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if l.segments = t.Segments; l.segments == nil {
		l.segments = map[uint64]sealed{}
	}
	l.lost = parseLosses(t.Losses)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s, the list of sealed segments, cannot be read: %w", filepath.Join(dir, sealedName), err)
	}
	return nil
}

// save writes the file anew.
func (l *sealedList) save(dir string) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	text, err := json.Marshal(sealedText{l.segments, marshalLosses(l.lost)})
	l.unsaved = false
	l.mu.Unlock()
	path := filepath.Join(dir, sealedName)
	if err == nil {
		err = writeFile(path+temporarySuffix, text)
	}
	if err == nil {
		err = os.Rename(path+temporarySuffix, path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		l.mu.Lock()
		l.unsaved = true
		l.mu.Unlock()
		return fmt.Errorf("the list of sealed segments cannot be written: %w", err)
	}
	return nil
}

// writeFile writes a file that survives a power cut.
func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// stale tells whether the file does not say what it should.
func (l *sealedList) stale(dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segments)+len(l.lost) == 0 {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, sealedName))
	return l.unsaved || errors.Is(err, fs.ErrNotExist)
}

// add lists a segment, and counts what it lost when it was sealed. It is false when
// the segment is listed already.
func (l *sealedList) add(number uint64, s sealed, lost int64, now moment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.segments[number]; there {
		return false
	}
	l.segments[number] = s
	l.countLost(lost, now)
	l.unsaved = true
	return true
}

// countLost counts entries that have lost their content. It needs the mutex.
func (l *sealedList) countLost(entries int64, now moment) {
	if entries > 0 {
		l.lost = addIncident(l.lost, storage.Loss{Reason: storage.LostContent, Count: entries, From: now, To: now})
		l.unsaved = true
	}
}

func (l *sealedList) remove(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.segments[number]; there {
		delete(l.segments, number)
		l.unsaved = true
	}
}

func (l *sealedList) has(number uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.segments[number]
	return there
}

func (l *sealedList) all() map[uint64]sealed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.segments)
}

// damage counts what a segment has lost, or so many entries by the damage of a block,
// and had not before.
func (l *sealedList) damage(number uint64, b *block, entries int64, now moment) (lost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, there := l.segments[number]
	if !there || b != nil && slices.Contains(s.Damaged, b.first) {
		return 0
	}
	lost = s.Entries - s.Lost
	if b != nil {
		lost = min(lost, entries)
		s.Damaged = append(s.Damaged, b.first)
	}
	s.Lost += lost
	l.segments[number] = s
	l.countLost(lost, now)
	return lost
}

// damagedBlocks are those of a segment that were counted, by their first ordinals.
func (l *sealedList) damagedBlocks(number uint64) []uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.segments[number].Damaged)
}

func (l *sealedList) losses() []storage.Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lost)
}

func (l *sealedList) total() (n int, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		size += s.Size
	}
	return len(l.segments), size
}

// adopt lists a sealed segment that the list has not, also if it cannot be read: then
// retention goes by the file's age.
func (j *Journal) adopt(number uint64) error {
	path := j.path(number, sealedSuffix)
	f, size, err := openSealed(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := sealed{Size: size}
	index, err := readIndex(f, size)
	if err == nil {
		s.Newest, s.Entries = int64(index.newest), index.entries()
	} else {
		err = fmt.Errorf("%s %w", path, err)
		if info, statErr := f.Stat(); statErr == nil {
			s.Newest = info.ModTime().UnixMilli()
		}
	}
	j.sealed.add(number, s, 0, 0)
	return err
}

// checkSealed looks whether the sealed segments are there, and as long as they were.
func (j *Journal) checkSealed(o *Options) {
	var cutoff, lost int64
	if retention := o.contentRetention(); retention > 0 {
		cutoff = o.now().Add(-retention).UnixMilli()
	}
	now := storage.Millis(o.now())
	for number, s := range j.sealed.all() {
		info, err := os.Stat(j.path(number, sealedSuffix))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if s.Newest >= cutoff { // else the process ended while it deleted the file
				lost += j.sealed.damage(number, nil, 0, now)
			}
			j.sealed.remove(number)
		case err == nil && info.Size() != s.Size:
			lost += j.sealed.damage(number, nil, 0, now)
		}
	}
	j.contentLost(lost, o, zap.String("directory", j.dir))
}

// damaged counts the content of a sealed segment as lost, or of so many entries by the
// damage of a block, unless it was before.
func (j *Journal) damaged(number uint64, b *block, entries int64, cause error) {
	j.mu.Lock()
	o := j.options
	j.mu.Unlock()
	j.contentLost(j.sealed.damage(number, b, entries, storage.Millis(o.now())), &o, zap.Error(cause))
}

// contentLost tells of entries that the list has counted, and saves it.
func (j *Journal) contentLost(entries int64, o *Options, of zap.Field) {
	if entries > 0 {
		j.ledger.contentLost(entries)
		o.Logger.Error("records have lost their content", zap.Int64("records", entries), of)
	}
	j.saveSealed(o)
}

// saveSealed writes the list if it has to be. Where it cannot be written, it is tried
// again.
func (j *Journal) saveSealed(o *Options) {
	if !j.sealed.stale(j.dir) {
		return
	}
	if err := j.sealed.save(j.dir); err != nil {
		o.Logger.Error("what becomes of content may be counted again after a restart", zap.Error(err))
	}
}
