package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"

	"github.com/klauspost/compress/zstd"
)

// A sealed segment is blocks, their index, and a trailer. A block is a zstd
// frame of the content of some entries, each behind its ordinal and length.
//
//	index   for each block: first ordinal (4), offset (8), length (4),
//	        length when decompressed (4), checksum (4, CRC-32C of the frame)
//	trailer number of blocks (4), when the newest record was created (8),
//	        checksum of the index and the trailer so far (4), magic (8)
const (
	sealedMagic = "weir.blk"
	indexSize   = 4 + 8 + 4 + 4 + 4
	trailerSize = 4 + 8 + 4 + len(sealedMagic)
	itemHead    = 4 + 4

	// A block ends with the entry that brings it to either.
	blockEntries = 32
	blockBytes   = 256 << 10
)

// block is one line of the index.
type block struct {
	first  uint32
	offset int64
	length uint32
	raw    uint32
	sum    uint32
}

var errSealed = errors.New("is damaged: its index does not match its checksum")

// sealedWriter writes sealed segments, one after the other.
type sealedWriter struct {
	w       *bufio.Writer
	encoder *zstd.Encoder
	offset  int64
	index   []block
	entries int
	raw     []byte // of the block that grows
	frame   []byte
}

// reset begins a segment, of which nothing is written yet.
func (w *sealedWriter) reset(to io.Writer) error {
	if w.encoder == nil {
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(512<<10), zstd.WithEncoderCRC(false))
		if err != nil {
			return err
		}
		w.encoder, w.w = encoder, bufio.NewWriter(nil)
	}
	w.w.Reset(to)
	w.offset, w.index, w.entries, w.raw = 0, w.index[:0], 0, w.raw[:0]
	return nil
}

// add appends the content of the entry with this ordinal, which grows.
func (w *sealedWriter) add(ordinal uint32, c *content) error {
	if w.entries == 0 {
		w.index = append(w.index, block{first: ordinal, offset: w.offset})
	}
	start := len(w.raw)
	w.raw = append(order.AppendUint32(w.raw, ordinal), 0, 0, 0, 0)
	w.raw = contentWire.append(w.raw, c)
	order.PutUint32(w.raw[start+4:], uint32(len(w.raw)-start-itemHead))
	if w.entries++; w.entries >= blockEntries || len(w.raw) >= blockBytes {
		return w.flush()
	}
	return nil
}

func (w *sealedWriter) flush() error {
	if w.entries == 0 {
		return nil
	}
	w.frame = w.encoder.EncodeAll(w.raw, w.frame[:0])
	b := &w.index[len(w.index)-1]
	b.length, b.raw, b.sum = uint32(len(w.frame)), uint32(len(w.raw)), crc32.Checksum(w.frame, castagnoli)
	w.offset += int64(len(w.frame))
	w.entries, w.raw = 0, w.raw[:0]
	_, err := w.w.Write(w.frame)
	return err
}

// finish writes the index. newest is when the newest record was created.
func (w *sealedWriter) finish(newest moment) error {
	if err := w.flush(); err != nil {
		return err
	}
	b := make([]byte, 0, len(w.index)*indexSize+trailerSize)
	for _, e := range w.index {
		b = order.AppendUint64(order.AppendUint32(b, e.first), uint64(e.offset))
		b = order.AppendUint32(order.AppendUint32(order.AppendUint32(b, e.length), e.raw), e.sum)
	}
	b = order.AppendUint64(order.AppendUint32(b, uint32(len(w.index))), uint64(newest))
	b = append(order.AppendUint32(b, crc32.Checksum(b, castagnoli)), sealedMagic...)
	if _, err := w.w.Write(b); err != nil {
		return err
	}
	return w.w.Flush()
}

// readIndex reads the index of a sealed segment of this size.
func readIndex(r io.ReaderAt, size int64) (index []block, newest moment, err error) {
	if size < int64(trailerSize) {
		return nil, 0, errSealed
	}
	var trailer [trailerSize]byte
	if _, err := r.ReadAt(trailer[:], size-int64(trailerSize)); err != nil {
		return nil, 0, err
	}
	n := int64(order.Uint32(trailer[:]))
	if string(trailer[16:]) != sealedMagic || n*indexSize > size-int64(trailerSize) {
		return nil, 0, errSealed
	}
	b := make([]byte, n*indexSize+12)
	if _, err := r.ReadAt(b, size-int64(trailerSize)-n*indexSize); err != nil {
		return nil, 0, err
	}
	if crc32.Checksum(b, castagnoli) != order.Uint32(trailer[12:]) {
		return nil, 0, errSealed
	}
	index = make([]block, n)
	for i := range index {
		e := b[i*indexSize:]
		index[i] = block{
			first: order.Uint32(e), offset: int64(order.Uint64(e[4:])),
			length: order.Uint32(e[12:]), raw: order.Uint32(e[16:]), sum: order.Uint32(e[20:]),
		}
	}
	return index, moment(order.Uint64(trailer[4:])), nil
}

// readBlock returns the block that an entry is in, decompressed, and the
// ordinal from which on entries are in the next one. Before the first block it
// is empty.
func readBlock(r io.ReaderAt, size int64, ordinal uint32, decoder *zstd.Decoder) (data []byte, first, next uint32, err error) {
	index, _, err := readIndex(r, size)
	if err != nil {
		return nil, 0, 0, err
	}
	i := sort.Search(len(index), func(i int) bool { return index[i].first > ordinal })
	next = ^uint32(0)
	if i < len(index) {
		next = index[i].first
	}
	if i == 0 {
		return nil, 0, next, nil
	}
	b := index[i-1]
	if b.offset < 0 || b.offset+int64(b.length) > size {
		return nil, 0, 0, errSealed
	}
	frame := make([]byte, b.length)
	if _, err := r.ReadAt(frame, b.offset); err != nil {
		return nil, 0, 0, err
	}
	if crc32.Checksum(frame, castagnoli) != b.sum {
		return nil, 0, 0, errDamaged
	}
	data, err = decoder.DecodeAll(frame, make([]byte, 0, b.raw))
	return data, b.first, next, err
}

// findContent returns the content of an entry in a decompressed block, nil if
// it has none.
func findContent(data []byte, ordinal uint32) (*content, error) {
	for len(data) >= itemHead {
		at, n := order.Uint32(data), int64(order.Uint32(data[4:]))
		if data = data[itemHead:]; n > int64(len(data)) {
			return nil, errDamaged
		}
		if at == ordinal {
			c := new(content)
			// The block is shared and soon forgotten: what is found is not.
			return c, contentWire.parse(bytes.Clone(data[:n]), c)
		}
		data = data[n:]
	}
	return nil, nil
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
