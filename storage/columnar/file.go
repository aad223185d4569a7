package columnar

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A file of columns has the rows of one chunk. It has a block for each column, in as few
// bytes a value as possible. Then follows the index of the blocks, in JSON, and the length
// and the sum of the index. The file never changes.

// fileIndex says what a file has.
type fileIndex struct {
	// Format are the names of the columns, and what else there is.
	Format string `json:"format"`
	Rows   int    `json:"rows"`
	// After and Last bound the keys.
	After int64 `json:"after"`
	Last  int64 `json:"last"`
	// Columns are by the number of the column; N and Org are the keys and the
	// organisations, and Places and Values are what is wide. Of the keys, Sequence has the lowest
	// bits, unless the file is of an earlier version.
	Columns  [columnCount]block `json:"columns"`
	N        block              `json:"n"`
	Sequence block              `json:"sequence"`
	Org      block              `json:"org"`
	Places   block              `json:"places"`
	Values   block              `json:"values"`
	// Properties are by their names. Others is true if there are more.
	Properties map[string]block `json:"properties"`
	Others     bool             `json:"others"`
	// Scores are by the ids of their names, null if there are too many.
	Scores map[uint32]scoreBlocks `json:"scores"`
}

// scoreBlocks has the rows with a score, and the bits of the values.
type scoreBlocks struct {
	Rows   block `json:"rows"`
	Values block `json:"values"`
}

// block is where values are, each as what it is more than Base, or as its place among a few.
type block struct {
	Offset int64  `json:"offset"`
	Count  int    `json:"count"`
	Few    int    `json:"few,omitempty"` // how many different values come first, in 8 bytes each; 0 if there are many
	Width  int    `json:"width"`         // bytes of a value: 0, 1, 2, 4 or 8
	Base   int64  `json:"base"`          // the smallest value
	Max    int64  `json:"max"`           // the largest value
	Sum    uint32 `json:"sum"`
}

var (
	fileFormat = formerFormat + " sequence few"
	// formerFormat is that of files that have the keys in one block.
	formerFormat = strings.Join(Columns[:], " ") + " properties scores max"
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

// trailerBytes are the length and the sum of the index.
const trailerBytes = 8

var errDamaged = errors.New("the file of columns is damaged")

// fileWriter writes blocks one after the other.
type fileWriter struct {
	file   *os.File
	offset int64
	buffer []byte
	err    error
}

func (w *fileWriter) write(p []byte) {
	if w.err == nil {
		_, w.err = w.file.Write(p)
		w.offset += int64(len(p))
	}
}

// writeBlock writes values as a block.
func writeBlock[T uint32 | int64](w *fileWriter, values []T) block {
	b := block{Offset: w.offset, Count: len(values)}
	if len(values) == 0 {
		return b
	}
	least := slices.Min(values)
	b.Base, b.Max = int64(least), int64(slices.Max(values))
	switch span := uint64(b.Max) - uint64(b.Base); {
	case span == 0:
	case span <= math.MaxUint8:
		b.Width = 1
	case span <= math.MaxUint16:
		b.Width = 2
	case span <= math.MaxUint32:
		b.Width = 4
	default:
		b.Width = 8
	}
	p := w.buffer[:0]
	few := values
	if b.Width > 1 {
		few = fewOf(values)
	}
	if len(few)*wideBytes+len(values) < len(values)*b.Width {
		b.Few, b.Width = len(few), 1
		for _, v := range few {
			p = binary.LittleEndian.AppendUint64(p, uint64(v))
		}
		for _, v := range values {
			place, _ := slices.BinarySearch(few, v)
			p = append(p, byte(place))
		}
	} else {
		p = appendValues(p, values, least, b.Width)
	}
	w.buffer = p
	b.Sum = crc32.Checksum(p, castagnoli)
	w.write(p)
	return b
}

// appendValues appends what each value is more than the least one.
func appendValues[T uint32 | int64](p []byte, values []T, least T, width int) []byte {
	for _, v := range values {
		switch more := uint64(v) - uint64(least); width {
		case 1:
			p = append(p, byte(more))
		case 2:
			p = binary.LittleEndian.AppendUint16(p, uint16(more))
		case 4:
			p = binary.LittleEndian.AppendUint32(p, uint32(more))
		case 8:
			p = binary.LittleEndian.AppendUint64(p, more)
		}
	}
	return p
}

// wideBytes are those of one of a few values.
const wideBytes = 8

// fewOf returns the different values in their order. If a byte cannot tell them apart, it returns all
// values.
func fewOf[T uint32 | int64](values []T) []T {
	seen := make(map[T]struct{})
	for _, v := range values {
		if seen[v] = struct{}{}; len(seen) > 1<<8 {
			return values
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Write writes a chunk to a new file, on the disk when it returns.
func Write(path string, c *Chunk, after, last int64) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	w := &fileWriter{file: file}
	milliseconds, sequence := make([]int64, len(c.n)), make([]uint32, len(c.n))
	for i, n := range c.n {
		milliseconds[i], sequence[i] = n>>sequenceBits, uint32(n&Sequence)
	}
	index := fileIndex{
		Format: fileFormat, Rows: len(c.n), After: after, Last: last,
		N: writeBlock(w, milliseconds), Sequence: writeBlock(w, sequence), Org: writeBlock(w, c.org),
	}
	for i, column := range c.columns {
		index.Columns[i] = writeBlock(w, column)
	}
	places, values := make([]int64, len(c.wide)), make([]int64, len(c.wide))
	for i, v := range c.wide {
		places[i], values[i] = int64(v.place), v.value
	}
	index.Places, index.Values = writeBlock(w, places), writeBlock(w, values)
	index.Properties, index.Others = make(map[string]block), c.others
	for name, column := range c.properties {
		index.Properties[name] = writeBlock(w, column)
	}
	if c.scores != nil {
		index.Scores = make(map[uint32]scoreBlocks)
	}
	for name, column := range c.scores {
		bits := make([]int64, len(column.values))
		for i, v := range column.values {
			bits[i] = int64(math.Float64bits(v))
		}
		index.Scores[name] = scoreBlocks{writeBlock(w, column.rows), writeBlock(w, bits)}
	}
	w.writeIndex(&index)
	if w.err != nil {
		return w.err
	}
	return file.Sync()
}

// writeIndex writes what ends the file.
func (w *fileWriter) writeIndex(index *fileIndex) {
	description, err := json.Marshal(index)
	if w.err = errors.Join(w.err, err); w.err != nil {
		return
	}
	w.write(description)
	trailer := binary.LittleEndian.AppendUint32(nil, uint32(len(description)))
	w.write(binary.LittleEndian.AppendUint32(trailer, crc32.Checksum(description, castagnoli)))
}

// fileReader reads chunks from files, one after the other into the same memory.
type fileReader struct {
	chunk  Chunk
	raw    []byte
	narrow [columnCount][]uint32
	// sequence are the lowest bits of the keys.
	sequence []uint32
	// properties are the columns of properties of the file that was read before.
	properties map[string][]uint32
}

// needs says what is read of a file.
type needs struct {
	columns    [columnCount]bool
	properties []string
	// scores are the ids of the names of the scores that are read, unless allScores is true.
	scores    []uint32
	allScores bool
	// ranges are what a row must have. A file whose columns have no such value is not read.
	ranges []columnRange
}

// read reads what is needed of a region's file, no row if none can have what a row must have. An
// error means that the file is missing or damaged.
func (r *fileReader) read(e *Engine, of Region, needs *needs) (*Chunk, error) {
	path := filepath.Join(e.Dir, of.File)
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	index, known := e.memory.get(of.File, question{}).(*fileIndex)
	if !known {
		if index, err = readIndex(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		e.memory.put(of.File, question{}, index, indexBytes)
	}
	if index.Format != fileFormat && index.Format != formerFormat || index.Last != of.Last || index.After > of.After || index.Rows == 0 {
		return nil, fmt.Errorf("%s: %w", path, errDamaged)
	}
	for _, x := range needs.ranges {
		if !x.mayBeIn(index.Columns[x.column]) {
			return new(Chunk), nil
		}
	}
	old := r.chunk
	c := Chunk{sorted: true, live: index.Rows}
	c.n = readBlock(r, file, index.N, old.n, &err)
	if index.Format == fileFormat {
		r.sequence = readBlock(r, file, index.Sequence, r.sequence, &err)
		for i, sequence := range r.sequence {
			c.n[i] = c.n[i]<<sequenceBits | int64(sequence)
		}
	}
	c.org = readBlock(r, file, index.Org, old.org, &err)
	for i, b := range index.Columns {
		if needs.columns[i] && b.Count > 0 {
			r.narrow[i] = readBlock(r, file, b, r.narrow[i], &err)
			c.columns[i] = r.narrow[i]
		}
	}
	c.properties, c.others = make(map[string][]uint32), index.Others
	if r.properties == nil {
		r.properties = make(map[string][]uint32)
	}
	for _, name := range needs.properties {
		if b, ok := index.Properties[name]; ok && c.properties[name] == nil {
			r.properties[name] = readBlock(r, file, b, r.properties[name], &err)
			c.properties[name] = r.properties[name]
		}
	}
	c.scores = r.readScores(file, index, needs, &err)
	places, values := readBlock[int64](r, file, index.Places, nil, &err), readBlock[int64](r, file, index.Values, nil, &err)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, place := range places {
		c.wide = append(c.wide, wideValue{int(place), values[i]})
	}
	c.low, c.high = c.n[0], c.n[len(c.n)-1]
	r.chunk = c
	return &r.chunk, nil
}

// readScores reads the columns of the scores that a query needs, nil if the file has none. It sets err as
// readBlock does.
func (r *fileReader) readScores(file *os.File, index *fileIndex, needs *needs, err *error) scoresByName {
	if index.Scores == nil {
		return nil
	}
	scores := make(scoresByName)
	for name, b := range index.Scores {
		if !needs.allScores && !slices.Contains(needs.scores, name) {
			continue
		}
		column := &scoreColumn{rows: readBlock[uint32](r, file, b.Rows, nil, err)}
		for _, bits := range readBlock[int64](r, file, b.Values, nil, err) {
			column.values = append(column.values, math.Float64frombits(uint64(bits)))
		}
		scores[name] = column
	}
	return scores
}

// indexBytes are about what an index takes in memory.
const indexBytes = 4 << 10

// readIndex reads what the file says that it has.
func readIndex(file *os.File) (*fileIndex, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < trailerBytes {
		return nil, errDamaged
	}
	var trailer [trailerBytes]byte
	if _, err := file.ReadAt(trailer[:], info.Size()-trailerBytes); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(trailer[:]))
	if length > info.Size()-trailerBytes {
		return nil, errDamaged
	}
	description := make([]byte, length)
	if _, err := file.ReadAt(description, info.Size()-trailerBytes-length); err != nil {
		return nil, err
	}
	if crc32.Checksum(description, castagnoli) != binary.LittleEndian.Uint32(trailer[4:]) {
		return nil, errDamaged
	}
	index := new(fileIndex)
	return index, json.Unmarshal(description, index)
}

// readBlock reads a block into room, which grows where it must.
func readBlock[T uint32 | int64](r *fileReader, file io.ReaderAt, b block, buffer []T, err *error) []T {
	if *err != nil {
		return nil
	}
	size := b.Few*wideBytes + b.Count*b.Width
	r.raw = slices.Grow(r.raw[:0], size)[:size]
	if _, *err = file.ReadAt(r.raw, b.Offset); *err != nil {
		return nil
	}
	if crc32.Checksum(r.raw, castagnoli) != b.Sum {
		*err = errDamaged
		return nil
	}
	values, base, raw := slices.Grow(buffer[:0], b.Count)[:b.Count], T(b.Base), r.raw
	if b.Few > 0 {
		var few [1 << 8]T
		for i := range b.Few {
			few[i] = T(binary.LittleEndian.Uint64(raw[i*wideBytes:]))
		}
		for i, place := range raw[b.Few*wideBytes:] {
			values[i] = few[place]
		}
		return values
	}
	switch b.Width {
	case 0:
		for i := range values {
			values[i] = base
		}
	case 1:
		for i, v := range raw {
			values[i] = base + T(v)
		}
	case 2:
		for i := range values {
			values[i] = base + T(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case 4:
		for i := range values {
			values[i] = base + T(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case 8:
		for i := range values {
			values[i] = base + T(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	}
	return values
}
