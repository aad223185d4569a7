package llmquery

import (
	"encoding/csv"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/spreadsheet"
	"github.com/weirhq/weir/storage"
)

// The formats of an export.
const (
	formatNDJSON = "ndjson"
	formatCSV    = "csv"
)

// exportPage is how many records are read at a time. Bodies are read one by one.
const exportPage = 500

// requestExport is a question for all requests that a filter matches.
type requestExport struct {
	query   *storage.RequestQuery
	shape   shape
	isTable bool     // CSV, else a line of JSON for each record
	columns []string // of a table
}

// parseExport reads the body of a request for an export.
func (c *call) parseExport() (*requestExport, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	x := &requestExport{
		query: &storage.RequestQuery{
			Org:    c.org,
			Filter: storage.And(b.filter("filter", storage.RequestResponse), within(b.window())),
			Sort:   []storage.Sort{{Key: storage.SortCreatedAt}},
			Limit:  exportPage,
		},
		columns: tableColumns,
	}
	content := b.includeContent()
	format, _ := b.text("format")
	x.isTable = format == formatCSV
	if !x.isTable {
		x.shape = shape{content: content, inputs: content, oneLine: true, exportOf: x.query.Filter}
	}
	if b.json("columns") != nil {
		names := b.texts("columns", maxColumns)
		if x.isTable {
			x.columns = names
		}
		for _, name := range names {
			i := slices.IndexFunc(shown, func(c shownColumn) bool { return c.Shown() == name })
			switch {
			case x.isTable && !slices.Contains(tableColumns, name) && !strings.HasPrefix(name, propertyColumn):
				b.fail("columns", "a field of records or property:<name> is expected, not %q", name)
			case x.isTable:
			case i < 0:
				b.fail("columns", "a field of records is expected, not %q", name)
			default:
				x.shape.columns = append(x.shape.columns, shown[i])
			}
		}
		if !x.isTable && b.json("includeContent") != nil && content {
			b.fail("includeContent", "lines with columns have no bodies: leave one of both out")
		}
		x.shape.content, x.shape.inputs = false, false
	}
	if !x.isTable && format != "" && format != formatNDJSON {
		b.fail("format", "one of %s, %s is expected, not %q", formatNDJSON, formatCSV, format)
	}
	return x, b.finish()
}

// exportRequests answers every request that a filter matches, the oldest first.
func exportRequests(c *call) error {
	x, err := c.parseExport()
	if err != nil {
		return err
	}
	c.ctx = c.r.Context() // no timeout: it lasts as long as its client
	a := newAnswer(c, x.shape)
	defer a.close()
	name := "requests-" + time.Now().UTC().Format("20060102T150405Z")
	write := func(r *storage.Record) error {
		defer a.append("\n")
		return a.record(r)
	}
	a.contentType = "application/x-ndjson"
	if x.isTable {
		a.contentType, name = "text/csv; charset=utf-8", name+".csv"
		write = a.csv(x.columns)
	} else {
		name += ".ndjson"
	}
	c.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	for {
		records, err := c.page(x.query)
		if err != nil {
			return a.abandon(err)
		}
		err = a.expect(records...)
		for i := 0; i < len(records) && err == nil; i++ {
			err = write(records[i])
		}
		if err != nil {
			return a.abandon(err)
		}
		a.flush()
		if a.err != nil {
			return a.abandon(a.err)
		}
		if len(records) < x.query.Limit {
			return nil
		}
		x.query.After = x.query.Cursor(records[len(records)-1], nil)
	}
}

const (
	// maxColumns bounds the columns of a table that are asked for.
	maxColumns = 200
	// propertyColumn begins the name of a column that holds a property.
	propertyColumn = "property:"
)

// tableColumns are the columns of a table by default: the fields of filters. Other values of
// answers repeat these.
var tableColumns = func() (names []string) {
	for _, c := range storage.Schema {
		if c.Field != "" {
			names = append(names, c.Shown())
		}
	}
	return names
}()

// csv writes the head of a table, and returns a function that writes a row.
func (a *answer) csv(names []string) func(*storage.Record) error {
	columns := make([]*storage.Column, len(names)) // nil for a property
	for i, name := range names {
		if at := slices.IndexFunc(storage.Schema, func(c *storage.Column) bool { return c.Field != "" && c.Shown() == name }); at >= 0 {
			columns[i] = storage.Schema[at]
		}
	}
	cells := make([]string, len(columns))
	w := csv.NewWriter((*answerWriter)(a))
	_ = w.Write(names)
	w.Flush()
	var value []byte
	return func(r *storage.Record) (err error) {
		for i, c := range columns {
			if c == nil {
				cells[i] = spreadsheet.Text(r.Properties[strings.TrimPrefix(names[i], propertyColumn)])
				continue
			}
			if value, err = appendValue(value[:0], c, r); err != nil {
				return err
			}
			cells[i] = cellOf(value)
		}
		_ = w.Write(cells)
		w.Flush()
		return nil
	}
}

// cellOf returns a value as a table has it, "" for null.
func cellOf(value []byte) string {
	switch v := gjson.ParseBytes(value); v.Type {
	case gjson.Null:
		return ""
	case gjson.String:
		return spreadsheet.Text(v.Str)
	default:
		return v.Raw
	}
}

// answerWriter appends to an answer.
type answerWriter answer

func (a *answerWriter) Write(b []byte) (int, error) {
	a.buf = append(a.buf, b...)
	return len(b), nil
}

// within is a window as a filter.
func within(w storage.Window) storage.Filter {
	created := storage.LookupField(storage.RequestResponse, "request_created_at")
	f := storage.Filter(storage.All{})
	if w.From != storage.Always.From {
		f = storage.And(f, &storage.Leaf{Field: created, Op: storage.GTE, Time: w.From})
	}
	if w.To != storage.Always.To {
		f = storage.And(f, &storage.Leaf{Field: created, Op: storage.LTE, Time: w.To})
	}
	return f
}
