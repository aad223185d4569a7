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
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// sealedName is the file of the list of sealed segments in the journal's directory.
const sealedName = "sealed"

// archive has the sealed segments. The list of the segments is kept in a file, so that content
// that is deleted or damaged afterwards is missed, and counts as lost once.
type archive struct {
	dir     string
	options *settings
	ledger  *ledger

	// mu guards what follows.
	mu       sync.Mutex
	segments map[uint64]sealed // by number
	lost     []storage.Loss    // content
	unsaved  bool              // the file says something else
	earlier  recordCount       // of segments that the list had
	// raw are the ordinals of entries of raw segments whose bodies are among lost, if the backend
	// keeps bodies: others are counted when their segment is sealed.
	raw map[uint64][]uint32
	// read is how far the list reached when it was opened, with the sealed segments that it
	// lacked; saved is how far it reaches in the file.
	read, saved listReach
	// grams are the segments that are known to have grams, which are no part of the list.
	grams map[uint64]bool

	saving sync.Mutex // held while the file is written

	// rewrites counts the segments that were written anew: whoever has the file of one open has
	// what was erased from it.
	rewrites atomic.Uint64
}

// recordCount counts the versions of records and the annotations of a segment, and the exchanges
// that began with one of these versions.
type recordCount struct {
	Records   int64 `json:",omitempty"`
	Exchanges int64 `json:",omitempty"`
}

// sealedText is what the file has, as JSON with a sum. Losses are in the form of lossWire.
type sealedText struct {
	Segments map[uint64]sealed
	Losses   [][]byte
	// Generation counts the writes of the file.
	Generation uint64 `json:",omitempty"`
	// Earlier counts what was in segments that retention has deleted.
	Earlier recordCount `json:",omitzero"`
	// Raw are the entries of raw segments whose bodies are among Losses, by segment.
	Raw map[uint64][]uint32 `json:",omitempty"`
}

// sealed is what is known of a sealed segment without reading it.
type sealed struct {
	// Size is the size of the segment's file, in bytes; 0 for a segment without content, which
	// has no file.
	Size int64
	// Index is the sum of the index in the file, which tells it from the file of another segment; 0
	// if an older version of Weir listed it.
	Index uint32 `json:",omitempty"`
	// Newest is when the newest record was created, in milliseconds.
	Newest int64
	// Entries counts the entries with content. Lost counts those of them that have lost their
	// content: all, or the entries that need the blocks beginning with the ordinals in Damaged.
	Entries, Lost int64
	Damaged       []uint32 `json:",omitempty"`
	// Erased counts the entries whose content an erasure, or retention beside a hold, has removed
	// from the segment. Entries does not count them any more.
	Erased int64 `json:",omitempty"`
	// Again is true if a database that had lost the records of the segment has them again, as far
	// as the segment had them: recordCount counts these alone.
	Again bool `json:",omitempty"`
	// RawEntries counts the entries of all kinds that the raw segment had, 0 if an older version of
	// Weir sealed it.
	RawEntries uint32 `json:",omitempty"`
	// Next is what the segment is once its file has been replaced, nil if nothing is about to
	// replace the file.
	Next *sealed `json:",omitempty"`
	recordCount
}

// open reads the file, if there is one.
func (a *archive) open() error {
	var t sealedText
	text, err := os.ReadFile(filepath.Join(a.dir, sealedName))
	if err == nil {
		err = parseSummed(text, &t)
	}
	if err != nil {
		t = sealedText{}
	}
	if a.segments = t.Segments; a.segments == nil {
		a.segments = map[uint64]sealed{}
	}
	a.grams = map[uint64]bool{}
	a.lost, a.earlier, a.raw = parseLosses(t.Losses), t.Earlier, t.Raw
	a.saved.Generation = t.Generation
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s, the list of sealed segments, cannot be read: %w", filepath.Join(a.dir, sealedName), err)
	}
	return nil
}

// saveList writes the file anew.
func (a *archive) saveList() error {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	next := listReach{a.saved.Generation + 1, a.contents()}
	text, err := json.Marshal(sealedText{a.segments, marshalLosses(a.lost), next.Generation, a.earlier, a.raw})
	a.unsaved = false
	a.mu.Unlock()
	path := filepath.Join(a.dir, sealedName)
	if err == nil {
		err = replaceFile(path, withSum(text))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.unsaved = true
		return fmt.Errorf("the list of sealed segments cannot be written: %w", err)
	}
	a.saved = next
	return nil
}

// contents counts the entries whose content can be read. It needs the mutex.
func (a *archive) contents() (n int64) {
	for _, s := range a.segments {
		n += s.Entries - s.Lost
	}
	return n
}

// noteRead remembers how far the list reaches, once it has all segments that are there.
func (a *archive) noteRead() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read = listReach{a.saved.Generation, a.contents()}
	a.saved = a.read
}

// reach is how far the list reaches in its file.
func (a *archive) reach() listReach {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.saved
}

// lose counts content as lost that the files lack, by what a checkpoint says of them.
func (a *archive) lose(contents int64, was *reach) {
	a.mu.Lock()
	if was != nil {
		a.saved.Generation = max(a.saved.Generation, was.List.Generation)
	}
	a.countLost(contents, a.options.now())
	a.mu.Unlock()
	a.contentLost(contents, zap.String("directory", a.dir))
}

// missing counts what a backend lacks of the sealed segments if it is at one position and was at
// another. pruned is the time before which retention has deleted records.
func (a *archive) missing(is, was storage.Position, pruned moment) (n recordCount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for number, s := range a.segments {
		if number <= was.Segment {
			n.add(s.missing(number, is, pruned))
		}
	}
	return n
}

// missing returns an upper bound on what a backend at a position lacks of a segment: it is not known
// which entries before a position in the segment began an exchange.
func (s *sealed) missing(number uint64, is storage.Position, pruned moment) recordCount {
	if number < is.Segment || moment(s.Newest) < pruned {
		return recordCount{}
	}
	c := s.recordCount
	if c.Records == 0 && !s.Again { // listed by a version that did not count
		c = recordCount{s.Entries, s.Entries}
	}
	if number == is.Segment && s.RawEntries > 0 {
		c = c.atMost(int64(s.RawEntries) - int64(is.Ordinal))
	}
	return c
}

// atMost bounds both counts, by a number that is not below 0.
func (n recordCount) atMost(limit int64) recordCount {
	limit = max(limit, 0)
	return recordCount{min(n.Records, limit), min(n.Exchanges, limit)}
}

func (n *recordCount) add(more recordCount) {
	n.Records, n.Exchanges = n.Records+more.Records, n.Exchanges+more.Exchanges
}

func (n recordCount) without(less recordCount) recordCount {
	return recordCount{max(n.Records-less.Records, 0), max(n.Exchanges-less.Exchanges, 0)}
}

// unrecovered returns what a backend at a position lacked of a segment, and what of this it has not got
// again. Both are upper bounds if the position is in the segment.
func (a *archive) unrecovered(is storage.Position, again *rebuild, pruned moment) (missing, lost recordCount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.segments[again.number]
	missing = s.missing(again.number, is, pruned)
	lost = s.missing(again.number, storage.Position{Segment: again.number}, pruned).without(again.count)
	if again.from > 0 && s.RawEntries > 0 {
		lost = lost.atMost(int64(s.RawEntries) - int64(again.from) - again.after)
	}
	return missing, lost
}

// next returns the first sealed segment between two numbers that has records which retention has
// not deleted.
func (a *archive) next(from, before uint64, pruned moment) (number uint64, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n, s := range a.segments {
		if n >= from && n < before && moment(s.Newest) >= pruned && (!found || n < number) {
			number, found = n, true
		}
	}
	return number, found
}

// noteRebuilt notes which segments a backend has again, and how many records of each.
func (a *archive) noteRebuilt(all map[uint64]recordCount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for number, n := range all {
		if s, there := a.segments[number]; there {
			s.recordCount, s.Again = n, true
			a.segments[number] = s
			a.unsaved = true
		}
	}
}

// replaceFile writes a file anew. Whatever happens, it is the old one or the new one, durably.
func replaceFile(path string, text []byte) error {
	err := writeFile(path+temporarySuffix, text)
	if err == nil {
		err = Rename(path+temporarySuffix, path)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(path))
	}
	return err
}

func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// stale reports whether the file must be written anew.
func (a *archive) stale() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.segments)+len(a.lost) == 0 {
		return false
	}
	_, err := os.Stat(filepath.Join(a.dir, sealedName))
	return a.unsaved || errors.Is(err, fs.ErrNotExist)
}

// add lists a segment, and counts what it lost when it was sealed. It is false when
// the segment is listed already.
func (a *archive) add(number uint64, s sealed, lost int64, now moment) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.segments[number]; there {
		return false
	}
	a.segments[number] = s
	a.countLost(lost, now)
	a.unsaved = true
	return true
}

// countLost counts entries that have lost their content. It needs the mutex.
func (a *archive) countLost(entries int64, now moment) {
	if entries > 0 {
		a.lost = addIncident(a.lost, storage.Loss{Reason: storage.LostContent, Count: entries, From: now, To: now})
		a.unsaved = true
	}
}

// fileGone notes that a segment has no file. A database that is lost, too, lacks its records, unless
// they have outlived their retention.
func (a *archive) fileGone(number uint64, outlived bool) {
	if outlived {
		a.remove(number)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.segments[number]
	s.Size = 0
	a.segments[number] = s
	a.unsaved = true
}

func (a *archive) remove(number uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.segments[number]; there {
		delete(a.segments, number)
		a.unsaved = true
	}
}

// damagedBody counts the body of an entry of a raw segment as lost, once. A reader may still read a
// segment that is deleted: its bodies were counted before.
func (a *archive) damagedBody(l *log, ref storage.ContentRef) {
	l.mu.Lock()
	_, raw := l.find(ref.Segment)
	a.mu.Lock()
	l.mu.Unlock()
	if !raw || slices.Contains(a.raw[ref.Segment], ref.Ordinal) {
		a.mu.Unlock()
		return
	}
	if a.raw == nil {
		a.raw = make(map[uint64][]uint32)
	}
	a.raw[ref.Segment] = append(a.raw[ref.Segment], ref.Ordinal)
	a.countLost(1, a.options.now())
	a.mu.Unlock()
	a.contentLost(1, zap.String("file", segmentPath(a.dir, ref.Segment, rawSuffix)), zap.Uint32("ordinal", ref.Ordinal))
}

// forgetRaw forgets a raw segment that is deleted.
func (a *archive) forgetRaw(number uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.raw[number]; there {
		delete(a.raw, number)
		a.unsaved = true
	}
}

func (a *archive) has(number uint64) bool {
	_, there := a.segment(number)
	return there
}

// segment returns what is known of a segment, false if it is not listed.
func (a *archive) segment(number uint64) (s sealed, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, there = a.segments[number]
	return s, there
}

func (a *archive) all() map[uint64]sealed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.segments)
}

// expire deletes a segment.
func (a *archive) expire(number uint64, s sealed) {
	a.remove(number) // before the file, so that no reader looks for it
	a.mu.Lock()
	a.earlier.add(s.recordCount)
	a.mu.Unlock()
	err := a.removeGrams(number)
	if gone := os.Remove(segmentPath(a.dir, number, sealedSuffix)); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		a.add(number, s, 0, 0)
		a.options.logger().Error("content that has outlived its retention cannot be deleted", zap.Error(err))
	}
}

// damage counts what a segment has newly lost: everything, or so many entries by the damage
// of a block.
func (a *archive) damage(number uint64, b *block, entries int64, now moment) (lost int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, there := a.segments[number]
	if !there || s.Next != nil || b != nil && slices.Contains(s.Damaged, b.first) {
		return 0 // also while the file is replaced: the rewrite counts what it could not read
	}
	lost = s.Entries - s.Lost
	if b != nil {
		lost = min(lost, entries)
		s.Damaged = append(s.Damaged, b.first)
	}
	s.Lost += lost
	a.segments[number] = s
	a.countLost(lost, now)
	return lost
}

// damagedBlocks are the damaged blocks of a segment that were counted, by their first ordinals.
func (a *archive) damagedBlocks(number uint64) []uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.segments[number].Damaged)
}

// isOf reports whether an index is that of the segment's file, or of the file that replaces it.
func (s *sealed) isOf(index *sealedIndex) bool {
	return s.Index == 0 || s.Index == index.sum || s.Next != nil && s.Next.isOf(index)
}

// erased counts the entries whose content erasures have removed.
func (a *archive) erased() (n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.segments {
		n += s.Erased
	}
	return n
}

func (a *archive) losses() []storage.Loss {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.lost)
}

func (a *archive) total() (n int, size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.segments {
		if size += s.Size; s.Size > 0 {
			n++
		}
	}
	return n, size
}

// adopt lists a sealed segment that the list has not, or whose file was gone, also if it cannot be
// read: then retention goes by the file's age.
func (a *archive) adopt(number uint64) error {
	path := segmentPath(a.dir, number, sealedSuffix)
	f, size, err := openSealed(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := sealed{Size: size}
	index, err := readIndex(f, size)
	if err == nil {
		s.Index, s.Newest, s.Entries = index.sum, int64(index.newest), index.entries()
	} else {
		err = fmt.Errorf("%s %w", path, err)
		if info, statErr := f.Stat(); statErr == nil {
			s.Newest = info.ModTime().UnixMilli()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.segments[number]
	s.recordCount, s.Again, s.RawEntries, s.Erased = was.recordCount, was.Again, was.RawEntries, was.Erased
	a.segments[number] = s
	a.unsaved = true
	return err
}

// check looks whether the sealed segments are there, and as long as they were. It returns which are
// not, once.
func (a *archive) check() (damage []FileDamage) {
	o := a.options.Load()
	var cutoff, lost int64
	if retention := o.contentRetention(); retention > 0 {
		cutoff = o.now().Add(-retention).UnixMilli()
	}
	now := a.options.now()
	for number, s := range a.all() {
		if s.Size == 0 {
			continue
		}
		info, err := os.Stat(segmentPath(a.dir, number, sealedSuffix))
		what, n := "", int64(0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if s.Newest >= cutoff { // else the process ended while it deleted the file
				what, n = "is gone", a.damage(number, nil, 0, now)
			}
			a.fileGone(number, s.Newest < cutoff)
		case err == nil && info.Size() != s.Size:
			what, n = "is not as long as it was", a.damage(number, nil, 0, now)
		}
		if n > 0 {
			damage = append(damage, FileDamage{segmentName(number, sealedSuffix), fmt.Sprintf("%s: %d records lose their bodies", what, n), now})
			lost += n
		}
	}
	a.contentLost(lost, zap.String("directory", a.dir))
	return damage
}

// damaged counts the content of a sealed segment as lost, or the content of so many entries by
// the damage of a block, unless it was counted before.
func (a *archive) damaged(number uint64, b *block, entries int64, cause error) {
	a.contentLost(a.damage(number, b, entries, a.options.now()), zap.Error(cause))
}

// contentLost tells of entries that the list has counted, and saves it.
func (a *archive) contentLost(entries int64, of ...zap.Field) {
	if entries > 0 {
		a.ledger.contentLost(entries)
		a.options.logger().Error("records have lost their content", append(of, zap.Int64("records", entries))...)
	}
	_ = a.save() // which logs a failure
}

// save writes the list if it has to be. Where it cannot be written, it logs this, and the next save
// tries it again.
func (a *archive) save() error {
	if !a.stale() {
		return nil
	}
	err := a.saveList()
	if err != nil {
		a.options.logger().Error("what becomes of content may be counted again after a restart", zap.Error(err))
	}
	return err
}
