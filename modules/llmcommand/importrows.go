package llmcommand

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/tidwall/gjson"
)

// maxRow bounds a row in bytes, so that a file without line ends does not fill the memory. A row
// takes some ten times its bytes until it is sent; llm_otlp takes 16 MiB.
const maxRow = 32 << 20

var errRowSize = &refusal{reason: fmt.Sprintf("it has more than %s", formatBytes(maxRow))}

// rows yields the rows of an export one by one. It reads these formats:
//
//   - a JSON array of rows
//   - one JSON object a line
//   - an API's response with the rows in "data"
//   - a trace with its "observations"
//   - CSV with the names of the fields in the first line
//
// A *refusal is the error of one row; the value then has the row's text, if its end was found. After any
// other error, no row follows.
func rows(r io.Reader) iter.Seq2[gjson.Result, error] {
	return func(yield func(gjson.Result, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		first, err := firstByte(in)
		head, _ := in.Peek(512) // reading the rows returns the same error
		switch {
		case err != nil:
			yield(gjson.Result{}, err)
		case bytes.IndexByte(head, 0) >= 0:
			yield(gjson.Result{}, errors.New("it is no text in UTF-8: unpack or convert it first"))
		case first == '[':
			_, _ = in.ReadByte() // the [ that firstByte has seen
			values := &valueReader{in: in, array: true}
			jsonRows(values.next, yield)
		case first == '{':
			line, err := readLine(in)
			if err == nil && !bytes.HasSuffix(bytes.TrimSpace(line), []byte("}")) { // an object over several lines
				values := &valueReader{in: bufio.NewReader(io.MultiReader(bytes.NewReader(line), in))}
				jsonRows(values.next, yield)
				return
			}
			firstLine := true
			jsonRows(func() ([]byte, error) {
				if firstLine {
					firstLine = false
					return line, err
				}
				return readLine(in)
			}, yield)
		default:
			csvRows(in, yield)
		}
	}
}

// firstByte skips space and a byte order mark, and returns the next byte without reading it.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("the file is empty")
		}
		if err != nil {
			return 0, err
		}
		if strings.IndexByte(" \t\r\n\xef\xbb\xbf", b) < 0 {
			return b, in.UnreadByte()
		}
	}
}

// readLine returns the next line that is not blank. If the line is longer than maxRow, it is skipped, and
// the error is errRowSize.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxRow; !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case tooLong:
			return nil, errRowSize
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
		line = line[:0]
	}
}

// jsonRows yields the rows of each object that next returns, until next returns an error that is no
// *refusal.
func jsonRows(next func() ([]byte, error), yield func(gjson.Result, error) bool) {
	for {
		text, err := next()
		refused, isRefusal := errors.AsType[*refusal](err)
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil && !isRefusal:
			yield(gjson.Result{}, err)
			return
		case refused == nil:
			refused = checkObject(text)
		}
		if refused != nil {
			if !yield(gjson.Result{Raw: string(text)}, refused) {
				return
			}
			continue
		}
		for _, row := range rowsOf(gjson.ParseBytes(text)) {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func checkObject(text []byte) *refusal {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return &refusal{"it is no object in JSON", err.Error()}
	}
	return nil
}

// rowsOf returns the rows of an object: those in its "data", or the object and its "observations".
func rowsOf(object gjson.Result) []gjson.Result {
	if data := object.Get("data"); data.IsArray() {
		return data.Array()
	}
	return append([]gjson.Result{object}, object.Get("observations").Array()...)
}

// valueReader cuts JSON values out of a text, also broken ones, so that one broken row does not spoil
// the rows after it. A broken value ends where its brackets close, or before a line that begins
// with an object that cannot be a part of the value.
type valueReader struct {
	in    *bufio.Reader
	array bool // the values are elements of an array that has not ended
}

// next returns the next value.
func (v *valueReader) next() ([]byte, error) {
	b, err := v.skip()
	if err != nil {
		return nil, err
	}
	text := []byte{b}
	scan := valueScan{last: ':'}
	tooLarge := false
	for {
		if scan.beginsAnother(b) {
			return text[:len(text)-1], errors.Join(errBrokenRow, v.in.UnreadByte())
		}
		scan.add(b)
		switch ended := len(scan.open) == 0 && !scan.quoted; {
		case ended && tooLarge:
			return nil, errRowSize
		case ended && scan.broken:
			return text, errBrokenRow
		case ended:
			return text, nil
		}
		if b, err = v.in.ReadByte(); errors.Is(err, io.EOF) {
			return text, errBrokenRow
		} else if err != nil {
			return nil, err
		}
		if tooLarge = tooLarge || len(text) == maxRow; !tooLarge {
			text = append(text, b)
		}
	}
}

// valueScan follows the strings and brackets of one JSON value, byte by byte.
type valueScan struct {
	open            []byte // the open brackets, the innermost last
	last            byte   // the last byte that is neither blank nor in a string
	quoted, escaped bool   // the next byte is in a string, and after a backslash
	blankLine       bool   // the line was blank so far
	broken          bool   // the value is no JSON
}

// isMisplaced reports whether b begins an object where the value cannot have one.
func (s *valueScan) isMisplaced(b byte) bool {
	if s.quoted || b != '{' || len(s.open) == 0 {
		return false
	}
	inObject := s.open[len(s.open)-1] == '{'
	return s.broken || s.last != ':' && s.last != '[' && (s.last != ',' || inObject)
}

// beginsAnother reports whether b begins another value, because a line begins with a misplaced object.
func (s *valueScan) beginsAnother(b byte) bool { return s.blankLine && s.isMisplaced(b) }

// add takes the next byte of the value.
func (s *valueScan) add(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.quoted && b == '\\':
		s.escaped = true
	case s.quoted && b == '\n': // no string of JSON has a line break
		s.quoted, s.broken = false, true
	case b == '"':
		s.quoted = !s.quoted
	case s.quoted:
	case b == '{' || b == '[':
		s.broken = s.broken || s.isMisplaced(b)
		s.open = append(s.open, b)
	case b == '}' || b == ']':
		i := bytes.LastIndexByte(s.open, b-2) // in ASCII, { and [ are 2 before } and ]
		s.broken = s.broken || i != len(s.open)-1
		s.open = s.open[:max(i, 0)]
	}
	s.blankLine = b == '\n' || s.blankLine && isBlank(b)
	if !s.quoted && !isBlank(b) {
		s.last = b
	}
}

var errBrokenRow = &refusal{reason: "it is no object in JSON", detail: "a bracket or a string does not end, or a comma is missing"}

func isBlank(b byte) bool { return strings.IndexByte(" \t\r\n", b) >= 0 }

// skip returns the first byte of the next value. It skips space, commas and the end of the array.
func (v *valueReader) skip() (byte, error) {
	for {
		b, err := v.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && v.array:
			return 0, errors.New("the array does not end: the file is cut off")
		case err != nil:
			return 0, err
		case b == ']':
			v.array = false
		case b != ',' && !isBlank(b):
			return b, nil
		}
	}
}

// csvRows yields an object for each line. Its values are strings, but for fields with a JSON object or
// array.
func csvRows(in io.Reader, yield func(gjson.Result, error) bool) {
	line := &lineReader{Reader: in, remaining: maxRow}
	lines := csv.NewReader(line)
	names, err := lines.Read()
	if err != nil {
		yield(gjson.Result{}, err)
		return
	}
	for {
		line.remaining = maxRow
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if _, ok := errors.AsType[*csv.ParseError](err); ok {
			if !yield(gjson.Result{Raw: csvLine(fields)}, &refusal{"it is no line of CSV with the fields of the first line", err.Error()}) {
				return
			}
			continue
		}
		if err != nil {
			yield(gjson.Result{}, err)
			return
		}
		row := make(map[string]any, len(names))
		for i, name := range names {
			row[name] = fields[i]
			if strings.HasPrefix(fields[i], "{") || strings.HasPrefix(fields[i], "[") {
				if raw := []byte(fields[i]); json.Valid(raw) {
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

// lineReader returns an error if a line is too long. The file cannot be read further: a quoted
// field may have line breaks, so nobody knows where the next line begins.
type lineReader struct {
	io.Reader
	remaining int // bytes of the line that may still come
}

// Read implements io.Reader.
func (l *lineReader) Read(p []byte) (int, error) {
	if l.remaining <= 0 {
		return 0, fmt.Errorf("a line has more than %s, or a quote in it does not end", formatBytes(maxRow))
	}
	n, err := l.Reader.Read(p)
	l.remaining -= n
	return n, err
}

// csvLine writes fields as a line of CSV without its line break.
func csvLine(fields []string) string {
	var line strings.Builder
	w := csv.NewWriter(&line)
	_ = w.Write(fields) // cannot fail: a strings.Builder takes all
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n")
}
