package llmcommand

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/tidwall/gjson"
)

// rows reads an export, one row after the other: an array, an object a line, an answer
// whose rows are in "data", a trace and its "observations", or CSV whose first line
// names the fields.
func rows(r io.Reader) iter.Seq2[gjson.Result, error] {
	in := bufio.NewReader(r)
	first, err := firstByte(in)
	switch {
	case err != nil:
		return func(yield func(gjson.Result, error) bool) { yield(gjson.Result{}, err) }
	case first == '[' || first == '{':
		return jsonRows(in, first == '[')
	}
	return csvRows(in)
}

// firstByte is the first that is no space, which is left to read.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("the file is empty")
		}
		if err != nil {
			return 0, err
		}
		if strings.IndexByte(" \t\r\n\xef\xbb\xbf", b) < 0 { // nor of a byte order mark
			return b, in.UnreadByte()
		}
	}
}

func jsonRows(in io.Reader, array bool) iter.Seq2[gjson.Result, error] {
	return func(yield func(gjson.Result, error) bool) {
		decoder := json.NewDecoder(in)
		if array {
			_, _ = decoder.Token() // the bracket
		}
		for decoder.More() {
			var raw json.RawMessage
			if err := decoder.Decode(&raw); err != nil {
				yield(gjson.Result{}, fmt.Errorf("at byte %d: %w", decoder.InputOffset(), err))
				return
			}
			row := gjson.ParseBytes(raw)
			page := append([]gjson.Result{row}, row.Get("observations").Array()...)
			if data := row.Get("data"); !array && data.IsArray() {
				page = data.Array()
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
			}
		}
		if array {
			if _, err := decoder.Token(); err != nil {
				yield(gjson.Result{}, fmt.Errorf("at byte %d: the array does not end: %w", decoder.InputOffset(), err))
			}
		}
	}
}

// csvRows makes an object of each line. A field that holds an object or an array is
// one.
func csvRows(in io.Reader) iter.Seq2[gjson.Result, error] {
	return func(yield func(gjson.Result, error) bool) {
		lines := csv.NewReader(in)
		names, err := lines.Read()
		if err != nil {
			yield(gjson.Result{}, err)
			return
		}
		for {
			line, err := lines.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(gjson.Result{}, err)
				return
			}
			row := make(map[string]any, len(names))
			for i, name := range names {
				row[name] = line[i]
				if raw := []byte(line[i]); strings.HasPrefix(line[i], "{") || strings.HasPrefix(line[i], "[") {
					if json.Valid(raw) {
						row[name] = json.RawMessage(raw)
					}
				}
			}
			text, err := json.Marshal(row)
			if err != nil {
				yield(gjson.Result{}, err)
				return
			}
			if !yield(gjson.ParseBytes(text), nil) {
				return
			}
		}
	}
}
