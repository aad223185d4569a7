package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir/storage"
)

// Verify implements storage.Verifier. It has a connection of its own, so that no query waits, and
// a transaction for each part, so that the write-ahead log does not grow meanwhile. It works a quarter
// of the time.
func (b *Backend) Verify(ctx context.Context) (problems []string, err error) {
	c, err := openReader(b.path)
	if err == nil {
		v := verification{reader: reader{c, newNameReader(), standardBounds}, rests: 3, began: time.Now()}
		problems, err = v.verify(ctx)
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return problems, fmt.Errorf("verifying %s: %w", b.path, explain(err))
	}
	return problems, nil
}

// verifiedAtOnce is the number of records that are verified in a transaction.
const verifiedAtOnce = 500

// verification counts what is wrong with the values of a database.
type verification struct {
	reader
	rests                         int       // how many times as long as it has worked it rests, 0 for never
	began                         time.Time // working
	records, missed, texts, items int
}

// minWork is how long it works before it rests.
const minWork = 20 * time.Millisecond

// rest waits if it has worked for long enough, so that the work takes a share of a processor and of the disk.
func (v *verification) rest(ctx context.Context) error {
	worked := time.Since(v.began)
	if v.rests == 0 || worked < minWork {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(v.rests) * worked):
	}
	v.began = time.Now()
	return ctx.Err()
}

// verify reads all of the database, and returns what is wrong with it: pages and indexes by
// SQLite's own check, and then values, which SQLite cannot know, by their sums.
func (v *verification) verify(ctx context.Context) (problems []string, err error) {
	problems, err = v.checkPages(ctx)
	if err != nil || problems != nil {
		return problems, err
	}
	if complete, err := v.c.hasColumns(ctx); err != nil || !complete {
		return nil, err
	}
	for after, more := int64(math.MinInt64), true; more; {
		err := v.c.transaction(ctx, func() (err error) {
			after, more, err = v.requests(ctx, after)
			return err
		})
		if err = cmp.Or(err, v.rest(ctx)); err != nil {
			return problems, err
		}
	}
	if err := errors.Join(v.checkNames(ctx), v.checkItems(ctx)); err != nil {
		return problems, err
	}
	for _, found := range []struct {
		count int
		what  string
	}{
		{v.records, "%d records are not as they were written"},
		{v.missed, "%d records are not found by a property, an asset, a score or a time that they have"},
		{v.texts, "%d texts, such as names of models or users, are not as they were written"},
		{v.items, "%d items of conversations are not as they were written"},
	} {
		if found.count > 0 {
			problems = append(problems, fmt.Sprintf(found.what, found.count))
		}
	}
	return problems, nil
}

// checkPages has SQLite check the pages and the indexes: of all the file at once, unless it rests, and then of one
// table after the other.
func (v *verification) checkPages(ctx context.Context) (problems []string, err error) {
	checks := []string{"1"}
	if v.rests > 0 {
		checks = []string{"sqlite_schema"}
		err = v.c.query(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table'", nil, func(row []driver.Value) error {
			checks = append(checks, fmt.Sprint(row[0]))
			return nil
		})
	}
	for i := 0; i < len(checks) && err == nil && problems == nil; i++ {
		err = v.c.query(ctx, "PRAGMA integrity_check("+checks[i]+")", nil, func(row []driver.Value) error {
			if found := fmt.Sprint(row[0]); found != "ok" && problems == nil {
				problems = append(problems, fmt.Sprintf("the integrity check says: %s; `sqlite3 <file> .recover` can save what is readable", found))
			}
			return nil
		})
		err = cmp.Or(err, v.rest(ctx))
	}
	return problems, err
}

// requests verifies the next records after a key.
func (v *verification) requests(ctx context.Context, after int64) (last int64, more bool, err error) {
	keys, err := v.c.integers(ctx, "SELECT n FROM requests WHERE n > ? ORDER BY n LIMIT ?", after, int64(verifiedAtOnce))
	if err != nil || len(keys) == 0 {
		return after, false, err
	}
	last = keys[len(keys)-1]
	rows, err := v.load(ctx, keys)
	if errors.Is(err, errDamaged) {
		rows, err = v.readable(ctx, keys)
	}
	if err == nil {
		err = v.findable(ctx, after, last, rows)
	}
	return last, true, err
}

// readable reads the records that can be read, and counts the others.
func (v *verification) readable(ctx context.Context, keys []int64) (all []*row, err error) {
	for _, n := range keys {
		rows, err := v.load(ctx, []int64{n})
		if errors.Is(err, errDamaged) {
			v.records++
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// label is a property, an asset or a score of a record.
type label struct {
	n          int64
	kind, name string
	value      float64 // of a score
}

// findable counts the records that queries by a label or a bucket miss. The keys of the rows are
// after a key, until last.
func (v *verification) findable(ctx context.Context, after, last int64, rows []*row) error {
	there := make(map[label]bool)
	note := func(row []driver.Value) error {
		there[label{row[0].(int64), row[1].(string), row[2].(string), row[3].(float64)}] = true
		return nil
	}
	window := []driver.Value{bucketOf(after), bucketOf(last), after, last}
	buckets, err := v.c.integers(ctx, "SELECT bucket FROM buckets WHERE bucket BETWEEN ? AND ?", window[:2]...)
	err = errors.Join(err,
		v.c.query(ctx, "SELECT n, kind, name, 0.0 FROM labels JOIN names ON id = label WHERE "+inBuckets+" AND n > ? AND n <= ?", window, note),
		v.c.query(ctx, "SELECT n, kind, k.name, value FROM names k CROSS JOIN scores s ON s.name = k.id WHERE kind = '"+scoreKind+"' AND n > ? AND n <= ?", window[2:], note),
	)
	if err != nil {
		return err
	}
	for _, r := range rows {
		found := slices.Contains(buckets, bucketOf(r.n))
		for name, value := range r.record.Properties {
			found = found && there[label{r.n, propertyKind(name), value, 0}]
		}
		for _, asset := range r.record.Assets {
			found = found && there[label{r.n, assetKind, asset, 0}]
		}
		for name, value := range r.record.Scores {
			found = found && there[label{r.n, scoreKind, name, value}]
		}
		if value, ok := r.record.Score(storage.FeedbackScore); ok {
			found = found && there[label{r.n, scoreKind, storage.FeedbackScore, value}]
		}
		if !found {
			v.missed++
		}
	}
	return nil
}

// checkNames counts the names that are not as they were written.
func (v *verification) checkNames(ctx context.Context) error {
	return v.eachRow(ctx, "SELECT id, name, hash FROM names WHERE id > ? ORDER BY id LIMIT ?", func(row []driver.Value) {
		if compareHash(row[0], row[1]) != nil {
			v.texts++
		}
	})
}

// checkItems counts the items of conversations that are not as they were written.
func (v *verification) checkItems(ctx context.Context) error {
	return v.eachRow(ctx, "SELECT n, "+columnList(itemColumns, "")+" FROM conversation_items WHERE n > ? ORDER BY n LIMIT ?", func(row []driver.Value) {
		if compareRow(itemColumns, row) != nil {
			v.items++
		}
	})
}

// eachRow calls check with each row of a query, without its first column. The query takes the first
// column of the last row, and how many rows to answer.
func (v *verification) eachRow(ctx context.Context, query string, check func(row []driver.Value)) error {
	for last, more := int64(math.MinInt64), true; more; {
		more = false
		err := v.c.query(ctx, query, []driver.Value{last, int64(verifiedAtOnce)}, func(row []driver.Value) error {
			last, more = row[0].(int64), true
			check(row[1:])
			return nil
		})
		if err = cmp.Or(err, v.rest(ctx)); err != nil {
			return err
		}
	}
	return nil
}
