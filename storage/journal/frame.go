package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A segment begins with its header: magic, version, and a random salt that
// seeds the checksums of heads, so that no body can pass for an entry.
const (
	magic      = "weir.seg"
	version    = 1
	headerSize = len(magic) + 4 + 4
)

// An entry is a head, metadata and content. All numbers are little-endian:
//
//	0  checksum of the rest of the head and the metadata (CRC-32C, salted)
//	4  checksum of the content (CRC-32C)
//	8  ordinal
//	12 length of the content
//	16 length of the metadata (24 bits), kind (7 bits), media (1 bit)
const headSize = 20

const mediaBit = 1 << 31

// maxMetadata bounds the metadata of an entry.
const maxMetadata = 1<<24 - 1

// kind tells what an entry is.
type kind uint8

const (
	kindRecord kind = 1 + iota
	kindAnnotation
	kindLoss
	// kindEnd says where an earlier segment ends, although its file may go on.
	kindEnd
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var order = binary.LittleEndian

// entry is an entry as read back. metadata is valid until the next one is read.
type entry struct {
	kind kind
	// media is true when the request has media parts.
	media    bool
	ordinal  uint32
	offset   int64
	metadata []byte
	// length and sum are the length and the checksum of the content.
	length int64
	sum    uint32
}

// end is the offset after the entry, content the offset of the entry's content.
func (e *entry) end() int64     { return e.content() + e.length }
func (e *entry) content() int64 { return e.offset + headSize + int64(len(e.metadata)) }

func header(salt uint32) []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	return order.AppendUint32(order.AppendUint32(b, version), salt)
}

var errVersion = errors.New("was written by a later version of Weir: go back to that one, or move the file away")

// readHeader returns the salt. A damaged header says no more than that its
// entries will probably not prove whole.
func readHeader(r io.ReaderAt) (salt uint32, err error) {
	var b [headerSize]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return 0, err
	}
	if string(b[:len(magic)]) == magic && order.Uint32(b[len(magic):]) > version {
		return 0, errVersion
	}
	return order.Uint32(b[len(magic)+4:]), nil
}

// scanner reads the entries of a segment in order, without their content. It
// gets over damage: it goes on with the next entry that proves whole, and
// counts the ordinals between.
type scanner struct {
	r    io.ReaderAt
	salt uint32
	// off is where the next entry should begin, end where the segment does, and
	// ordinal the number that the next entry should have.
	off, end int64
	ordinal  uint32
	// lost counts entries that were skipped because they were damaged.
	lost int64

	window []byte // what was read from the file at offset at
	at     int64
	size   int // of a read
}

// searchBudget bounds the bytes that are summed in search of an entry after
// damage, because hostile content could be full of almost-entries.
const searchBudget = 64 << 20

// next returns the next entry, or io.EOF. A last entry that is not whole, as a crash leaves
// it, does not count as an entry.
func (s *scanner) next() (entry, error) {
	if s.off >= s.end {
		return entry{}, io.EOF
	}
	budget := int64(searchBudget)
	e, state, err := s.entryAt(s.off, &budget)
	if err != nil {
		return entry{}, err
	}
	if state == complete {
		s.pass(&e)
		return e, nil
	}
	if state == torn {
		return entry{}, io.EOF
	}
	for off := s.off + 1; off+headSize <= s.end && budget > 0; off++ {
		e, found, err := s.entryAt(off, &budget)
		if err != nil {
			return entry{}, err
		}
		if found == complete {
			s.pass(&e)
			return e, nil
		}
	}
	if state == damaged {
		s.lost++
	}
	s.off = s.end
	return entry{}, io.EOF
}

// seek goes to the first entry of at least this ordinal, which next will return
// too. Of what is damaged on the way, it counts what comes from the ordinal on.
func (s *scanner) seek(ordinal uint32) (entry, error) {
	for {
		from := max(s.ordinal, ordinal)
		e, err := s.next()
		switch {
		case err != nil:
			if s.ordinal < ordinal {
				s.lost = 0
			}
			return e, err
		case e.ordinal >= ordinal:
			s.off, s.ordinal, s.lost = e.offset, e.ordinal, int64(e.ordinal-from)
			return e, nil
		}
		s.lost = 0
	}
}

func (s *scanner) pass(e *entry) {
	s.lost += int64(e.ordinal - s.ordinal)
	s.off, s.ordinal = e.end(), e.ordinal+1
}

// state is what stands at an offset.
type state int

const (
	complete state = iota
	torn           // a sound head, but the file ends before the content does
	short          // what may be an entry, but the file ends before its metadata does
	damaged        // no entry
)

func (s *scanner) entryAt(off int64, budget *int64) (entry, state, error) {
	if off+headSize > s.end {
		return entry{}, short, nil
	}
	b, err := s.read(off, headSize)
	if err != nil {
		return entry{}, damaged, err
	}
	ordinal, sizes := order.Uint32(b[8:]), order.Uint32(b[16:])
	e := entry{kind: kind(sizes &^ mediaBit >> 24), media: sizes&mediaBit != 0, ordinal: ordinal, offset: off, length: int64(order.Uint32(b[12:])), sum: order.Uint32(b[4:])}
	metadata := int64(sizes & maxMetadata)
	// A gap of ordinals cannot be longer than what fits between.
	gap := int64(ordinal) - int64(s.ordinal)
	if e.kind < kindRecord || e.kind > kindEnd || gap < 0 || gap > (off-s.off)/headSize {
		return entry{}, damaged, nil
	}
	if off+headSize+metadata > s.end {
		return entry{}, short, nil
	}
	if *budget -= headSize + metadata; *budget < 0 {
		return entry{}, damaged, nil
	}
	if b, err = s.read(off, headSize+int(metadata)); err != nil {
		return entry{}, damaged, err
	}
	if order.Uint32(b) != crc32.Update(s.salt, castagnoli, b[4:]) {
		return entry{}, damaged, nil
	}
	e.metadata = b[headSize:]
	if e.end() > s.end {
		return e, torn, nil
	}
	return e, complete, nil
}

// read returns n bytes at off, which lie before the end.
func (s *scanner) read(off int64, n int) ([]byte, error) {
	if i := off - s.at; i >= 0 && i+int64(n) <= int64(len(s.window)) {
		return s.window[i : i+int64(n)], nil
	}
	size := int(min(int64(max(n, s.size)), s.end-off))
	if cap(s.window) < size {
		s.window = make([]byte, size)
	}
	got, err := s.r.ReadAt(s.window[:size], off)
	s.window, s.at = s.window[:got], off
	if got < n { // the file was cut short, or cannot be read
		return nil, err
	}
	return s.window[:n], nil
}
