package llmcommand

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/parquet"
	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// The formats that are Parquet files in a folder, one file a day.
const (
	formatParquet      = "parquet"       // with the columns of CSV
	formatFOCUSParquet = "focus-parquet" // with the columns of FOCUS
)

// dayFiles writes rows, which come in the order of their times, into Parquet files, one for each day in
// UTC. A file gets its name when it is complete. Rows are set through the Writer of the open file.
type dayFiles struct {
	folder  string
	columns []parquet.Column

	day             string // of the open file, "" for none
	file            *os.File
	buf             *bufio.Writer
	*parquet.Writer // of the open file; nil before the first
}

// newDayFiles makes the folder, unless it exists. It returns an error if folder is "".
func newDayFiles(folder string, columns []parquet.Column) (*dayFiles, error) {
	if folder == "" {
		return nil, misused("--folder: Parquet is written to files, one a day: name their folder")
	}
	return &dayFiles{folder: folder, columns: columns}, os.MkdirAll(folder, 0o750)
}

// begin opens the file for a row of a time, unless it is open.
func (f *dayFiles) begin(at time.Time) error {
	day := at.UTC().Format(time.DateOnly)
	if day == f.day {
		return nil
	}
	if err := f.finish(); err != nil {
		return err
	}
	file, err := os.CreateTemp(f.folder, "."+day+"-*")
	if err != nil {
		return err
	}
	f.day, f.file, f.buf = day, file, bufio.NewWriterSize(file, 64<<10)
	if f.Writer != nil {
		return f.Reset(f.buf)
	}
	f.Writer, err = parquet.NewWriter(f.buf, f.columns)
	return err
}

// finish completes the open file, if there is one.
func (f *dayFiles) finish() error {
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.Close(), f.buf.Flush(), f.file.Chmod(0o640), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), filepath.Join(f.folder, f.day+".parquet"))
	}
	if err != nil {
		return errors.Join(err, f.abandon())
	}
	f.day, f.file = "", nil
	return nil
}

// setTime sets column i of the row to a time.
func (f *dayFiles) setTime(i int, text string) error {
	at, err := storage.ParseTimestamp(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.columns[i].Name, err)
	}
	f.SetInt(i, int64(at))
	return nil
}

// setAmount sets column i of the row to a decimal number, in billionths.
func (f *dayFiles) setAmount(i int, text string) error {
	amount, err := reconcile.ParseAmount(text, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", f.columns[i].Name, err)
	}
	f.SetInt(i, int64(amount.Nanodollars))
	return nil
}

// abandon deletes the open file, if there is one, because its day is not complete.
func (f *dayFiles) abandon() error {
	if f.file == nil {
		return nil
	}
	name := f.file.Name()
	f.file.Close()
	f.day, f.file = "", nil
	return os.Remove(name)
}

// parquetOutput writes records with the columns of CSV.
type parquetOutput struct {
	*dayFiles
	columnOf map[string]int // the index of a column, by the field of a record
}

func newParquet(folder string) (*parquetOutput, error) {
	columns := make([]parquet.Column, len(allColumns))
	kinds := make(map[string]parquet.Kind)
	for _, c := range storage.Schema {
		kinds[c.Field] = kindOf(c)
	}
	columnOf := make(map[string]int)
	for i, c := range allColumns {
		columns[i] = parquet.Column{Name: c.heading, Kind: kinds[c.heading]}
		columnOf[c.path] = i
	}
	files, err := newDayFiles(folder, columns)
	return &parquetOutput{files, columnOf}, err
}

// kindOf returns the type that a file has for a column of records.
func kindOf(c *storage.Column) parquet.Kind {
	switch c.Zero().(type) {
	case *storage.Timestamp:
		return parquet.Timestamp
	case *plugins.Duration, *float64:
		return parquet.Double
	case *plugins.Cost:
		return parquet.Decimal
	case *plugins.Count, *int, *int64:
		return parquet.Integer
	case *bool:
		return parquet.Boolean
	case *map[string]string, *map[string]float64, *storage.JSONText:
		return parquet.JSON
	}
	return parquet.Text
}

func (o *parquetOutput) fields() []string { return slices.Collect(maps.Keys(o.columnOf)) }

func (o *parquetOutput) write(record gjson.Result) error {
	at, err := storage.ParseTimestamp(record.Get("request_created_at").Str)
	if err != nil {
		return err
	}
	if err := o.begin(at.Time()); err != nil {
		return err
	}
	record.ForEach(func(field, value gjson.Result) bool {
		if i, ok := o.columnOf[field.Str]; ok && value.Type != gjson.Null {
			err = o.set(i, value)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	return o.EndRow()
}

// set sets column i of the row, as its kind wants it.
func (o *parquetOutput) set(i int, value gjson.Result) error {
	switch o.columns[i].Kind {
	case parquet.Timestamp:
		return o.setTime(i, value.Str)
	case parquet.Double:
		o.SetDouble(i, value.Num)
	case parquet.Decimal:
		return o.setAmount(i, value.Raw)
	case parquet.Integer:
		o.SetInt(i, value.Int())
	case parquet.Boolean:
		o.SetBool(i, value.Bool())
	default:
		o.SetText(i, value.String())
	}
	return nil
}

func (o *parquetOutput) flush() error { return o.finish() }

// focusKinds are the kinds of the columns of FOCUS; those it does not name are texts.
var focusKinds = map[string]parquet.Kind{
	"BilledCost": parquet.Decimal, "EffectiveCost": parquet.Decimal, "ContractedCost": parquet.Decimal, "ListCost": parquet.Decimal,
	"ConsumedQuantity": parquet.Decimal, "PricingQuantity": parquet.Decimal, "ContractedUnitPrice": parquet.Decimal, "ListUnitPrice": parquet.Decimal,
	"PricingCurrencyContractedUnitPrice": parquet.Decimal, "PricingCurrencyEffectiveCost": parquet.Decimal, "PricingCurrencyListUnitPrice": parquet.Decimal,
	"BillingPeriodStart": parquet.Timestamp, "BillingPeriodEnd": parquet.Timestamp, "ChargePeriodStart": parquet.Timestamp, "ChargePeriodEnd": parquet.Timestamp,
	"Tags": parquet.JSON, "SkuPriceDetails": parquet.JSON,
}

// focusParquet writes the rows of FOCUS.
type focusParquet struct{ *dayFiles }

func newFOCUSParquet(folder string) (*focusParquet, error) {
	columns := make([]parquet.Column, len(focusColumns))
	for i, c := range focusColumns {
		columns[i] = parquet.Column{Name: c.name, Kind: focusKinds[c.name]}
	}
	files, err := newDayFiles(folder, columns)
	return &focusParquet{files}, err
}

func (f *focusParquet) writeRow(at time.Time, row []string) error {
	if err := f.begin(at); err != nil {
		return err
	}
	for i, text := range row {
		if text == "" {
			continue
		}
		var err error
		switch f.columns[i].Kind {
		case parquet.Decimal:
			err = f.setAmount(i, text)
		case parquet.Timestamp:
			err = f.setTime(i, text)
		default:
			f.SetText(i, text)
		}
		if err != nil {
			return err
		}
	}
	return f.EndRow()
}
