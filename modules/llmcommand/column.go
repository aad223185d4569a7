package llmcommand

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/spreadsheet"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// column is a field of records as tables and CSV show it.
type column struct {
	heading string
	path    string // in the record
	format  format
}

// format is how a table shows a value.
type format uint8

const (
	plain  format = iota
	nested        // below another one by its depth
	moment
	millis
	dollars
	amount // US dollars to the cent, or a number of what the row's quantity says
	count
	code // a number that counts nothing
)

// allColumns have the metrics of a record, under the names that filters use.
var allColumns = func() (columns []column) {
	for _, c := range storage.Schema {
		if c.Field != "" {
			columns = append(columns, column{c.Field, c.Shown(), formatOf(c)})
		}
	}
	return columns
}()

func formatOf(c *storage.Column) format {
	switch c.Zero().(type) {
	case *storage.Timestamp:
		return moment
	case *plugins.Duration:
		return millis
	case *plugins.Cost:
		return dollars
	case *plugins.Count:
		return count
	case *int, *int64:
		return code
	}
	return plain
}

// bodyColumns are shown when asked for by name.
var bodyColumns = []column{
	{"request_body", "request_body", plain},
	{"response_body", "response_body", plain},
}

// parseColumns finds columns by their names or aliases, which become the
// headings.
func parseColumns(names []string) ([]column, error) {
	columns := make([]column, len(names))
	for i, name := range names {
		var err error
		if columns[i], err = parseColumn(name); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

func parseColumn(name string) (column, error) {
	full := question.FullName(name)
	if key, ok := strings.CutPrefix(full, question.PropertyPrefix); ok && key != "" {
		return column{name, "properties." + gjson.Escape(key), plain}, nil
	}
	if key, ok := strings.CutPrefix(full, question.ScorePrefix); ok && key != "" {
		return column{name, "scores." + gjson.Escape(key), code}, nil
	}
	var names []string
	for _, columns := range [][]column{allColumns, bodyColumns} {
		for _, c := range columns {
			if c.heading == full {
				c.heading = name
				return c, nil
			}
			names = append(names, c.heading)
		}
	}
	return column{}, fmt.Errorf("unknown column %q; columns are %s, property.<name> and score.<name>", name, strings.Join(names, ", "))
}

// numeric columns align right.
func (f format) numeric() bool { return f >= millis }

// width is what values of a format mostly need.
func (f format) width() int {
	return [...]int{moment: 19, millis: 7, dollars: 9, amount: 9, count: 6, code: 3, plain: 12, nested: 12}[f]
}

// csvText is a value as CSV has it, "" if it is unknown. A text is changed if a spreadsheet would
// take the text for a formula.
func csvText(value gjson.Result) string {
	text := value.String()
	safe := spreadsheet.Text(text)
	if safe != text {
		if _, err := strconv.ParseFloat(text, 64); err == nil { // a number, which no spreadsheet runs
			return text
		}
	}
	return safe
}

// maxIndent bounds the depth by which a table indents a value.
const maxIndent = 16

// unknownCell stands for a value that is not known.
const unknownCell = "-"

// cell is the value as a table has it.
func (c *column) cell(record gjson.Result, zone *time.Location) string {
	value := record.Get(c.path)
	if value.Type == gjson.Null {
		return unknownCell
	}
	switch c.format {
	case nested:
		return strings.Repeat("  ", int(min(record.Get("depth").Int(), maxIndent))) + printable(value.String())
	case moment:
		if t, err := storage.ParseTimestamp(value.String()); err == nil {
			return t.Time().In(zone).Format(time.DateTime)
		}
	case millis:
		return plugins.Milliseconds(value.Int()).String()
	case dollars:
		return formatCost(nanodollars(value.Num))
	case amount:
		return formatAmount(value.Num, record.Get("quantity").Str)
	case count:
		return formatCount(value.Int())
	}
	if value.IsArray() {
		words := make([]string, 0, len(value.Array()))
		for _, v := range value.Array() {
			words = append(words, v.String())
		}
		return printable(cmp.Or(strings.Join(words, ", "), "-"))
	}
	return printable(value.String())
}

// nanodollars is an amount of the API, which is in dollars.
func nanodollars(dollars float64) plugins.Nanodollars {
	return plugins.Nanodollars(math.Round(dollars * 1e9))
}

const (
	oneCent   = plugins.Nanodollars(1e7)
	oneDollar = 100 * oneCent
)

// formatCost rounds for people: to cents from a dollar on, and else to six decimals, unless nothing
// would be left. JSON has all decimals.
func formatCost(cost plugins.Nanodollars) string {
	switch size := max(cost, -cost); {
	case size >= oneDollar || cost == 0:
		return formatCents(cost)
	case size >= 500:
		cost = plugins.Nanodollars(math.Round(float64(cost)/1e3)) * 1e3
	}
	return cost.String()
}

// formatAmount writes an amount of a budget. Dollars have cents; less than one has all of its decimals.
func formatAmount(n float64, quantity string) string {
	if quantity != "usd" {
		return formatCount(int64(n))
	}
	cost := nanodollars(n)
	if cost != 0 && max(cost, -cost) < oneCent {
		return cost.String()
	}
	return formatCents(cost)
}

func formatCents(cost plugins.Nanodollars) string {
	sign := ""
	if cost < 0 {
		sign, cost = "-", -cost
	}
	cents := int64((cost + oneCent/2) / oneCent)
	return fmt.Sprintf("%s$%s.%02d", sign, formatCount(cents/100), cents%100)
}

// formatCount groups the digits by three.
func formatCount(n int64) string { return humanize.Comma(n) }

// printable is s on one line and without what could drive a terminal: callers
// choose the names of their users and models.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return harmless(r)
	}, s)
}

// harmless returns what a terminal may get in place of a character, -1 for nothing.
func harmless(r rune) rune {
	switch {
	case unicode.Is(unicode.Cf, r): // invisible; some turn the direction
		return -1
	case unicode.IsGraphic(r):
		return r
	}
	return unicode.ReplacementChar
}
