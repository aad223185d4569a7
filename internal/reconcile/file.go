package reconcile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// row is a line of a billing export. It returns the value of a column, or of the first one that the
// export has.
type row func(columns ...string) string

// maxRow bounds a row of an export, in bytes. A quote without an end would make the rest of the file one.
const maxRow = 16 << 20

// boundedRows reads an export until a row has more than maxRow bytes.
type boundedRows struct {
	io.Reader
	left int // bytes of the row
}

func (b *boundedRows) Read(p []byte) (n int, err error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("a row has more than %d bytes: look for a quote without an end", maxRow)
	}
	n, err = b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// readRows calls each with the lines of a billing export: CSV, JSON lines, or a JSON array, also
// compressed by gzip. Names of columns of CSV are compared without case and punctuation, so that
// sku.description is also sku_description and "SKU description". The export must have one of each list of
// needed columns; JSON leaves out what is null.
func readRows(r io.Reader, needed [][]string, each func(row) error) error {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		in = bufio.NewReader(z)
	}
	if start, _ := in.Peek(3); bytes.Equal(start, []byte("\xef\xbb\xbf")) { // of spreadsheets
		if _, err := in.Discard(len(start)); err != nil {
			return err
		}
	}
	bounded := &boundedRows{in, maxRow}
	next := func(line row) error {
		bounded.left = maxRow
		return each(line)
	}
	switch start, err := in.Peek(1); {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	case err != nil:
		return err
	case start[0] == '{' || start[0] == '[':
		return readJSON(bounded, start[0] == '[', needed, next)
	}
	return readCSV(bounded, needed, next)
}

// missingColumn is the error for an export that has none of some columns.
func missingColumn(names []string) error {
	return fmt.Errorf("the export has no %s: export this column, too", strings.Join(names, " and no "))
}

func readCSV(r io.Reader, needed [][]string, each func(row) error) error {
	lines := csv.NewReader(r)
	lines.ReuseRecord = true
	heading, err := lines.Read()
	if err != nil {
		return err
	}
	columns := make(map[string]int, len(heading))
	for i, name := range heading {
		columns[columnName(name)] = i
	}
	for _, names := range needed {
		if !slices.ContainsFunc(names, func(name string) bool { _, ok := columns[columnName(name)]; return ok }) {
			return missingColumn(names)
		}
	}
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = each(func(names ...string) string {
			for _, name := range names {
				if i, ok := columns[columnName(name)]; ok {
					return line[i]
				}
			}
			return ""
		})
		if err != nil {
			n, _ := lines.FieldPos(0)
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func readJSON(r io.Reader, array bool, needed [][]string, each func(row) error) error {
	missing := slices.Clone(needed) // in all rows so far
	d := json.NewDecoder(r)
	if array {
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	n := 0
	for d.More() {
		n++
		var object json.RawMessage
		if err := d.Decode(&object); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		values := gjson.ParseBytes(object)
		missing = slices.DeleteFunc(missing, func(names []string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return values.Get(name).Exists() })
		})
		err := each(func(names ...string) string {
			for _, name := range names {
				if v := values.Get(name); v.Type == gjson.Number {
					return v.Raw
				} else if v.Exists() {
					return v.String()
				}
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
	}
	if array {
		if _, err := d.Token(); err != nil { // More is false for an error, too
			return fmt.Errorf("the list has no end: %w", err)
		}
	}
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		if n > 0 && len(missing) > 0 {
			return missingColumn(missing[0])
		}
		return nil
	case err != nil:
		return fmt.Errorf("after the last row: %w", err)
	}
	return errors.New("after the last row: there is more")
}

// columnName is the name of a column without case and punctuation.
func columnName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, name)
}
