package reconcile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"
)

// row is a line of a billing export. It returns the value of a column, or of the first one that the
// export has.
type row func(columns ...string) string

// lineKey is the hash of what says what a line is for.
type lineKey [sha256.Size]byte

// otherFile returns the file that had a line with the same values of some columns, "" if no other has.
// One file may have such lines twice, because exports can leave out columns.
func (b *Bill) otherFile(line row, columns []string) string {
	hash := sha256.New()
	for _, column := range columns {
		fmt.Fprintf(hash, "%q", line(column))
	}
	key := lineKey(hash.Sum(nil))
	if other, ok := b.fileOf[key]; ok && other != b.file {
		return other
	}
	b.fileOf[key] = b.file
	return ""
}

// readRows calls each with the lines of a billing export: CSV, JSON lines, or a JSON array, also
// compressed by gzip. Names of columns of CSV are compared without case and punctuation, so that
// sku.description is also sku_description and "SKU description".
func readRows(r io.Reader, each func(row) error) error {
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
	switch start, err := in.Peek(1); {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	case err != nil:
		return err
	case start[0] == '{' || start[0] == '[':
		return readJSON(in, start[0] == '[', each)
	}
	return readCSV(in, each)
}

func readCSV(r io.Reader, each func(row) error) error {
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

func readJSON(r io.Reader, array bool, each func(row) error) error {
	d := json.NewDecoder(r)
	if array {
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	for n := 1; d.More(); n++ {
		var object json.RawMessage
		if err := d.Decode(&object); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		values := gjson.ParseBytes(object)
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
