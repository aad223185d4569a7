package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/storage/columnar"
)

const (
	columnSuffix = ".columns"
	// columnDirectory follows the path of the database in the name of the directory.
	columnDirectory = "-columns"
)

// columnFiles writes the older requests to files of columns, a chunk at a time. All of
// them can be made again from the database: a file that is missing or damaged is left
// out, and written anew.
type columnFiles struct {
	b    *Backend
	wake chan struct{}
	// damaged are files that cannot be read.
	damaged chan columnar.Region
	done    chan struct{}
	// written counts the requests since run was woken.
	written int
	// writing is held while a file is written.
	writing sync.Mutex
	// quiet fires when there have been no new requests for a while.
	quiet *time.Timer
}

// openColumnFiles forgets the files that are not there, and deletes the files that the
// database does not know.
func (b *Backend) openColumnFiles(ctx context.Context, w *writer) (*columnFiles, error) {
	f := &columnFiles{b: b, wake: make(chan struct{}, 1), damaged: make(chan columnar.Region, 1), done: make(chan struct{}), quiet: time.NewTimer(b.settled)}
	entries, err := os.ReadDir(f.b.columns.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := make(map[string]bool)
	for _, e := range entries {
		there[e.Name()] = true
	}
	var missing []int64
	err = w.c.query(ctx, "SELECT last, file FROM column_chunks", nil, func(row []driver.Value) error {
		if name, _ := row[1].(string); there[name] {
			there[name] = false
		} else {
			missing = append(missing, row[0].(int64))
		}
		return nil
	})
	if err == nil && len(missing) > 0 {
		_, err = w.c.exec("DELETE FROM column_chunks WHERE last IN (SELECT value FROM json_each(?))", compactJSON(missing))
	}
	if err != nil {
		return nil, err
	}
	for name, unknown := range there {
		if unknown && strings.HasSuffix(name, columnSuffix) {
			err = errors.Join(err, os.Remove(filepath.Join(f.b.columns.Dir, name)))
		}
	}
	return f, err
}

// remove deletes files that the database no longer knows. Whoever has a file open can still
// read it, and whoever comes too late reads the database.
func (f *columnFiles) remove(names []string) {
	for _, name := range names {
		f.b.columns.Forget(name)
		_ = os.Remove(filepath.Join(f.b.columns.Dir, name)) // Open tries again
	}
}

// count wakes the files up when there are many new requests.
func (f *columnFiles) count(requests int) {
	f.quiet.Reset(f.b.settled)
	if f.written += requests; f.written >= f.b.columns.ChunkRows/4 {
		f.written = 0
		f.wakeUp()
	}
}

// wakeUp makes run write the files that are due.
func (f *columnFiles) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run writes files until the context ends. After an error it waits until it is woken
// again: without files queries take longer, and answer the same.
func (f *columnFiles) run(ctx context.Context) {
	defer close(f.done)
	for {
		changes := f.b.columns.ChunkRows / 32
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-f.quiet.C:
			changes = f.b.columns.ChunkRows / 512
		case x := <-f.damaged:
			f.forget(x)
		}
		for more, err := true, error(nil); more && err == nil; {
			more, err = f.next(ctx, changes)
		}
	}
}

// next writes the next file if there are enough requests, or if more than changes requests of a
// file have changed.
func (f *columnFiles) next(ctx context.Context, changes int) (more bool, err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	var next *columnar.Region
	err = f.b.withReader(ctx, func(ctx context.Context, r reader) (err error) {
		next, err = r.nextRegion(ctx, f.b.columns.ChunkRows, changes)
		return err
	})
	if next == nil || err != nil {
		return false, err
	}
	return f.rewrite(ctx, next)
}

// rewriteChanged writes each file anew that has a changed request.
func (f *columnFiles) rewriteChanged(ctx context.Context) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	var regions []columnar.Region
	err := f.b.withReader(ctx, func(ctx context.Context, r reader) (err error) {
		regions, err = r.regions(ctx, math.MinInt64, math.MaxInt64)
		return err
	})
	for i := range regions {
		next := &regions[i]
		changed := int64(0)
		if err == nil {
			err = f.b.withReader(ctx, func(ctx context.Context, r reader) (err error) {
				changed, err = r.changes(ctx, next)
				return err
			})
		}
		if err == nil && changed > 0 {
			_, err = f.rewrite(ctx, next)
		}
	}
	return err
}

// rewrite writes the file of a region, in place of the one that there is.
func (f *columnFiles) rewrite(ctx context.Context, next *columnar.Region) (written bool, err error) {
	if err := f.b.withWriter(func(w *writer) error { return w.beginRegion(ctx, next) }); err != nil {
		return false, err
	}
	if next.File != "" {
		f.remove([]string{next.File})
	}
	var c columnar.Chunk
	err = f.b.withReader(ctx, func(ctx context.Context, r reader) error {
		l := loader{ctx, r}
		if _, err := l.Between(next.After, next.Last, math.MaxInt, func() *columnar.Chunk { return &c }); err != nil || c.Len() == 0 {
			return err
		}
		return l.annotations(&c, f.b.columns.MaxProperties)
	})
	next.File = ""
	if err == nil && c.Len() > 0 {
		next.File = strings.ToLower(rand.Text()) + columnSuffix
		if err = os.MkdirAll(f.b.columns.Dir, 0o700); err == nil {
			err = columnar.Write(filepath.Join(f.b.columns.Dir, next.File), &c, next.After, next.Last)
		}
	}
	if err != nil {
		return false, err
	}
	var known bool
	err = f.b.withWriter(func(w *writer) error {
		known, err = w.endRegion(ctx, next)
		return err
	})
	if next.File != "" && !known {
		f.remove([]string{next.File})
	}
	return err == nil, err
}

// nextRegion finds the rows of the next file: the rows of a file of which more than changes
// rows have changed since, or rows that are in no file. It returns nil if there are too few.
func (r reader) nextRegion(ctx context.Context, rows, changes int) (*columnar.Region, error) {
	regions, err := r.regions(ctx, math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	after := int64(math.MinInt64)
	for i := range regions {
		region := &regions[i]
		changed, err := r.changes(ctx, region)
		if err != nil || changed > int64(changes) {
			return region, err
		}
		if few, err := r.nth(ctx, after, region.After, rows/16); few != nil || err != nil {
			gap := &columnar.Region{After: after, Last: region.After}
			if last, failed := r.nth(ctx, after, region.After, rows); last != nil {
				gap.Last, err = *last, failed
			}
			return gap, err
		}
		after = region.Last
	}
	// What is new may still change: as much is left as a file has.
	if last, err := r.nth(ctx, after, math.MaxInt64, 2*rows); last == nil || err != nil {
		return nil, err
	}
	last, err := r.nth(ctx, after, math.MaxInt64, rows)
	if last == nil || err != nil {
		return nil, err
	}
	return &columnar.Region{After: after, Last: *last}, nil
}

// changes counts the requests of a region that have changed since its file was begun.
func (r reader) changes(ctx context.Context, x *columnar.Region) (int64, error) {
	return r.c.integer(ctx, "SELECT count(*) FROM column_changes WHERE n > ? AND n <= ?", x.After, x.Last)
}

// nth is the key of the nth request between two keys, nil if there are fewer.
func (r reader) nth(ctx context.Context, after, to int64, n int) (*int64, error) {
	found, err := r.c.integers(ctx, "SELECT n FROM requests WHERE n > ? AND n <= ? ORDER BY n LIMIT 1 OFFSET ?", after, to, int64(n-1))
	if len(found) == 0 {
		return nil, err
	}
	return &found[0], err
}

// regions are the regions between two keys that have files, in the order of the keys.
func (r reader) regions(ctx context.Context, from, to int64) (regions []columnar.Region, err error) {
	err = r.c.query(ctx, "SELECT after, last, file FROM column_chunks WHERE file IS NOT NULL AND last >= ? AND after < ? ORDER BY last",
		[]driver.Value{from, to}, func(row []driver.Value) error {
			regions = append(regions, columnar.Region{After: row[0].(int64), Last: row[1].(int64), File: row[2].(string)})
			return nil
		})
	return regions, err
}

// beginRegion makes the database keep the changes of the region from now on, and forget
// what was begun and not ended.
func (w *writer) beginRegion(ctx context.Context, x *columnar.Region) error {
	return w.c.transaction(ctx, func() error {
		if _, err := w.c.exec("DELETE FROM column_chunks WHERE file IS NULL OR last = ?", x.Last); err != nil {
			return err
		}
		if _, err := w.c.exec("DELETE FROM column_changes WHERE n > ? AND n <= ?", x.After, x.Last); err != nil {
			return err
		}
		_, err := w.c.exec("INSERT INTO column_chunks (last, after) VALUES (?, ?)", x.Last, x.After)
		return err
	})
}

// endRegion makes the file of a region known, unless the region is gone meanwhile.
func (w *writer) endRegion(ctx context.Context, x *columnar.Region) (known bool, err error) {
	err = w.c.transaction(ctx, func() error {
		if x.File == "" {
			_, err := w.c.exec("DELETE FROM column_chunks WHERE last = ?", x.Last)
			return err
		}
		result, err := w.c.exec("UPDATE column_chunks SET file = ? WHERE last = ? AND file IS NULL", x.File, x.Last)
		if err == nil {
			changes, _ := result.RowsAffected()
			known = changes > 0
		}
		return err
	})
	return known && err == nil, err
}

// forget forgets the file of a region. The file is then written anew.
func (f *columnFiles) forget(x columnar.Region) {
	err := f.b.withWriter(func(w *writer) error {
		_, err := w.c.exec("DELETE FROM column_chunks WHERE last = ? AND file = ?", x.Last, x.File)
		return err
	})
	if err == nil {
		f.remove([]string{x.File})
	}
}

// report says that the file of a region cannot be read.
func (f *columnFiles) report(x columnar.Region) {
	select {
	case f.damaged <- x:
	default: // the next query finds it again
	}
}

// pruneColumns forgets the columns until a key, and returns the files that are no longer
// known.
func (w *writer) pruneColumns(ctx context.Context, until int64) (files []string, err error) {
	err = w.c.query(ctx, "SELECT file FROM column_chunks WHERE last <= ? AND file IS NOT NULL", []driver.Value{until}, func(row []driver.Value) error {
		files = append(files, row[0].(string))
		return nil
	})
	for _, statement := range []string{
		"DELETE FROM column_chunks WHERE last <= ?",
		"UPDATE column_chunks SET after = ?1 WHERE after < ?1",
		"DELETE FROM column_changes WHERE n <= ?",
	} {
		if err == nil {
			_, err = w.c.exec(statement, until)
		}
	}
	return files, err
}
