package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math/bits"
	"os"
)

// The grams of a sealed segment say which of its blocks cannot contain a text. A gram is four
// bytes of folded text (storage.SearchTexts), and each block has the set of its grams, hashed to
// bits. The file has the sets of all blocks side by side: a row has one bit for each block, and a
// search reads the rows of a few grams in place of whole sets.
//
//	head    magic (7), version (1), size (8) and checksum (4) of the segment's index, number of
//	        blocks (4), for each part the power of two that is the number of its rows (1), size
//	        of the references (4)
//	references for each block that shares bytes with others: its number (4), and a row of these
//	        blocks. A block has the grams of these blocks, too
//	checksum of all so far (4, CRC-32C)
//	rows    for each part, in pages of gramsPage bytes at most, each with its checksum after it
//
// All of it can be made again from the segment, so that nothing waits for it: a search reads all
// blocks of a segment without grams.
const (
	gramsMagic    = "weir.gr1"
	gramsHead     = len(gramsMagic) + 8 + 4 + 4 + len(parts) + 4
	gramsPage     = 4 << 10
	gramSize      = 4
	maxRowBits    = 17
	maxGramsShare = 1.0 / 4 // of the bits of a row, on average
)

var errGrams = errors.New("is damaged: it does not match its checksum")

// bitSet is a set of numbers.
type bitSet []uint64

func newBitSet(n int) bitSet { return make(bitSet, (n+63)/64) }

func (s bitSet) set(i int)      { s[i/64] |= 1 << (i % 64) }
func (s bitSet) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

// within yields the numbers from first on, below end.
func (s bitSet) within(first, end int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := first / 64; at*64 < end; at++ {
			for w := s[at]; w != 0; w &= w - 1 {
				i := at*64 + bits.TrailingZeros64(w)
				if i >= end || i >= first && !yield(i) {
					return
				}
			}
		}
	}
}

func (s bitSet) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s bitSet) empty() bool { return s.count() == 0 }

func (s bitSet) setAll() {
	for i := range s {
		s[i] = ^uint64(0)
	}
}

func (s bitSet) and(o bitSet) {
	for i := range s {
		s[i] &= o[i]
	}
}

func (s bitSet) or(o bitSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s bitSet) intersects(o bitSet) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// gramRow is the row of a gram in a set of 2^maxRowBits rows. A smaller set takes the lowest bits.
func gramRow(gram uint32) uint32 {
	return uint32(uint64(gram) * 0x9E3779B97F4A7C15 >> (64 - maxRowBits)) // Fibonacci hashing
}

// addGrams adds the grams of a text to a set of 2^maxRowBits rows.
func (s bitSet) addGrams(text []byte) {
	if len(text) < gramSize {
		return
	}
	gram := uint32(text[0])<<16 | uint32(text[1])<<8 | uint32(text[2])
	for _, c := range text[gramSize-1:] {
		gram = gram<<8 | uint32(c)
		row := gramRow(gram)
		s[row/64] |= 1 << (row % 64)
	}
}

// maxSearchedRows bounds the rows that a search reads for one text: more of them rule out few more
// blocks.
const maxSearchedRows = 16

// searchedRows returns rows of grams that a text has, none if it is too short.
func searchedRows(text string) (rows []uint32) {
	n := len(text) - gramSize + 1
	step := max(1, n/maxSearchedRows)
	for i := 0; i < n; i += step {
		rows = append(rows, gramRow(uint32(text[i])<<24|uint32(text[i+1])<<16|uint32(text[i+2])<<8|uint32(text[i+3])))
	}
	return rows
}

// blockGrams are the grams of a block, by part, in sets of 2^maxRowBits rows.
type blockGrams struct {
	sets [len(parts)]bitSet
	// shares are the blocks that have bytes of requests of this block, nil if there are none.
	shares bitSet
}

// writeGrams writes the grams of the blocks of a segment. It changes the sets.
func writeGrams(path string, of *sealedIndex, blocks []blockGrams) error {
	b := append([]byte(nil), gramsMagic...)
	b = order.AppendUint32(order.AppendUint64(b, uint64(of.size)), of.sum)
	b = order.AppendUint32(b, uint32(len(blocks)))
	var rowBits [len(parts)]int
	for part := range parts {
		rowBits[part] = foldSets(blocks, part)
		b = append(b, byte(rowBits[part]))
	}
	var references []byte
	for i, block := range blocks {
		if block.shares != nil {
			references = order.AppendUint32(references, uint32(i))
			references = append(references, block.shares.bytes(len(blocks))...)
		}
	}
	b = append(order.AppendUint32(b, uint32(len(references))), references...)
	b = order.AppendUint32(b, crc32.Checksum(b, castagnoli))
	for part := range parts {
		b = appendRows(b, blocks, part, 1<<rowBits[part])
	}
	if err := os.WriteFile(path+temporarySuffix, b, 0o600); err != nil {
		return errors.Join(err, os.Remove(path+temporarySuffix))
	}
	return Rename(path+temporarySuffix, path)
}

// bytes are the bits of numbers below n.
func (s bitSet) bytes(n int) []byte {
	var b []byte
	for _, w := range s {
		b = order.AppendUint64(b, w)
	}
	return append(b, 0)[:rowBytes(n)]
}

// rowBytes is the size of a row, and rowsOfPage the number of rows in a page.
func rowBytes(blocks int) int   { return max(1, (blocks+7)/8) }
func rowsOfPage(blocks int) int { return max(1, gramsPage/rowBytes(blocks)) }

// foldSets halves the sets of a part until a smaller size would have too many bits, and returns the
// power of two that is their size.
func foldSets(blocks []blockGrams, part int) (rowBits int) {
	rowBits = maxRowBits
	for ; rowBits > 6; rowBits-- {
		half := 1 << (rowBits - 1) / 64
		count := 0
		for _, b := range blocks {
			s := b.sets[part]
			for i := range half {
				count += bits.OnesCount64(s[i] | s[half+i])
			}
		}
		if float64(count) > maxGramsShare*float64(len(blocks)*half*64) {
			break
		}
		for i := range blocks {
			s := blocks[i].sets[part]
			s[:half].or(s[half:])
			blocks[i].sets[part] = s[:half]
		}
	}
	return rowBits
}

// appendRows appends the rows of a part in pages.
func appendRows(b []byte, blocks []blockGrams, part, rows int) []byte {
	width, perPage := rowBytes(len(blocks)), rowsOfPage(len(blocks))
	for first := 0; first < rows; first += perPage {
		start, n := len(b), min(perPage, rows-first)
		b = append(b, make([]byte, n*width)...)
		page := b[start:]
		for i, block := range blocks {
			for row := range block.sets[part].within(first, first+n) {
				page[(row-first)*width+i/8] |= 1 << (i % 8)
			}
		}
		b = order.AppendUint32(b, crc32.Checksum(page, castagnoli))
	}
	return b
}

// grams reads the grams of a segment.
type grams struct {
	io.ReaderAt
	blocks  int
	rowBits [len(parts)]int
	starts  [len(parts)]int64 // of the rows
	shares  []blockShares
	page    []byte
}

// blockShares are the blocks with which a block shares bytes.
type blockShares struct {
	block int
	with  bitSet
}

// readGrams reads the head of a file of grams.
func readGrams(r io.ReaderAt, of *sealedIndex) (*grams, error) {
	head := make([]byte, gramsHead)
	if err := readAt(r, head, 0); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(head, []byte(gramsMagic)) {
		return nil, errGrams
	}
	at := len(gramsMagic)
	size, sum := int64(order.Uint64(head[at:])), order.Uint32(head[at+8:])
	if size != of.size || sum != of.sum {
		return nil, fmt.Errorf("is of another segment: %w", errGrams)
	}
	g := &grams{ReaderAt: r, blocks: len(of.blocks)}
	end := int64(gramsHead) + int64(order.Uint32(head[gramsHead-4:]))
	width := rowBytes(g.blocks)
	if int(order.Uint32(head[at+12:])) != g.blocks || end-int64(gramsHead) > int64(g.blocks*(4+width)) {
		return nil, errGrams
	}
	all := make([]byte, end+4)
	if err := readAt(r, all, 0); err != nil {
		return nil, err
	}
	if crc32.Checksum(all[:end], castagnoli) != order.Uint32(all[end:]) {
		return nil, errGrams
	}
	for references := all[gramsHead:end]; len(references) >= 4+width; references = references[4+width:] {
		g.shares = append(g.shares, blockShares{int(order.Uint32(references)), bitSetOf(references[4:][:width])})
	}
	start := end + 4
	for part := range parts {
		g.rowBits[part], g.starts[part] = int(head[at+16+part]), start
		if g.rowBits[part] > maxRowBits {
			return nil, errGrams
		}
		rows, perPage := 1<<g.rowBits[part], rowsOfPage(g.blocks)
		start += int64(rows*width + (rows+perPage-1)/perPage*4)
	}
	return g, nil
}

func bitSetOf(b []byte) bitSet {
	s := newBitSet(8 * len(b))
	for i, c := range b {
		s[i/8] |= uint64(c) << (i % 8 * 8)
	}
	return s
}

// row returns the blocks that may have the gram of a row.
func (g *grams) row(part int, row uint32) (bitSet, error) {
	rows, width, perPage := 1<<g.rowBits[part], rowBytes(g.blocks), rowsOfPage(g.blocks)
	at := int(row) & (rows - 1)
	first := at / perPage * perPage
	n := min(perPage, rows-first) * width
	if cap(g.page) < n+4 {
		g.page = make([]byte, n+4)
	}
	page := g.page[:n+4]
	if err := readAt(g, page, g.starts[part]+int64(first/perPage)*int64(perPage*width+4)); err != nil {
		return nil, err
	}
	if crc32.Checksum(page[:n], castagnoli) != order.Uint32(page[n:]) {
		return nil, errGrams
	}
	found := bitSetOf(page[(at-first)*width:][:width])
	return g.withShares(part, found), nil
}

// withShares adds to the blocks with a gram those that share bytes with them.
func (g *grams) withShares(part int, found bitSet) bitSet {
	if part != requestFrame || len(g.shares) == 0 || found.empty() {
		return found
	}
	all := append(bitSet(nil), found...)
	for _, s := range g.shares {
		if s.with.intersects(found) {
			all.set(s.block)
		}
	}
	return all
}
