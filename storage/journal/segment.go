package journal

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirhq/weir/storage"
)

// Names of files in the journal's directory. A segment is raw until it is sealed. A temporary file
// is incomplete.
const (
	rawSuffix       = ".raw"
	sealedSuffix    = ".blk"
	gramsSuffix     = ".grm"
	temporarySuffix = ".tmp"
	lockName        = "lock"
)

func segmentPath(dir string, segment uint64, suffix string) string {
	return filepath.Join(dir, segmentName(segment, suffix))
}

func segmentName(segment uint64, suffix string) string {
	return fmt.Sprintf("%010d%s", segment, suffix)
}

// file is the part of os.File that a raw segment needs.
type file interface {
	io.ReaderAt
	// write writes the pieces one after the other, from off on.
	write(pieces [][]byte, off int64) error
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	// sync returns when everything written so far survives a power cut.
	sync() error
	Close() error
}

type osFile struct{ *os.File }

func openFile(path string, flag int) (file, error) {
	f, err := OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// segment is a raw segment. Its number, path, file and salt never change; the
// rest is guarded by the journal's mutex.
type segment struct {
	number uint64
	path   string
	file   file
	salt   uint32
	opened time.Time

	// size is the offset of the next entry, and entries its ordinal.
	size    int64
	entries uint32
	// marks has the offset of every markEvery-th entry, from the first on.
	marks []mark
	// parents has, for the ordinal of an entry that shares bytes with earlier entries, the
	// ordinal of the latest of these. Entries of earlier processes are missing.
	parents map[uint32]uint32
	// exchanges counts the entries that are the first of an exchange, without the
	// entries that the backend had when the journal was opened.
	exchanges int64
	// contents counts the entries with content, and damaged the entries that the drain
	// could not read back. damaged begins below 0 if the journal was opened with damaged
	// entries, which contents does not count.
	contents, damaged int64
	// newest is when the newest record was created, but not after the record was written:
	// the wrong clock of a client must not keep the content of other clients.
	newest moment
	// closed segments get no more entries.
	closed bool
	// leaving is true when the file is about to be deleted: the witness no longer has it.
	leaving bool
	// synced is the size that survives a power cut, in bytes.
	synced int64
	// refs counts the readers of the file, and the journal until the segment is sealed.
	refs int
}

// markEvery is the number of entries between marks: it bounds both their memory
// and the heads that are read to find an entry.
const markEvery = 32

type mark struct {
	offset  int64
	ordinal uint32
}

// note adds a mark for an entry if one is due.
func (s *segment) note(ordinal uint32, offset int64) {
	if len(s.marks) == 0 || ordinal-s.marks[len(s.marks)-1].ordinal >= markEvery {
		s.marks = append(s.marks, mark{offset, ordinal})
	}
}

// scanner returns a scanner of the segment up to its present size. It begins at the last mark up
// to the entry with this ordinal.
func (s *segment) scanner(ordinal uint32, window int) *scanner {
	sc := &scanner{r: s.file, salt: s.salt, off: int64(headerSize), end: s.size, size: window}
	i, found := slices.BinarySearchFunc(s.marks, ordinal, func(m mark, o uint32) int { return int(int64(m.ordinal) - int64(o)) })
	if !found {
		i--
	}
	if i >= 0 {
		sc.off, sc.ordinal = s.marks[i].offset, s.marks[i].ordinal
	}
	return sc
}

var errDamaged = errors.New("content is damaged: its checksum does not match")

// contentBuffer is the memory that content is read into.
type contentBuffer struct {
	stored, request []byte
	layout          layout
}

// content reads the content of an entry, as it was appended.
func (s *segment) content(e *entry) (*content, error) {
	c := new(content)
	return c, s.readContent(new(contentBuffer), e.content(), e.length, e.sum, c)
}

// readContent reads the content at an offset into m and decodes it to c, which shares the memory
// of m.
func (s *segment) readContent(m *contentBuffer, at, length int64, sum uint32, c *content) error {
	err := s.readStored(m, at, length, sum, c)
	if err == nil && m.layout.extents != nil {
		c.Request.Data, err = s.assemble(m, at, c.Request.Data)
	}
	return err
}

// readStored is readContent without the bytes that the request shares with others.
func (s *segment) readStored(m *contentBuffer, at, length int64, sum uint32, c *content) error {
	m.stored = slices.Grow(m.stored[:0], int(length))[:length]
	if err := readAt(s.file, m.stored, at); err != nil {
		return err
	}
	if crc32.Checksum(m.stored, castagnoli) != sum {
		return errDamaged
	}
	m.layout = layout{}
	err := contentWire.parse(m.stored, c)
	if err == nil {
		err = layoutWire.parse(m.stored, &m.layout)
	}
	return err
}

// assemble assembles in m the request of the entry whose content is at an offset.
func (s *segment) assemble(m *contentBuffer, at int64, own []byte) (request []byte, err error) {
	m.request, err = assemble(m.request[:0], m.layout.extents, own, func(b []byte, from, size uint64) ([]byte, error) {
		if from > uint64(at) || size > uint64(at)-from {
			return b, errDamaged // an entry shares only with entries before it
		}
		n := len(b)
		b = slices.Grow(b, int(size))[:n+int(size)]
		return b, readAt(s.file, b[n:], int64(from))
	})
	return m.request, err
}

// readAt fills b. It returns errDamaged if the file is too short.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	_, err := r.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return errDamaged
	}
	return err
}

// acquire returns the raw segment with this number for reading, or nil.
func (l *log) acquire(number uint64) *segment {
	if i, found := l.find(number); found {
		l.unsealed[i].refs++
		return l.unsealed[i]
	}
	return nil
}

// find needs the mutex, as acquire and unref do.
func (l *log) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.unsealed, number, func(s *segment, n uint64) int {
		if s.number < n {
			return -1
		}
		return int(min(s.number-n, 1))
	})
}

func (l *log) unref(s *segment) {
	if s.refs--; s.refs == 0 {
		s.file.Close()
	}
}

func (l *log) release(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unref(s)
}

// reserveNumber makes number the lowest that the next segment may have.
func (l *log) reserveNumber(number uint64) {
	for next := l.next.Load(); next < number && !l.next.CompareAndSwap(next, number); next = l.next.Load() {
	}
}

// create begins a segment. It needs the turn.
func (l *log) create() (*segment, error) {
	o := l.options.Load()
	number := l.next.Load()
	s := &segment{
		number: number, path: segmentPath(l.dir, number, rawSuffix), salt: rand.Uint32(), parents: map[uint32]uint32{},
		size: int64(headerSize), refs: 1, opened: o.now(),
	}
	var err error
	if s.file, err = o.open(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR); err != nil {
		return nil, err
	}
	l.reserveNumber(number + 1) // also when the file stays, though nothing can be written to it
	err = s.file.write([][]byte{header(s.salt)}, 0)
	if err == nil && o.Sync {
		err = SyncDir(l.dir)
	}
	if err != nil {
		s.file.Close()
		os.Remove(s.path)
		return nil, err
	}
	l.mu.Lock()
	l.unsealed = append(l.unsealed, s)
	l.mu.Unlock()
	return s, nil
}

// load opens a segment of an earlier process, and adds to ends. known is the salt that the witness
// says, 0 if it says none. If the header has another, it is damaged, or the file is of another store,
// and then no entry proves whole. path is where the file is.
func (l *log) load(number uint64, path string, known uint32, ends *[]storage.Position) error {
	s := &segment{number: number, path: path, closed: true, refs: 1}
	f, err := l.options.Load().open(s.path, os.O_RDWR)
	if err != nil {
		return err
	}
	s.file = f
	info, err := os.Stat(s.path)
	if err == nil && info.Size() >= int64(headerSize) {
		s.salt, err = readHeader(f)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", s.path, err)
	}
	s.salt = cmp.Or(known, s.salt)
	s.size, s.opened = info.Size(), info.ModTime()
	l.unsealed = append(l.unsealed, s)
	return s.scan(l.options.now(), ends)
}

// scan reads the heads of a segment of an earlier process. It adds the ends of other segments that
// the segment has entries of.
func (s *segment) scan(now moment, ends *[]storage.Position) error {
	s.marks, s.entries, s.contents, s.newest = nil, 0, 0, 0
	var r record
	for sc := s.scanner(0, scanWindow); ; {
		e, err := sc.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			s.damaged = -sc.lost
			return err
		}
		s.note(e.ordinal, e.offset)
		s.entries = e.ordinal + 1
		if e.length > 0 {
			s.contents++
		}
		switch e.kind {
		case kindRecord:
			if r.CreatedAt = 0; createdWire.parse(e.metadata, &r) == nil {
				s.newest = max(s.newest, min(r.CreatedAt, now))
			}
		case kindEnd:
			var end storage.Position
			if endWire.parse(e.metadata, &end) == nil {
				*ends = append(*ends, end)
			}
		}
	}
}

// cut removes the entries from an ordinal on. Their writer could neither complete nor undo them, and
// has counted them as lost.
func (s *segment) cut(ordinal uint32, now moment) error {
	e, err := s.scanner(ordinal, headWindow).seek(ordinal)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	s.size = e.offset
	_ = s.file.Truncate(s.size) // where it fails, the next start does it again
	return s.scan(now, new([]storage.Position))
}

// createdWire reads only the creation time of a record.
var createdWire = recordWire[:5]

// scanWindow is how many bytes of a segment are read at a time: many heads of small entries, and
// little of the content of large ones.
const scanWindow = 16 << 10

// writable returns the active segment, a new one if the last is full or too old.
func (l *log) writable() (*segment, error) {
	o := l.options.Load()
	if s := l.active; s != nil {
		if s.size < o.SegmentBytes && s.entries < math.MaxUint32-1<<20 && o.now().Sub(s.opened) < o.age() {
			return s, nil
		}
		l.close(s)
	}
	s, err := l.create()
	if err == nil {
		l.active = s
		l.chunks.Store(newChunkTable())
	}
	return s, err
}

// close ends the active segment. It needs the turn.
func (l *log) close(s *segment) {
	l.active = nil
	l.chunks.Store(nil)
	l.mu.Lock()
	s.closed = true
	l.mu.Unlock()
	signal(l.wake)
}
