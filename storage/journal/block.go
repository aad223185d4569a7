package journal

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"

	"github.com/klauspost/compress/s2"
	"github.com/minio/minlz"

	"github.com/weirhq/weir/storage"
)

// A sealed segment is blocks, their index, and a trailer. A block is some entries in three
// frames, so that a search reads no more than it needs: a frame of what was asked, a frame of
// what was answered, and a frame of the records' metadata (sealedRecord), which is read to give the
// records to a database that has lost them. A frame is compressed items, each an ordinal (4), a
// length (4), and a part of an entry. Large requests share bytes with requests before them in the
// file.
const (
	itemHead = 4 + 4

	// A block ends with the entry that brings it to this many bytes.
	blockBytes = 256 << 10
)

// part is one of the parts that content is sealed in.
type part struct {
	is   storage.ContentPart
	wire message[content]
}

// The frames of a block. Those of content have the indexes of their parts.
const (
	requestFrame = iota
	responseFrame
	recordFrame
	frameCount
)

var parts = [...]part{
	requestFrame:  {storage.RequestPart, message[content]{1: contentWire[1], 3: contentWire[3], 4: contentWire[4], requestData: contentWire[requestData]}},
	responseFrame: {storage.ResponsePart, message[content]{2: contentWire[2], requestData + 1: contentWire[requestData+1], unassembled: contentWire[unassembled]}},
}

// sealedWriter writes sealed segments, one after the other.
type sealedWriter struct {
	w      *bufio.Writer
	offset int64
	index  []block
	begun  bool               // the last block of index is not written yet
	raw    [frameCount][]byte // the frames of this block
	frame  []byte
	blocks []uint32 // by ordinal: the number of the block that an entry is in
	sum    uint32   // of the index, once it is written

	// moved is where requests of the raw segment stand in the sealed segment.
	moved   relocations
	pieces  []piece
	extents extentList
}

// reset begins a new segment.
func (w *sealedWriter) reset(to io.Writer) {
	if w.w == nil {
		w.w = bufio.NewWriter(nil)
	}
	w.w.Reset(to)
	w.offset, w.index, w.blocks, w.moved = 0, w.index[:0], w.blocks[:0], w.moved[:0]
	w.begin()
}

// begin makes room for the next block.
func (w *sealedWriter) begin() {
	w.begun = false
	for i := range w.raw {
		w.raw[i] = w.raw[i][:0]
	}
}

// add appends the content of an entry, and its record (sealedRecord), empty for none. shared is its
// request if that shares bytes with others. What is damaged is left out.
func (w *sealedWriter) add(ordinal uint32, c *content, shared *rawRequest, record []byte) (err error) {
	number := len(w.index) // of the block
	if w.begun {
		number--
	}
	size := 0
	for i, p := range parts {
		start := len(w.raw[i])
		raw := append(order.AppendUint32(w.raw[i], ordinal), 0, 0, 0, 0)
		if i == requestFrame && shared != nil {
			if raw, err = w.relocate(p.wire[:requestData].append(raw, c), number, shared); err != nil {
				return err
			}
		} else {
			raw = p.wire.append(raw, c)
		}
		if len(raw) == start+itemHead {
			raw = raw[:start] // the entry has nothing of this part
		} else {
			order.PutUint32(raw[start+4:], uint32(len(raw)-start-itemHead))
		}
		w.raw[i] = raw
		size += len(raw)
	}
	if len(record) > 0 {
		raw := order.AppendUint32(order.AppendUint32(w.raw[recordFrame], ordinal), uint32(len(record)))
		w.raw[recordFrame] = append(raw, record...)
	}
	if !w.begun {
		w.begun = true
		w.index = append(w.index, block{first: ordinal, offset: w.offset})
	}
	w.index[number].entries++
	for int64(len(w.blocks)) <= int64(ordinal) {
		w.blocks = append(w.blocks, noBlock)
	}
	w.blocks[ordinal] = uint32(number)
	if size >= blockBytes {
		return w.flush()
	}
	return nil
}

// flush writes the block that has begun.
func (w *sealedWriter) flush() error {
	if !w.begun {
		return nil
	}
	b := &w.index[len(w.index)-1]
	for i, raw := range w.raw {
		if len(raw) == 0 {
			continue
		}
		w.frame = compress(w.frame[:cap(w.frame)], raw)
		b.frames[i] = frame{uint32(len(w.frame)), crc32.Checksum(w.frame, castagnoli)}
		w.offset += int64(len(w.frame))
		if _, err := w.w.Write(w.frame); err != nil {
			return err
		}
	}
	w.begin()
	return nil
}

// compress returns the frame of items, in dst if there is room. Items that are too long for
// MinLZ become S2.
func compress(dst, items []byte) []byte {
	if frame, err := minlz.Encode(dst, items, minlz.LevelSuperFast); err == nil {
		return frame
	}
	return s2.Encode(dst, items)
}

// decompress returns the items of a frame, in dst if there is room. Frames of version 1 are S2.
func decompress(dst, frame []byte) ([]byte, error) {
	if ok, _, _ := minlz.IsMinLZ(frame); ok {
		return minlz.Decode(dst, frame)
	}
	return s2.Decode(dst, frame)
}

// finish writes the index. newest is when the newest record was created.
func (w *sealedWriter) finish(newest moment) error {
	if err := w.flush(); err != nil {
		return err
	}
	index := appendIndex(nil, w.index, w.blocks, newest)
	w.sum = order.Uint32(index[len(index)-trailerSize+trailerHead:])
	if _, err := w.w.Write(index); err != nil {
		return err
	}
	return w.w.Flush()
}

// The index of a sealed segment says where its blocks are:
//
//	index   for each block: first ordinal (4), number of entries (4), offset (8),
//	        and for each of its frames: length (4), checksum (4, CRC-32C of the frame)
//	entries for each ordinal up to the last with content: number of its block, or
//	        2^32-1 if it has none (4)
//	trailer number of blocks (4), of ordinals (4), when the newest record was created (8),
//	        checksum of the index and the trailer so far (4), magic (7), version (1)
const (
	sealedMagic   = "weir.bl"
	sealedVersion = '3' // 1 has frames of S2 only, 2 has no records
	trailerSize   = trailerHead + 4 + len(sealedMagic) + 1
	trailerHead   = 4 + 4 + 8
	blockHeadSize = 4 + 4 + 8
	frameSize     = 4 + 4
	noBlock       = math.MaxUint32
)

// block is one line of the index. Its frames follow each other from offset on.
type block struct {
	first   uint32
	entries uint32
	offset  int64
	frames  [frameCount]frame
}

// frame is a frame in the index. It is zero when no entry of the block has its part, as in
// segments of versions that had no such frames.
type frame struct {
	length uint32
	sum    uint32
}

// sealedIndex is the index of a sealed segment with what its trailer says.
type sealedIndex struct {
	blocks []block
	of     []byte // the entries
	newest moment
	size   int64  // of the file, in bytes
	sum    uint32 // of the index, and so of the checksums of all frames
}

var (
	errSealed = errors.New("is damaged: its index does not match its checksum")
	errOther  = errors.New("is not the file that was sealed, but another one")
)

// appendIndex appends the index and the trailer.
func appendIndex(b []byte, blocks []block, of []uint32, newest moment) []byte {
	start := len(b)
	for _, e := range blocks {
		b = order.AppendUint64(order.AppendUint32(order.AppendUint32(b, e.first), e.entries), uint64(e.offset))
		for _, f := range e.frames {
			b = order.AppendUint32(order.AppendUint32(b, f.length), f.sum)
		}
	}
	for _, n := range of {
		b = order.AppendUint32(b, n)
	}
	b = order.AppendUint32(order.AppendUint32(b, uint32(len(blocks))), uint32(len(of)))
	b = order.AppendUint64(b, uint64(newest))
	b = append(order.AppendUint32(b, crc32.Checksum(b[start:], castagnoli)), sealedMagic...)
	return append(b, sealedVersion)
}

// readIndex reads the index of a sealed segment of this size.
func readIndex(r io.ReaderAt, size int64) (*sealedIndex, error) {
	if size < int64(trailerSize) {
		return nil, errSealed
	}
	var trailer [trailerSize]byte
	if _, err := r.ReadAt(trailer[:], size-int64(trailerSize)); err != nil {
		return nil, err
	}
	switch {
	case string(trailer[trailerHead+4:trailerSize-1]) != sealedMagic:
		return nil, errSealed
	case trailer[trailerSize-1] < '1' || trailer[trailerSize-1] > sealedVersion:
		return nil, errVersion
	}
	frames := frameCount
	if trailer[trailerSize-1] < '3' {
		frames = recordFrame
	}
	n, line := int64(order.Uint32(trailer[:])), int64(blockHeadSize+frames*frameSize)
	ordinals := 4 * int64(order.Uint32(trailer[4:]))
	start := size - int64(trailerSize) - ordinals - n*line
	if start < 0 {
		return nil, errSealed
	}
	b := make([]byte, n*line+ordinals+int64(trailerHead))
	if _, err := r.ReadAt(b, start); err != nil {
		return nil, err
	}
	if crc32.Checksum(b, castagnoli) != order.Uint32(trailer[trailerHead:]) {
		return nil, errSealed
	}
	x := &sealedIndex{
		blocks: make([]block, n), of: b[n*line:][:ordinals], newest: moment(order.Uint64(trailer[8:])),
		size: size, sum: order.Uint32(trailer[trailerHead:]),
	}
	for i := range x.blocks {
		e := b[int64(i)*line:]
		blk := block{first: order.Uint32(e), entries: order.Uint32(e[4:]), offset: int64(order.Uint64(e[8:]))}
		end := blk.offset
		for k := range frames {
			e := e[blockHeadSize+k*frameSize:]
			blk.frames[k] = frame{order.Uint32(e), order.Uint32(e[4:])}
			end += int64(blk.frames[k].length)
		}
		if blk.offset < 0 || end > start {
			return nil, errSealed
		}
		x.blocks[i] = blk
	}
	return x, nil
}

// entries counts the entries that have content.
func (x *sealedIndex) entries() (n int64) {
	for _, b := range x.blocks {
		n += int64(b.entries)
	}
	return n
}

// at returns the number of the block that an entry is in, if it has content.
func (x *sealedIndex) at(ordinal uint32) (n int, found bool) {
	if int64(ordinal) >= int64(len(x.of)/4) {
		return 0, false
	}
	n = int(order.Uint32(x.of[4*int(ordinal):]))
	return n, n < len(x.blocks)
}

// ordinals lists the entries of each block.
func (x *sealedIndex) ordinals() [][]uint32 {
	all := make([][]uint32, len(x.blocks))
	for ordinal := range uint32(len(x.of) / 4) {
		if block, there := x.at(ordinal); there {
			all[block] = append(all[block], ordinal)
		}
	}
	return all
}

// openSealed opens a sealed segment for reading.
func openSealed(path string) (*os.File, int64, error) {
	f, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return f, info.Size(), nil
}
