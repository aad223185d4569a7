package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Kind is what a column has.
type Kind int

// The kinds of columns.
const (
	Text      Kind = iota // in UTF-8
	JSON                  // text
	Integer               // of 64 bits
	Decimal               // billionths, with 18 digits
	Double                // of 64 bits
	Boolean               //
	Timestamp             // milliseconds since 1970 in UTC
)

// Column is a column of a table. Its values may be null.
type Column struct {
	Name string
	Kind Kind
}

// The constants of the format.
// https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
const (
	magic            = "PAR1"
	optional         = 1
	plainEncoding    = 0
	rleEncoding      = 3
	zstdCodec        = 6
	dataPage         = 0
	decimalPrecision = 18
	decimalScale     = 9
)

// physical are the types of values, and converted what they mean, -1 for what they are.
var physical, converted = [...]int32{Text: 6, JSON: 6, Integer: 2, Decimal: 2, Double: 5, Boolean: 0, Timestamp: 2},
	[...]int32{Text: 0, JSON: 19, Integer: -1, Decimal: 5, Double: -1, Boolean: -1, Timestamp: 9}

// A group of rows ends at the first of these bounds.
const (
	maxGroupBytes = 16 << 20
	maxGroupRows  = 100_000
)

// Writer writes a file. Its memory is that of one group of rows, and some bytes for each group and
// column before.
type Writer struct {
	w       io.Writer
	written int64
	columns []*columnBuffer
	rows    int // of the group
	total   int64
	groups  []rowGroup
	zstd    *zstd.Encoder
	// page and compressed are the buffers of the last page.
	page, compressed []byte
}

// columnBuffer has the values of a column in a group.
type columnBuffer struct {
	Column
	values []byte
	// levels says for each row whether it has a value.
	levels []bool
	bits   int // of values of a Boolean
}

type rowGroup struct {
	rows   int64
	chunks []chunk
}

// chunk is where a column of a group is.
type chunk struct{ offset, size, uncompressed int64 }

// NewWriter begins a file.
func NewWriter(w io.Writer, columns []Column) (*Writer, error) {
	if len(columns) == 0 {
		return nil, errors.New("a table has at least one column")
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	p := &Writer{zstd: encoder}
	for _, c := range columns {
		p.columns = append(p.columns, &columnBuffer{Column: c})
	}
	return p, p.Reset(w)
}

// Reset begins another file with the same columns, in the memory of the one before, which is closed.
func (p *Writer) Reset(w io.Writer) error {
	p.w, p.written, p.total, p.groups = w, 0, 0, nil
	return p.write([]byte(magic))
}

func (p *Writer) write(b []byte) error {
	n, err := p.w.Write(b)
	p.written += int64(n)
	return err
}

// set notes that the row has a value in a column.
func (p *Writer) set(column int) *columnBuffer {
	c := p.columns[column]
	if len(c.levels) != p.rows {
		panic(fmt.Sprintf("parquet: %s has two values in a row", c.Name))
	}
	c.levels = append(c.levels, true)
	return c
}

// SetText sets the value of a Text or JSON column in the row.
func (p *Writer) SetText(column int, s string) {
	c := p.set(column)
	c.values = binary.LittleEndian.AppendUint32(c.values, uint32(len(s)))
	c.values = append(c.values, s...)
}

// SetInt sets the value of an Integer, Decimal or Timestamp column in the row.
func (p *Writer) SetInt(column int, n int64) {
	c := p.set(column)
	c.values = binary.LittleEndian.AppendUint64(c.values, uint64(n))
}

// SetDouble sets the value of a Double column in the row.
func (p *Writer) SetDouble(column int, f float64) {
	c := p.set(column)
	c.values = binary.LittleEndian.AppendUint64(c.values, math.Float64bits(f))
}

// SetBool sets the value of a Boolean column in the row.
func (p *Writer) SetBool(column int, b bool) {
	c := p.set(column)
	if c.bits%8 == 0 {
		c.values = append(c.values, 0)
	}
	if b {
		c.values[len(c.values)-1] |= 1 << (c.bits % 8)
	}
	c.bits++
}

// EndRow ends the row. Columns that were not set are null.
func (p *Writer) EndRow() error {
	p.rows++
	size := 0
	for _, c := range p.columns {
		if len(c.levels) < p.rows {
			c.levels = append(c.levels, false)
		}
		size += len(c.values)
	}
	if p.rows < maxGroupRows && size < maxGroupBytes {
		return nil
	}
	return p.endGroup()
}

// endGroup writes the rows since the last group.
func (p *Writer) endGroup() error {
	if p.rows == 0 {
		return nil
	}
	g := rowGroup{rows: int64(p.rows)}
	for _, c := range p.columns {
		p.page = c.appendPage(p.page[:0])
		p.compressed = p.zstd.EncodeAll(p.page, p.compressed[:0])
		header := pageHeader(p.rows, len(p.page), len(p.compressed))
		at := p.written
		if err := errors.Join(p.write(header), p.write(p.compressed)); err != nil {
			return err
		}
		g.chunks = append(g.chunks, chunk{at, p.written - at, int64(len(header) + len(p.page))})
		c.values, c.levels, c.bits = c.values[:0], c.levels[:0], 0
	}
	p.groups = append(p.groups, g)
	p.total += g.rows
	p.rows = 0
	return nil
}

// appendPage appends the levels, as runs, and the values to an empty page.
func (c *columnBuffer) appendPage(page []byte) []byte {
	page = append(slices.Grow(page, 4+len(c.values)+len(c.levels)/8), 0, 0, 0, 0)
	for i := 0; i < len(c.levels); {
		n := i + 1
		for n < len(c.levels) && c.levels[n] == c.levels[i] {
			n++
		}
		page = binary.AppendUvarint(page, uint64(n-i)<<1)
		if c.levels[i] {
			page = append(page, 1)
		} else {
			page = append(page, 0)
		}
		i = n
	}
	binary.LittleEndian.PutUint32(page, uint32(len(page)-4))
	return append(page, c.values...)
}

func pageHeader(rows, size, compressed int) []byte {
	var t thrift
	t.i32(1, dataPage)
	t.i32(2, int32(size))
	t.i32(3, int32(compressed))
	t.begin(5)
	t.i32(1, int32(rows))
	t.i32(2, plainEncoding)
	t.i32(3, rleEncoding) // of definition levels
	t.i32(4, rleEncoding) // of repetition levels, which flat columns lack
	t.end()
	t.end()
	return t.b
}

// Close writes what remains of the file. It does not close what the file is written to.
func (p *Writer) Close() error {
	if err := p.endGroup(); err != nil {
		return err
	}
	footer := p.footer()
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return p.write(append(footer, magic...))
}

func (p *Writer) footer() []byte {
	var t thrift
	t.i32(1, 1) // version
	t.list(2, typeStruct, 1+len(p.columns))
	t.beginElement()
	t.text(4, "schema")
	t.i32(5, int32(len(p.columns)))
	t.end()
	for _, c := range p.columns {
		t.beginElement()
		t.i32(1, physical[c.Kind])
		t.i32(3, optional)
		t.text(4, c.Name)
		if meaning := converted[c.Kind]; meaning >= 0 {
			t.i32(6, meaning)
		}
		if c.Kind == Decimal {
			t.i32(7, decimalScale)
			t.i32(8, decimalPrecision)
		}
		t.end()
	}
	t.i64(3, p.total)
	t.list(4, typeStruct, len(p.groups))
	for _, g := range p.groups {
		p.group(&t, g)
	}
	t.text(6, "Weir")
	t.end()
	return t.b
}

func (p *Writer) group(t *thrift, g rowGroup) {
	t.beginElement()
	t.list(1, typeStruct, len(g.chunks))
	var size int64
	for i, c := range g.chunks {
		size += c.uncompressed
		t.beginElement()
		t.i64(2, c.offset)
		t.begin(3)
		t.i32(1, physical[p.columns[i].Kind])
		t.list(2, typeI32, 2)
		t.b = binary.AppendVarint(binary.AppendVarint(t.b, plainEncoding), rleEncoding)
		t.list(3, typeBinary, 1)
		t.element(p.columns[i].Name)
		t.i32(4, zstdCodec)
		t.i64(5, g.rows)
		t.i64(6, c.uncompressed)
		t.i64(7, c.size)
		t.i64(9, c.offset)
		t.end()
		t.end()
	}
	t.i64(2, size)
	t.i64(3, g.rows)
	t.end()
}
