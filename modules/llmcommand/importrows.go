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

// rows reads an export, one row after the other: an array, an object a line, an answer
// whose rows are in "data", a trace and its "observations", or CSV whose first line
// names the fields. A refusal stands for one row; the value is the row's text, if the
// text can be told. Any other error is the last.
func rows(r io.Reader) iter.Seq2[gjson.Result, error] {
	return func(yield func(gjson.Result, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		first, err := firstByte(in)
		head, _ := in.Peek(512) // an error follows when the rows are read
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
			if ended := bytes.HasSuffix(bytes.TrimSpace(line), []byte("}")); err != nil || ended {
				jsonRows(func() ([]byte, error) {
					if line == nil && err == nil {
						return readLine(in)
					}
					first, firstErr := line, err
					line, err = nil, nil
					return first, firstErr
				}, yield)
				return
			}
			values := &valueReader{in: bufio.NewReader(io.MultiReader(bytes.NewReader(line), in))}
			jsonRows(values.next, yield)
		default:
			csvRows(in, yield)
		}
	}
}

// firstByte returns the first byte that is no space or byte order mark. The byte is left to read.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("the file is empty")
		}
		if err != nil {
			return 0, err
		}
		if strings.IndexByte(" \t\r\n\xef\xbb\xbf", b) < 0 { // neither space nor byte order mark
			return b, in.UnreadByte()
		}
	}
}

// readLine reads a line that is not blank. A line that is too long is read to its end, and
// refused.
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

// jsonRows yields the rows of the texts that next returns, also with a refusal, until its
// error is another.
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
		for _, row := range page(gjson.ParseBytes(text)) {
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

// page lists the rows of an object: the rows in its "data", or the object and its
// "observations".
func page(row gjson.Result) []gjson.Result {
	list := append([]gjson.Result{row}, row.Get("observations").Array()...)
	if data := row.Get("data"); data.IsArray() {
		list = data.Array()
	}
	return list
}

// valueReader cuts JSON values out of a text. A value that is broken ends where its
// brackets close, or where a line begins with an object that cannot stand in the value.
type valueReader struct {
	in    *bufio.Reader
	array bool // the values are elements of an array that has not ended
}

// next returns the next value.
func (v *valueReader) next() ([]byte, error) {
	first, err := v.skip()
	if err != nil {
		return nil, err
	}
	var (
		text             = []byte{first}
		nest             []byte // the brackets that are open
		last             = byte(':')
		quoted, escaped  bool
		broken, tooLarge bool
		begins           bool // the line, up to here, is blank
	)
	for b := first; ; {
		switch {
		case quoted && escaped:
			escaped = false
		case quoted && b == '\\':
			escaped = true
		case quoted && b == '\n': // no string of JSON has a line break
			quoted, broken = false, true
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' && len(nest) > 0 && (broken || last != ':' && last != '[' && (last != ',' || nest[len(nest)-1] == '{')):
			broken = true
			if begins {
				return text[:len(text)-1], errors.Join(errBrokenRow, v.in.UnreadByte())
			}
			nest = append(nest, b)
		case b == '{' || b == '[':
			nest = append(nest, b)
		case b == '}' || b == ']':
			open := bytes.LastIndexByte(nest, b-2) // { and [ stand 2 before } and ]
			broken = broken || open != len(nest)-1
			nest = nest[:max(open, 0)]
		}
		begins = b == '\n' || begins && isBlank(b)
		if !quoted && !isBlank(b) {
			last = b
		}
		switch ends := len(nest) == 0 && !quoted; {
		case ends && tooLarge:
			return nil, errRowSize
		case ends && broken:
			return text, errBrokenRow
		case ends:
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

var errBrokenRow = &refusal{reason: "it is no object in JSON", detail: "a bracket or a string does not end, or a comma is missing"}

func isBlank(b byte) bool { return strings.IndexByte(" \t\r\n", b) >= 0 }

// skip returns the first byte of the next value.
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

// csvRows makes an object of each line, with texts as values. A field that holds an object
// or an array is an object or an array.
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

// lineReader ends a file whose line is too long: where the next line begins is not known then.
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

// csvLine is a line of CSV without its end.
func csvLine(fields []string) string {
	var line strings.Builder
	w := csv.NewWriter(&line)
	_ = w.Write(fields) // cannot fail: a strings.Builder takes all
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n")
}
