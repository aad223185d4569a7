package llmcommand

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/redact"
)

// source is a product whose exports can be imported.
type source interface {
	// call makes a span of a row. It is nil of a row that is no call of a model, and
	// skipped then says what it is.
	call(row gjson.Result) (s *span, skipped string, err error)
	// kept are the fields of a row that call reads, and those that repeat others.
	kept(field string) bool
}

// sources are the products, each with a constructor.
var sources = map[string]func() source{
	"helicone": func() source { return helicone{} },
	"langfuse": func() source { return &langfuse{make(map[string]gjson.Result), make(map[string][]gjson.Result)} },
	"litellm":  func() source { return litellm{} },
}

func importCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Args = cobra.MinimumNArgs(2)
	cmd.RunE = runImport
}

// imported is what became of the rows of an import.
type imported struct {
	sender  *spanSender
	skipped map[string]int // rows that are no calls, by what they are
	left    map[string]int // rows with a field that has no place, by the field
	broken  int            // rows that cannot be read
}

func runImport(cmd *cobra.Command, args []string) error {
	makeSource, ok := sources[args[0]]
	if !ok {
		return fmt.Errorf("%q: expected one of %s", args[0], strings.Join(slices.Sorted(maps.Keys(sources)), ", "))
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	i := &imported{sender: &spanSender{client: c}, skipped: make(map[string]int), left: make(map[string]int)}
	from := makeSource()
	for _, name := range args[1:] {
		if err = i.file(ctx, from, name, cmd.ErrOrStderr()); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			break
		}
	}
	if err == nil {
		err = i.sender.flush(ctx)
	}
	i.report(cmd.OutOrStdout(), c.address)
	switch {
	case err != nil:
		return fmt.Errorf("%w; import the same files again to go on: what is there already is not doubled", err)
	case i.broken > 0:
		return fmt.Errorf("%d rows could not be imported", i.broken)
	case i.sender.rejected > 0:
		return fmt.Errorf("%d calls were refused: %s", i.sender.rejected, i.sender.reason)
	}
	return nil
}

func (i *imported) file(ctx context.Context, from source, name string, stderr io.Writer) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	n := 0
	for row, err := range rows(file) {
		if err != nil {
			return err
		}
		n++
		s, skipped, err := from.call(row)
		switch {
		case err != nil:
			if i.broken++; i.broken <= 20 {
				fmt.Fprintf(stderr, "%s: row %d: %v\n", name, n, err)
			}
			continue
		case s == nil:
			i.skipped[skipped]++
			continue
		}
		row.ForEach(func(field, value gjson.Result) bool {
			if !blank(value) && !from.kept(field.Str) {
				i.left[field.Str]++
			}
			return true
		})
		if err := i.sender.add(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (i *imported) report(w io.Writer, address string) {
	fmt.Fprintf(w, "imported %s calls to %s; those that were there before are not doubled\n", formatCount(int64(i.sender.sent)-i.sender.rejected), address)
	for _, what := range slices.Sorted(maps.Keys(i.skipped)) {
		fmt.Fprintf(w, "not imported: %s %s\n", formatCount(int64(i.skipped[what])), what)
	}
	for _, field := range slices.Sorted(maps.Keys(i.left)) {
		fmt.Fprintf(w, "not kept: %s of %s calls\n", field, formatCount(int64(i.left[field])))
	}
}

const noUUID = "00000000-0000-0000-0000-000000000000"

// blank is true of what says nothing: null, "", {}, [], 0, false and the zero UUID.
func blank(v gjson.Result) bool {
	switch {
	case v.IsObject():
		return len(v.Map()) == 0
	case v.IsArray():
		return len(v.Array()) == 0
	}
	return v.String() == "" || v.Str == noUUID || v.Type == gjson.Number && v.Num == 0 || v.Type == gjson.False
}

// spanOf begins the span of a call. A product's own ids, of whatever form, always make
// the same ids of a trace and a span, so that a second import adds nothing; those of
// OpenTelemetry stay as they are.
func spanOf(trace, id string, begin, end time.Time) (*span, error) {
	switch {
	case id == "":
		return nil, errors.New("it has no id")
	case begin.IsZero():
		return nil, errors.New("it does not say when it began")
	}
	s := &span{TraceID: hexID(trace, 16), SpanID: hexID(id, 8), Name: "chat"}
	s.took(begin, end)
	return s, nil
}

func hexID(id string, size int) string {
	plain := strings.ReplaceAll(strings.ToLower(id), "-", "")
	if b, err := hex.DecodeString(plain); err == nil && len(b) == size && strings.Trim(plain, "0") != "" {
		return plain
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:size])
}

// timeOf reads the forms that exports have: RFC 3339, and SQL's, which is in UTC.
func timeOf(v gjson.Result) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07", "2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.Parse(layout, v.String()); err == nil {
			return at
		}
	}
	return time.Time{}
}

// properties sets labels, whose names keep their letter case. Those that are named like
// credentials are left out.
func (s *span) properties(labels map[string]string) {
	maps.DeleteFunc(labels, func(name, value string) bool { return value == "" || redact.Credential(name) })
	if len(labels) > 0 {
		text, _ := json.Marshal(labels) // text always marshals
		s.label("Properties", string(text))
	}
}

// bodyOf is a body as text; an empty one is none.
func bodyOf(v gjson.Result) string {
	if blank(v) {
		return ""
	}
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}

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
