package llmcommand

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

var exportFormats = []string{formatJSONL, formatJSON, formatCSV, formatFOCUS, formatParquet, formatFOCUSParquet}

func exportCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addOutputFlags(cmd, exportFormats...)
	cmd.Flags().String("folder", "", "Folder for the files of the formats "+formatParquet+" and "+formatFOCUSParquet+", one a day")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = export
}

func export(cmd *cobra.Command, args []string) error {
	filter, err := parseFilter(args)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	var files *dayFiles
	out, err := newOutput(cmd, w, false, exportFormats...)
	switch o := out.(type) {
	case *parquetOutput:
		files = o.dayFiles
	case *focusOutput:
		if rows, ok := o.rows.(*focusParquet); ok {
			files = rows.dayFiles
		}
	}
	if folder, _ := cmd.Flags().GetString("folder"); err == nil && files == nil && folder != "" {
		err = misused("--folder goes with the formats %s and %s", formatParquet, formatFOCUSParquet)
	}
	if err != nil {
		return err
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()

	p := progress{w: cmd.ErrOrStderr()}
	cursor := newCursor(c, filter, byStart, 0)
	cursor.inputs = showsContent(cmd)
	if c, ok := out.(columnar); ok && !cursor.inputs {
		cursor.columns = c.fields()
	}
	err = cursor.read(ctx, 0, func(record gjson.Result) error {
		if err := out.write(record); err != nil {
			return err
		}
		p.add(cursor.newest)
		return nil
	})
	p.end()
	if err != nil && files != nil {
		err = errors.Join(err, files.abandon())
	}
	if err = errors.Join(err, out.flush(), w.Flush()); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("the export is not complete, it has %s records: %w", formatCount(p.records), err)
}

// progress tells a terminal how far an export is.
type progress struct {
	w       io.Writer
	records int64
}

const progressStep = 100 // records

func (p *progress) add(reached storage.Timestamp) {
	if p.records++; p.records%progressStep == 0 && terminalWidth(p.w) > 0 {
		fmt.Fprintf(p.w, "\r%s records, up to %s", formatCount(p.records), reached)
	}
}

func (p *progress) end() {
	if terminalWidth(p.w) > 0 {
		fmt.Fprintf(p.w, "\r\x1b[K%s records\n", formatCount(p.records))
	}
}
