package journal

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"slices"
)

const (
	// cacheBytes bounds the decoded frames that a reader keeps: requests that share bytes
	// come back to the same blocks.
	cacheBytes = 8 << 20
	// inOrderBytes is the bound for who reads all blocks in their order: those of a conversation
	// stand together.
	inOrderBytes = 2 << 20
)

// decodedFrame is a frame of a sealed segment as read.
type decodedFrame struct {
	block, part int
	items
	used int // the last read that needed it
}

// brokenFrame is a damaged frame: the number of its block, and the index in parts.
type brokenFrame struct{ block, part int }

// open opens a sealed segment in place of the segment that is open.
func (r *contentReader) open(segment uint64) error {
	r.segment = segment
	for {
		r.rewrites = r.j.archive.rewrites.Load()
		if err := r.openFile(segmentPath(r.j.dir, segment, sealedSuffix)); err != nil {
			return err
		}
		listed, _ := r.j.archive.segment(segment)
		if listed.isOf(r.index) {
			return nil
		}
		r.Close()
		if r.rewrites == r.j.archive.rewrites.Load() { // else the file was replaced meanwhile
			return errOther
		}
	}
}

// openFile is open for the file of a sealed segment.
func (r *contentReader) openFile(path string) error {
	r.Close()
	f, size, err := openSealed(path)
	if err != nil {
		return err
	}
	index, err := readIndex(f, size)
	if err != nil {
		f.Close()
		return err
	}
	r.file, r.index = f, index
	return nil
}

// Close implements storage.ContentReader.
func (r *contentReader) Close() {
	if r.file != nil {
		r.file.Close()
	}
	r.file = nil
	for _, f := range r.frames {
		f.block = noFrame
	}
}

// noFrame is the block of a frame that has free memory.
const noFrame = -1

// readSealed reads the content of an entry of the open segment, and tells whether there
// is any.
func (r *contentReader) readSealed(ordinal uint32) (found bool, err error) {
	block, there := r.index.at(ordinal)
	if !there {
		return false, nil
	}
	r.reads++
	r.broken = brokenFrame{block: block}
	for i, p := range parts {
		if r.parts&p.is == 0 {
			continue
		}
		f, err := r.frame(block, i)
		if err != nil {
			return false, err
		}
		item := f.find(ordinal)
		if item == nil {
			continue
		}
		found = true
		if err := contentWire.parse(item, &r.content); err != nil {
			return false, err
		}
		if i != requestFrame {
			continue
		}
		r.layout = layout{}
		if err := layoutWire.parse(item, &r.layout); err != nil {
			return false, err
		}
		if r.layout.extents == nil {
			continue
		}
		if r.request, err = assemble(r.request[:0], r.layout.extents, r.content.Request.Data, r.shared); err != nil {
			return false, err
		}
		r.content.Request.Data = r.request
	}
	if d := r.content.Unassembled; d != "" {
		r.content.Unassembled = ""
		r.assemble(d)
	}
	return found, nil
}

// shared appends what stands at an address.
func (r *contentReader) shared(b []byte, at, size uint64) ([]byte, error) {
	block, offset := int(at>>32), at&(1<<32-1)
	if block >= len(r.index.blocks) {
		return b, errDamaged
	}
	f, err := r.frame(block, requestFrame)
	if err != nil {
		return b, err
	}
	if n := uint64(len(f.data)); offset > n || size > n-offset {
		return b, errDamaged
	}
	return append(b, f.data[offset:offset+size]...), nil
}

// frame returns a frame. Another read may replace it.
func (r *contentReader) frame(block, part int) (*decodedFrame, error) {
	var oldest *decodedFrame
	size := 0
	for _, f := range r.frames {
		if f.block == block && f.part == part {
			f.used = r.reads
			return f, nil
		}
		size += cap(f.data)
		if f.used < r.reads && (oldest == nil || f.used < oldest.used) {
			oldest = f
		}
	}
	if oldest == nil || oldest.block != noFrame && size < cmp.Or(r.cacheBytes, cacheBytes) {
		oldest = new(decodedFrame)
		r.frames = append(r.frames, oldest)
	}
	oldest.block = noFrame
	if err := r.decode(oldest, block, part); err != nil {
		r.broken = brokenFrame{block, part}
		return nil, err
	}
	oldest.block, oldest.part, oldest.used = block, part, r.reads
	return oldest, nil
}

// decode reads a frame from the file.
func (r *contentReader) decode(f *decodedFrame, block, part int) error {
	b := &r.index.blocks[block]
	f.data, f.stands = f.data[:0], f.stands[:0]
	at := b.offset
	for i := range part {
		at += int64(b.frames[i].length)
	}
	is := b.frames[part]
	if is.length == 0 {
		return nil
	}
	r.compressed = slices.Grow(r.compressed[:0], int(is.length))[:is.length]
	if err := readAt(r.file, r.compressed, at); err != nil {
		return err
	}
	if crc32.Checksum(r.compressed, castagnoli) != is.sum {
		return errDamaged
	}
	data, err := decompress(f.data[:cap(f.data)], r.compressed)
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	f.data = data
	return f.locate()
}

// items are what stands in a frame.
type items struct {
	data   []byte
	stands []item
}

// item is where the part of an entry stands, after its head.
type item struct{ ordinal, start, end uint32 }

// locate finds the items of data.
func (x *items) locate() error {
	for at := 0; at < len(x.data); {
		if len(x.data)-at < itemHead {
			return errDamaged
		}
		ordinal, n := order.Uint32(x.data[at:]), int64(order.Uint32(x.data[at+4:]))
		at += itemHead
		if n > int64(len(x.data)-at) {
			return errDamaged
		}
		x.stands = append(x.stands, item{ordinal, uint32(at), uint32(at + int(n))})
		at += int(n)
	}
	slices.SortFunc(x.stands, func(a, b item) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return nil
}

// find returns the part of an entry, nil if the entry has no such part.
func (x *items) find(ordinal uint32) []byte {
	i, found := slices.BinarySearchFunc(x.stands, ordinal, func(p item, o uint32) int { return cmp.Compare(p.ordinal, o) })
	if !found {
		return nil
	}
	return x.data[x.stands[i].start:x.stands[i].end]
}

// countLost counts what a read has found damaged, unless it was found before: the entries
// of a block, and the entries of other blocks that share bytes with the block.
func (r *contentReader) countLost(cause error) {
	broken := r.broken
	first := r.index.blocks[broken.block].first
	damaged := r.j.archive.damagedBlocks(r.segment)
	if slices.Contains(damaged, first) {
		return
	}
	_, err := r.frame(broken.block, requestFrame)
	lost := int64(0)
	for ordinal := range uint32(len(r.index.of) / 4) {
		block, there := r.index.at(ordinal)
		if !there || slices.Contains(damaged, r.index.blocks[block].first) {
			continue
		}
		if block == broken.block || err != nil && r.needs(ordinal, block, broken.block, damaged) {
			lost++
		}
	}
	r.j.archive.damaged(r.segment, &r.index.blocks[broken.block], lost, cause)
}

// needs reports whether an entry shares bytes with a block, and with no block that is known
// to be damaged.
func (r *contentReader) needs(ordinal uint32, in, block int, damaged []uint32) (found bool) {
	r.reads++
	f, err := r.frame(in, requestFrame)
	if err != nil {
		return false // the entry is lost with its own block
	}
	var l layout
	if layoutWire.parse(f.find(ordinal), &l) != nil || l.extents == nil {
		return false
	}
	for x, err := readExtents(l.extents); err == nil && len(x.rest) > 0; {
		var e extent
		if e, err = x.next(); err != nil || e.shared == 0 {
			continue
		}
		of := int(e.at >> 32)
		if of >= len(r.index.blocks) || slices.Contains(damaged, r.index.blocks[of].first) {
			return false
		}
		found = found || of == block
	}
	return found
}
