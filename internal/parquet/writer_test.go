package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// fields reads a struct of the compact protocol: the values of fields by their ids, as int64, string,
// []any or map[int16]any.
func fields(t *testing.T, r *bytes.Reader) map[int16]any {
	t.Helper()
	all, id := make(map[int16]any), int16(0)
	for {
		head, err := r.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		if head == 0 {
			return all
		}
		id += int16(head >> 4)
		all[id] = value(t, r, head&15)
	}
}

func value(t *testing.T, r *bytes.Reader, kind byte) any {
	t.Helper()
	switch kind {
	case typeI32, typeI64:
		n, err := binary.ReadVarint(r)
		if err != nil {
			t.Fatal(err)
		}
		return n
	case typeBinary:
		n, _ := binary.ReadUvarint(r)
		text := make([]byte, n)
		if _, err := io.ReadFull(r, text); err != nil {
			t.Fatal(err)
		}
		return string(text)
	case typeList:
		head, _ := r.ReadByte()
		n := uint64(head >> 4)
		if n == 15 {
			n, _ = binary.ReadUvarint(r)
		}
		list := make([]any, n)
		for i := range list {
			list[i] = value(t, r, head&15)
		}
		return list
	case typeStruct:
		return fields(t, r)
	}
	t.Fatalf("an unknown type %d", kind)
	return nil
}

// read returns the footer, and the texts of a column in all groups, "null" for null.
func read(t *testing.T, file []byte, column int) (footer map[int16]any, texts []string) {
	t.Helper()
	size := binary.LittleEndian.Uint32(file[len(file)-8:])
	if string(file[:4]) != magic || string(file[len(file)-4:]) != magic {
		t.Fatal("no magic number")
	}
	footer = fields(t, bytes.NewReader(file[len(file)-8-int(size):len(file)-8]))
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, g := range footer[4].([]any) {
		meta := g.(map[int16]any)[1].([]any)[column].(map[int16]any)[3].(map[int16]any)
		r := bytes.NewReader(file[meta[9].(int64):])
		header := fields(t, r)
		compressed := make([]byte, header[3].(int64))
		if _, err := io.ReadFull(r, compressed); err != nil {
			t.Fatal(err)
		}
		page, err := decoder.DecodeAll(compressed, nil)
		if err != nil || int64(len(page)) != header[2].(int64) {
			t.Fatal(err, len(page))
		}
		levels := bytes.NewReader(page[4 : 4+binary.LittleEndian.Uint32(page)])
		values := page[4+levels.Size():]
		for levels.Len() > 0 {
			run, _ := binary.ReadUvarint(levels)
			level, _ := levels.ReadByte()
			for range run >> 1 {
				if level == 0 {
					texts = append(texts, "null")
					continue
				}
				n := binary.LittleEndian.Uint32(values)
				texts, values = append(texts, string(values[4:4+n])), values[4+n:]
			}
		}
		if len(values) != 0 {
			t.Errorf("%d bytes after the values", len(values))
		}
	}
	return footer, texts
}

// Rows come back in their order, over several groups, with their nulls.
func TestWriter(t *testing.T) {
	var file bytes.Buffer
	columns := []Column{{"text", Text}, {"cost", Decimal}, {"flag", Boolean}}
	for i := range 20 {
		columns = append(columns, Column{fmt.Sprint("more", i), Integer})
	}
	p, err := NewWriter(&file, columns)
	if err != nil {
		t.Fatal(err)
	}
	const rows = maxGroupRows + 17
	for i := range rows {
		if i%3 > 0 {
			p.SetText(0, fmt.Sprint(i))
		}
		p.SetBool(2, i%2 == 0)
		if err := p.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	footer, texts := read(t, file.Bytes(), 0)
	if footer[3] != int64(rows) || len(footer[4].([]any)) != 2 || len(footer[2].([]any)) != 1+len(columns) || len(texts) != rows {
		t.Fatalf("%v rows in %d groups, %d texts", footer[3], len(footer[4].([]any)), len(texts))
	}
	for i, text := range texts {
		if want := map[bool]string{true: "null", false: fmt.Sprint(i)}[i%3 == 0]; text != want {
			t.Fatalf("row %d has %q", i, text)
		}
	}
	if cost := footer[2].([]any)[2].(map[int16]any); cost[4] != "cost" || cost[1] != int64(2) || cost[6] != int64(5) || cost[7] != int64(9) || cost[8] != int64(18) {
		t.Errorf("the column is %v", cost)
	}
}

type fullDisk struct{ left int }

var errFull = errors.New("the disk is full")

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// A file without rows is whole, and a full disk is an error at the latest when the file is closed.
func TestWriterOfNothing(t *testing.T) {
	var file bytes.Buffer
	p, err := NewWriter(&file, []Column{{"a", Text}})
	if err != nil || p.Close() != nil {
		t.Fatal(err)
	}
	if footer, texts := read(t, file.Bytes(), 0); footer[3] != int64(0) || texts != nil {
		t.Error(footer)
	}
	if p, err = NewWriter(&fullDisk{10}, []Column{{"a", Text}}); err != nil {
		t.Fatal(err)
	}
	p.SetText(0, "a")
	if err := errors.Join(p.EndRow(), p.Close()); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

// A second file has nothing of the first.
func TestReset(t *testing.T) {
	columns := []Column{{"text", Text}, {"yes", Boolean}, {"cost", Decimal}}
	fill := func(w *Writer, rows int) {
		t.Helper()
		for i := range rows {
			if i%3 > 0 {
				w.SetText(0, strings.Repeat("x", i))
				w.SetBool(1, i%2 == 0)
			}
			w.SetInt(2, int64(i))
			if err := w.EndRow(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var first, second, want bytes.Buffer
	w, err := NewWriter(&first, columns)
	if err != nil {
		t.Fatal(err)
	}
	fill(w, 100)
	if err := w.Reset(&second); err != nil {
		t.Fatal(err)
	}
	fill(w, 10)
	if w, err = NewWriter(&want, columns); err != nil {
		t.Fatal(err)
	}
	if fill(w, 10); !bytes.Equal(second.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes, want %d", second.Len(), want.Len())
	}
}
