package llmcommand

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/parquet"
	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// The formats that are files of Parquet in a folder, one a day.
const (
	formatParquet      = "parquet"       // with the columns of CSV
	formatFOCUSParquet = "focus-parquet" // with those of FOCUS
)

// dayFiles writes rows that come in the order of their time into files of Parquet, one for each day
// in UTC. A file has its name only once it is complete.
type dayFiles struct {
	folder  string
	columns []parquet.Column

	day  string // of the file that is open, "" for none
	file *os.File
	buf  *bufio.Writer
	*parquet.Writer
}

// newDayFiles makes the folder.
func newDayFiles(folder string, columns []parquet.Column) (*dayFiles, error) {
	if folder == "" {
		return nil, errors.New("--folder: Parquet is written to files, one a day: name their folder")
	}
	return &dayFiles{folder: folder, columns: columns}, os.MkdirAll(folder, 0o750)
}

// begin begins a row of a time.
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
	f.Writer, err = parquet.NewWriter(f.buf, f.columns)
	return err
}

// finish completes the file that is open.
func (f *dayFiles) finish() error {
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.Close(), f.buf.Flush(), f.file.Sync())
	if err == nil {
		err = errors.Join(f.file.Chmod(0o640), f.file.Close(), os.Rename(f.file.Name(), filepath.Join(f.folder, f.day+".parquet")))
	}
	if err != nil {
		return errors.Join(err, f.abandon())
	}
	f.day, f.file = "", nil
	return nil
}

// abandon deletes the file that is open, because its day is not complete.
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
	of map[string]int // the column of a field of a record
}

func newParquet(folder string) (*parquetOutput, error) {
	columns := make([]parquet.Column, len(allColumns))
	kinds := make(map[string]parquet.Kind)
	for _, c := range storage.Schema {
		kinds[c.Field] = kindOf(c)
	}
	of := make(map[string]int)
	for i, c := range allColumns {
		columns[i] = parquet.Column{Name: c.heading, Kind: kinds[c.heading]}
		of[c.path] = i
	}
	files, err := newDayFiles(folder, columns)
	return &parquetOutput{files, of}, err
}

// kindOf is what a file has for a value of records.
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

func (o *parquetOutput) write(record gjson.Result) error {
	at, err := storage.ParseTimestamp(record.Get("request_created_at").Str)
	if err != nil {
		return err
	}
	if err := o.begin(at.Time()); err != nil {
		return err
	}
	record.ForEach(func(field, value gjson.Result) bool {
		if i, ok := o.of[field.Str]; ok && value.Type != gjson.Null {
			err = o.set(i, value)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	return o.EndRow()
}

// set sets the value of a column in the row.
func (o *parquetOutput) set(i int, value gjson.Result) error {
	switch c := o.columns[i]; c.Kind {
	case parquet.Timestamp:
		at, err := storage.ParseTimestamp(value.Str)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		o.SetInt(i, int64(at))
	case parquet.Double:
		o.SetDouble(i, value.Num)
	case parquet.Decimal:
		amount, err := reconcile.ParseAmount(value.Raw, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		o.SetInt(i, int64(amount.Nanodollars))
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

// focusKinds are the columns of FOCUS that are no texts.
var focusKinds = map[string]parquet.Kind{
	"BilledCost": parquet.Decimal, "EffectiveCost": parquet.Decimal, "ContractedCost": parquet.Decimal, "ListCost": parquet.Decimal,
	"ConsumedQuantity": parquet.Decimal, "PricingQuantity": parquet.Decimal, "ContractedUnitPrice": parquet.Decimal, "ListUnitPrice": parquet.Decimal,
	"BillingPeriodStart": parquet.Timestamp, "BillingPeriodEnd": parquet.Timestamp, "ChargePeriodStart": parquet.Timestamp, "ChargePeriodEnd": parquet.Timestamp,
	"Tags": parquet.JSON, "SkuPriceDetails": parquet.JSON,
}

// focusParquet are the rows of FOCUS in files of Parquet.
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
		switch f.columns[i].Kind {
		case parquet.Decimal:
			amount, err := reconcile.ParseAmount(text, 0)
			if err != nil {
				return fmt.Errorf("%s: %w", f.columns[i].Name, err)
			}
			f.SetInt(i, int64(amount.Nanodollars))
		case parquet.Timestamp:
			at, err := storage.ParseTimestamp(text)
			if err != nil {
				return fmt.Errorf("%s: %w", f.columns[i].Name, err)
			}
			f.SetInt(i, int64(at))
		default:
			f.SetText(i, text)
		}
	}
	return f.EndRow()
}
