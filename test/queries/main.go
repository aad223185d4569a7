// Command queries times what the dashboard asks of the embedded store, beside DuckDB on one thread
// with the same columns, and checks that both answer the same.
//
//	cd test/queries
//	go run . -records 3000000 -database /tmp/quarter.db
//
// A database that is not there is filled first: with the records of 90 days, of which a tenth have
// scores. The first run of a query reads files, later runs remember what they add up to.
// docs/queries.md has the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	records := flag.Int("records", 3_000_000, "records of a database that is filled")
	path := flag.String("database", "", "file of the database, filled if there is none (required)")
	runs := flag.Int("runs", 3, "how often each query runs; the first and the fastest count")
	flag.Parse()
	if err := run(context.Background(), *path, *records, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, records, runs int) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := fill(ctx, path, records); err != nil {
			return fmt.Errorf("%s cannot be filled: %w", path, err)
		}
	}
	weir, err := openStore(ctx, path)
	if err != nil {
		return err
	}
	defer weir.Close()
	duck, err := copyToDuckDB(ctx, path)
	if err != nil {
		return err
	}
	defer duck.Close()
	window, err := windowOf(ctx, duck)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "query\tWeir, first, ms\tCPU, ms\tagain, ms\tCPU, ms\tDuckDB, ms\tCPU, ms\tratio of CPU, first\tagain\t")
	differ := false
	for _, q := range questions {
		ours, first, again, err := timed(runs, func() (sums, error) { return q.askStore(ctx, weir, window) })
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		theirs, _, theirTime, err := timed(runs, func() (sums, error) { return q.askDuckDB(ctx, duck) })
		if err != nil {
			return fmt.Errorf("%s, of DuckDB: %w", q.name, err)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t\n", q.name, first.wall.Milliseconds(), first.cpu.Milliseconds(),
			again.wall.Milliseconds(), again.cpu.Milliseconds(), theirTime.wall.Milliseconds(), theirTime.cpu.Milliseconds(),
			float64(first.cpu)/float64(theirTime.cpu), float64(again.cpu)/float64(theirTime.cpu))
		if ours != theirs {
			differ = true
			fmt.Fprintf(os.Stderr, "%s: Weir answers %+v, and DuckDB %+v\n", q.name, ours, theirs)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if differ {
		return errors.New("the answers differ")
	}
	return nil
}

// fill makes a database as the benchmarks of the store do.
func fill(ctx context.Context, path string, records int) error {
	c := exec.CommandContext(ctx, "go", "test", "github.com/weirhq/weir/storage/sqlite", "-run", "^$", "-bench", "Analytics/open", "-benchtime", "1x",
		"-timeout", "3h", "-sqlite.records", strconv.Itoa(records), "-sqlite.database", path)
	c.Dir = filepath.Join("..", "..") // the module of the store
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return c.Run()
}

// timing is the time of a run, and the processor time of the whole process meanwhile.
type timing struct{ wall, cpu time.Duration }

// timed returns the answer, the timing of the first run, and that with the least processor time.
func timed(runs int, ask func() (sums, error)) (answer sums, first, least timing, err error) {
	for i := range runs {
		began, cpu := time.Now(), processorTime()
		if answer, err = ask(); err != nil {
			return answer, first, least, err
		}
		t := timing{time.Since(began), processorTime() - cpu}
		if i == 0 {
			first, least = t, t
		} else if t.cpu < least.cpu {
			least = t
		}
	}
	return answer, first, least, nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for other arguments alone
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
