package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
)

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
	sealedVersion = '1'
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
	frames  [len(parts)]frame
}

// frame is empty when no entry of the block has anything of its part.
type frame struct {
	length uint32
	sum    uint32
}

// sealedIndex is the index of a sealed segment with what its trailer says.
type sealedIndex struct {
	blocks []block
	of     []byte // the entries
	newest moment
}

var errSealed = errors.New("is damaged: its index does not match its checksum")

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
	case trailer[trailerSize-1] != sealedVersion:
		return nil, errVersion
	}
	n, line := int64(order.Uint32(trailer[:])), int64(blockHeadSize+len(parts)*frameSize)
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
	x := &sealedIndex{blocks: make([]block, n), of: b[n*line:][:ordinals], newest: moment(order.Uint64(trailer[8:]))}
	for i := range x.blocks {
		e := b[int64(i)*line:]
		blk := block{first: order.Uint32(e), entries: order.Uint32(e[4:]), offset: int64(order.Uint64(e[8:]))}
		end := blk.offset
		for k := range parts {
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

// entries counts those that have content.
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

// openSealed opens a sealed segment for reading.
func openSealed(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
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
