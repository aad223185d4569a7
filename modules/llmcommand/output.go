package llmcommand

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// The formats of records.
const (
	formatTable = "table"
	formatJSON  = "json"  // an array
	formatJSONL = "jsonl" // a record a line
	formatCSV   = "csv"
)

// output writes records in some format. What was written may be held back until
// flush.
type output interface {
	write(record gjson.Result) error
	flush() error
}

// columnar is an output that needs some fields of records alone.
type columnar interface {
	// fields are the names of the fields, as answers have them.
	fields() []string
}

// addOutputFlags adds the flags that newOutput reads. The first format is the
// default.
func addOutputFlags(cmd *cobra.Command, formats ...string) {
	addFormatFlags(cmd, "records", formats...)
	cmd.Flags().StringSlice("columns", nil, "Fields to show as columns, as in time,model,property.env")
}

// addFormatFlags adds the flags that outputOf reads of a command that shows rows with
// times.
func addFormatFlags(cmd *cobra.Command, rows string, formats ...string) {
	cmd.Flags().StringP("format", "o", formats[0], "Format of the "+rows+": "+strings.Join(formats, ", "))
	completeFlag(cmd, "format", formats)
	if slices.Contains(formats, formatTable) {
		cmd.Flags().Bool("utc", false, "Show times in UTC, not in the local time zone")
	}
}

// writeRows writes the rows, and the end.
func writeRows(out output, rows []gjson.Result) error {
	for _, row := range rows {
		if err := out.write(row); err != nil {
			return err
		}
	}
	return out.flush()
}

// newOutput makes the output that the flags ask for, out of the formats that a
// command has. A live one shows records as they come.
func newOutput(cmd *cobra.Command, w io.Writer, live bool, formats ...string) (output, error) {
	name, _ := cmd.Flags().GetString("format")
	names, _ := cmd.Flags().GetStringSlice("columns")
	columns, err := parseColumns(names)
	if err != nil {
		return nil, misused("--columns: %w", err)
	}
	if len(columns) > 0 && name != formatTable && name != formatCSV {
		return nil, misused("--columns goes with tables and CSV; --format %s has columns of its own, or whole records", name)
	}
	return outputOf(cmd, w, live, columns, formats...)
}

// showsContent reports whether an output has bodies: others do not ask for them, which takes time
// and makes events in the audit log.
func showsContent(cmd *cobra.Command) bool {
	name, _ := cmd.Flags().GetString("format")
	names, _ := cmd.Flags().GetStringSlice("columns")
	columns, _ := parseColumns(names) // newOutput says what is wrong with them
	return slices.Contains([]string{formatJSON, formatJSONL}, name) || slices.ContainsFunc(columns, func(c column) bool {
		return slices.ContainsFunc(bodyColumns, func(b column) bool { return b.path == c.path })
	})
}

// outputOf is newOutput with columns that no flag names.
func outputOf(cmd *cobra.Command, w io.Writer, live bool, columns []column, formats ...string) (output, error) {
	name, _ := cmd.Flags().GetString("format")
	if !slices.Contains(formats, name) {
		return nil, misused("--format: expected one of %s, not %q", strings.Join(formats, ", "), name)
	}
	switch name {
	case formatTable:
		zone := time.Local
		if utc, _ := cmd.Flags().GetBool("utc"); utc {
			zone = time.UTC
		}
		return newTable(w, columns, zone, live)
	case formatCSV:
		return newCSV(w, columns)
	case formatFOCUS:
		return newFOCUS(w, cmd.ErrOrStderr())
	case formatParquet:
		folder, _ := cmd.Flags().GetString("folder")
		return newParquet(folder)
	case formatFOCUSParquet:
		folder, _ := cmd.Flags().GetString("folder")
		rows, err := newFOCUSParquet(folder)
		return &focusOutput{rows: rows, stderr: cmd.ErrOrStderr()}, err
	case formatJSON:
		return &jsonArray{w: w}, nil
	default:
		return jsonLines{w}, nil
	}
}

// tableColumns are shown unless others are asked for.
var tableColumns = []string{"time", "model", "status", "latency", "ttft", "in", "out", "cost", "user", "error"}

type table struct {
	grid    grid
	columns []column
	zone    *time.Location
}

func newTable(w io.Writer, columns []column, zone *time.Location, live bool) (*table, error) {
	if len(columns) == 0 {
		var err error
		if columns, err = parseColumns(tableColumns); err != nil {
			return nil, err
		}
	}
	t := &table{grid: grid{w: w, limit: terminalWidth(w)}, columns: columns, zone: zone}
	for _, c := range columns {
		t.grid.headings = append(t.grid.headings, printable(strings.ToUpper(c.heading)))
		t.grid.right = append(t.grid.right, c.format.numeric())
		t.grid.points = append(t.grid.points, c.format == dollars || c.format == amount)
		t.grid.yields = append(t.grid.yields, c.format <= nested)
		if live {
			t.grid.widths = append(t.grid.widths, c.format.width())
		}
	}
	return t, nil
}

func (t *table) write(record gjson.Result) error {
	row := make([]string, len(t.columns))
	for i := range t.columns {
		row[i] = t.columns[i].cell(record, t.zone)
	}
	t.grid.add(row)
	return nil
}

func (t *table) flush() error { return t.grid.flush() }

// csvOutput writes CSV. It reads each record once: a search for each of its columns would take most of
// the time of an export.
type csvOutput struct {
	w        *csv.Writer
	columns  []column
	columnOf map[string]int // the index of the first column that shows a field
}

func newCSV(w io.Writer, columns []column) (*csvOutput, error) {
	if len(columns) == 0 {
		columns = allColumns
	}
	o := &csvOutput{csv.NewWriter(w), columns, make(map[string]int)}
	headings := make([]string, len(columns))
	for i, c := range columns {
		headings[i] = c.heading
		if _, ok := o.columnOf[c.path]; !ok {
			o.columnOf[c.path] = i
		}
	}
	return o, o.w.Write(headings)
}

func (o *csvOutput) fields() (names []string) {
	for _, c := range o.columns {
		name, _, _ := strings.Cut(c.path, ".")
		names = append(names, name)
	}
	return names
}

func (o *csvOutput) write(record gjson.Result) error {
	values := make([]gjson.Result, len(o.columns))
	record.ForEach(func(field, value gjson.Result) bool {
		if i, ok := o.columnOf[field.Str]; ok {
			values[i] = value
		}
		return true
	})
	row := make([]string, len(o.columns))
	for i, c := range o.columns {
		value := values[i]
		if !value.Exists() { // the field of a column before, one within a field, or none
			value = record.Get(c.path)
		}
		row[i] = csvText(value)
	}
	return o.w.Write(row)
}

func (o *csvOutput) flush() error {
	o.w.Flush()
	return o.w.Error()
}

// jsonLines writes each record on a line of its own.
type jsonLines struct{ w io.Writer }

func (o jsonLines) write(record gjson.Result) error {
	b := new(bytes.Buffer)
	if err := appendLine(b, record); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := o.w.Write(b.Bytes())
	return err
}

func (jsonLines) flush() error { return nil }

// jsonArray writes the records up to flush as one array.
type jsonArray struct {
	w     io.Writer
	begun bool
}

func (o *jsonArray) write(record gjson.Result) error {
	b := bytes.NewBufferString(",\n")
	if !o.begun {
		b = bytes.NewBufferString("[\n")
		o.begun = true
	}
	if err := appendLine(b, record); err != nil {
		return err
	}
	_, err := o.w.Write(b.Bytes())
	return err
}

func (o *jsonArray) flush() error {
	end := "\n]\n"
	if !o.begun {
		end = "[]\n"
	}
	o.begun = false
	_, err := io.WriteString(o.w, end)
	return err
}

// appendLine appends a record on one line: bodies stand in it as they were sent.
func appendLine(b *bytes.Buffer, record gjson.Result) error {
	return json.Compact(b, []byte(record.Raw))
}
