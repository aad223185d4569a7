package llmcommand

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// A record can be queried within a second of its end: tailOverlap allows for this.
// While a store is behind, a record comes later: tail then looks back further, at most by
// tailLookback.
const (
	tailOverlap  = storage.Timestamp(2 * time.Second / time.Millisecond)
	tailLookback = 10 * time.Minute
)

// pollInterval is the pause between polls. Tests have less time.
var pollInterval = 500 * time.Millisecond

var tailFormats = []string{formatTable, formatJSONL, formatCSV}

func tailCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addOutputFlags(cmd, tailFormats...)
	cmd.Flags().IntP("lines", "n", 10, fmt.Sprintf("Begin with so many of the latest requests, up to %d", maxLimit))
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = tail
}

func tail(cmd *cobra.Command, args []string) error {
	filter, err := parseFilter(args)
	if err != nil {
		return err
	}
	lines, _ := cmd.Flags().GetInt("lines")
	if lines < 0 || lines > maxLimit {
		return misused("--lines: expected 0 to %d, not %d", maxLimit, lines)
	}
	out, err := newOutput(cmd, cmd.OutOrStdout(), true, tailFormats...)
	if err != nil {
		return err
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	f := &follower{cursor: newCursor(c, filter, byEnd, tailOverlap), out: out}
	f.cursor.metrics = !showsContent(cmd)
	if err := f.begin(ctx, lines); err != nil {
		return err
	}
	return f.follow(ctx)
}

// follower shows records as they end.
type follower struct {
	cursor *cursor
	out    output
	away   bool
}

// begin shows the latest records. What else the first poll would find is old.
func (f *follower) begin(ctx context.Context, lines int) error {
	var latest []gjson.Result
	collect := func(record gjson.Result) error {
		latest = append(latest, record)
		return nil
	}
	c := f.cursor
	q := &requestQuery{Filter: storage.AppendJSON(nil, c.filter), Limit: lines}
	if c.metrics {
		q.IncludeContent = new(false)
	}
	for record, err := range c.client.requests(ctx, q) {
		if err == nil {
			_, err = c.take(record, collect)
		}
		if err != nil {
			return err
		}
	}
	if len(latest) == 0 {
		c.newest = storage.Millis(c.client.date)
	}
	if err := c.read(ctx, c.newest-tailOverlap, collect); err != nil {
		return err
	}
	slices.SortStableFunc(latest, func(a, b gjson.Result) int {
		return cmp.Compare(c.seen[a.Get("request_id").String()], c.seen[b.Get("request_id").String()])
	})
	return writeRows(f.out, latest[max(0, len(latest)-lines):])
}

// follow polls until ctx ends. A server that is away is waited for.
func (f *follower) follow(ctx context.Context) error {
	stderr := f.cursor.client.stderr
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
		err := f.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user had enough
		case err == nil && f.away:
			fmt.Fprintln(stderr, "Connected again.")
		case err == nil:
		case !transient(err):
			return err
		case !f.away:
			fmt.Fprintf(stderr, "%v. Trying again.\n", err)
		}
		f.away = err != nil
	}
}

// poll shows what ended since the last poll.
func (f *follower) poll(ctx context.Context) error {
	lookback := storage.Millis(f.cursor.client.date.Add(-tailLookback))
	since := max(f.cursor.newest-tailOverlap, lookback)
	n := 0
	err := f.cursor.read(ctx, since, func(record gjson.Result) error {
		n++
		return f.out.write(record)
	})
	if n == 0 {
		return err
	}
	if flushErr := f.out.flush(); flushErr != nil {
		return flushErr
	}
	return err
}
