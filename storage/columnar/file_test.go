package columnar

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFilesReadBack holds that a file has the values that it was written with, of
// the columns that are asked for, and that no changed byte of it passes.
func TestFilesReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c Chunk
	widths := []int64{1, 200, 60_000, 1 << 31, 1 << 50}
	for i := range 100 {
		c.Begin(int64(i/3)*7<<sequenceBits|int64(i%3), 5)
		for column := range columnCount {
			if column%7 == 3 {
				continue // not one row has it
			}
			c.count(column, 1000+r.Int64N(widths[column%len(widths)]))
		}
	}
	c.others = true
	c.properties = map[string][]uint32{"a": make([]uint32, 100), `"b`: make([]uint32, 100), "unread": make([]uint32, 100), "few": make([]uint32, 100)}
	for i := range 100 {
		c.properties["few"][i] = []uint32{3, 1 << 20, isWide}[r.IntN(3)]
		c.properties["a"][i], c.properties[`"b`][i] = r.Uint32N(3), r.Uint32()
	}
	c.scores = scoresByName{7: {rows: []uint32{3, 99}, values: []float64{-0.5, 1e300}}, 8: {rows: []uint32{0}, values: []float64{0.25}}, 9: {rows: []uint32{1}, values: []float64{2}}}
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	if err := Write(path, &c, c.low-1, c.high); err != nil {
		t.Fatal(err)
	}
	known := Region{After: c.low - 1, Last: c.high, File: "c"}
	wanted := needs{properties: []string{"a", `"b`, "a", "few"}, scores: []uint32{0, 7, 8}}
	for i := range wanted.columns {
		wanted.columns[i] = i != userColumn
	}
	read := func() (*Chunk, error) { return new(fileReader).read(New(dir), known, &wanted) }
	got, err := read()
	if err != nil {
		t.Fatal(err)
	}
	same := func(got *Chunk) bool {
		for column := range columnCount {
			for row := range c.n {
				if column != userColumn && got.value(column, row) != c.value(column, row) {
					return false
				}
			}
		}
		for _, name := range []string{"a", `"b`, "few"} {
			if !slices.Equal(got.properties[name], c.properties[name]) {
				return false
			}
		}
		for _, name := range []uint32{7, 8} {
			if x := got.scores[name]; x == nil || !slices.Equal(x.rows, c.scores[name].rows) || !slices.Equal(x.values, c.scores[name].values) {
				return false
			}
		}
		return len(got.scores) == 2 && got.others && len(got.properties) == 3 && slices.Equal(got.n, c.n) && slices.Equal(got.org, c.org) && got.low == c.low && got.high == c.high && got.live == c.live
	}
	if !same(got) {
		t.Error("the file has other values")
	}
	if got.columns[userColumn] != nil {
		t.Error("a column is read that is not needed")
	}
	for _, x := range []struct {
		columnRange
		none bool
	}{
		{columnRange{sessionColumn, 0, 1000}, true}, {columnRange{sessionColumn, 0, 1100}, false},
		{columnRange{sessionColumn, 1201, 1300}, true}, {columnRange{modelColumn, 0, 0}, false}, {columnRange{modelColumn, 1, 5}, true},
		{columnRange{providerColumn, 0, 1}, false}, // which has wide values
	} {
		if got, err := new(fileReader).read(New(dir), known, &needs{ranges: []columnRange{x.columnRange}}); err != nil || (got.Len() == 0) != x.none {
			t.Errorf("%d rows may be in %v, %v", got.Len(), x.columnRange, err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); err == nil && !same(got) {
			t.Error("a damaged file is read")
		}
	}
	for at := 0; at < len(whole); at += 1 + r.IntN(200) {
		damaged := slices.Clone(whole)
		damaged[at] ^= 1 << r.IntN(8)
		change(damaged)
		change(whole[:at])
	}
}

// TestFilesOfEarlierVersions holds that a file whose keys are in one block is read, too.
func TestFilesOfEarlierVersions(t *testing.T) {
	var c Chunk
	for i := range 100 {
		c.Begin(int64(i/3)<<sequenceBits|int64(i%3), 5)
	}
	path := filepath.Join(t.TempDir(), "c")
	if err := Write(path, &c, -1, c.high); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	index, err := readIndex(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err == nil {
		_, err = file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &fileWriter{file: file, offset: info.Size()}
	index.Format, index.N, index.Sequence = formerFormat, writeBlock(w, c.n), block{}
	w.writeIndex(index)
	if w.err != nil {
		t.Fatal(w.err)
	}
	got, err := new(fileReader).read(New(filepath.Dir(path)), Region{After: -1, Last: c.high, File: "c"}, new(needs))
	if err != nil || !slices.Equal(got.n, c.n) {
		t.Errorf("the keys are %v, %v", got, err)
	}
}
