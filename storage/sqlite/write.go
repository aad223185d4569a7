package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// writer is the one connection that writes, and what it remembers between
// batches.
type writer struct {
	mu     sync.Mutex // held during every use
	c      *conn
	bounds bounds
	names  dictionary
	rows   reader
	// file is the database. It is open as long as c. log is what is known of it and of its log.
	file *os.File
	log  logBegin
	// segment is where the last batch ended.
	segment uint64
	// lastBucket is the bucket of the last new request, if the database is known to have it.
	lastBucket  int64
	bucketKnown bool
	// pruned is how old names had to be when all were looked at last, pruneFrom is the
	// next block of them to look at, and unused are names to delete: hash << 32 | id.
	pruned    storage.Timestamp
	pruneFrom int
	unused    []int64
	// tails follows the changes of the transaction once it is committed: the keys of
	// requests that are new, gone or replaced.
	tails   *tailCache
	changed []int64
	// next is the record that is inserted, and labels are its labels.
	next   row
	labels []driver.Value
	sum    rowSum // of the row that is written
}

func newWriter(ctx context.Context, c *conn, tails *tailCache, b bounds) (*writer, error) {
	last, err := c.integer(ctx, "SELECT max(id) FROM names")
	names := dictionary{c: c, cached: cache[nameKey, nameEntry]{generation: nameGeneration}, next: last + 1, block: b.nameBlock}
	w := &writer{c: c, bounds: b, names: names, tails: tails, pruned: neverPruned}
	w.names.forgetOldest()
	w.rows = reader{c, newNameReader(), b}
	return w, err
}

// transaction does all of do or nothing.
func (w *writer) transaction(ctx context.Context, do func() error) error {
	var unlockCommits func()
	err := w.c.transaction(ctx, func() (err error) {
		if err = do(); err == nil {
			unlockCommits, err = w.tails.commitLock.lock(ctx)
		}
		return err
	})
	if err != nil {
		w.names.cached.clear() // some may have been rolled back
		w.bucketKnown = false
	} else {
		w.tails.noteCommit(w.changed)
	}
	if unlockCommits != nil {
		unlockCommits()
	}
	w.changed = w.changed[:0]
	return err
}

func (w *writer) write(ctx context.Context, b *storage.Batch) error {
	if b.End.Segment != w.segment {
		if _, err := w.c.exec(synchronousFull); err != nil {
			return err
		}
		defer func() { _, _ = w.c.exec(synchronousNormal) }() // failing, it is but slower
	}
	err := w.transaction(ctx, func() error {
		for _, r := range b.Records {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.record(ctx, r); err != nil {
				return fmt.Errorf("record %s: %w", r.ID, err)
			}
		}
		for _, a := range b.Annotations {
			if err := w.annotate(ctx, a); err != nil {
				return fmt.Errorf("annotation on %s: %w", a.RequestID, err)
			}
		}
		journal := []driver.Value{b.Journal[:], int64(b.End.Segment), int64(b.End.Ordinal)}
		_, err := w.c.exec("INSERT OR REPLACE INTO journals (journal, segment, ordinal, "+sumColumn+") VALUES (?, ?, ?, ?)", append(journal, w.sum.of(journalColumns, journal))...)
		return err
	})
	if err == nil {
		w.segment = b.End.Segment
	}
	return err
}

// record inserts a record, or replaces its earlier version.
func (w *writer) record(ctx context.Context, r *storage.Record) error {
	w.next = row{record: *r}
	next := &w.next
	next.record.Scores, next.record.Feedback = nil, nil // they come as annotations
	if err := w.insertSpanKeys(r); err != nil {
		return err
	}
	if inserted, err := w.insert(next); inserted || err != nil {
		return err
	}
	old, err := w.rows.byKey(ctx, r.Key())
	if err != nil {
		return err
	}
	if old.record.CreatedAt == next.record.CreatedAt {
		next.n = old.n
	}
	next.record.Scores, next.record.Feedback = old.record.Scores, old.record.Feedback
	next.annotated, next.annotatedAt = old.annotated, old.annotatedAt
	if len(old.annotated) > 0 {
		next.record.Properties = storage.Merge(next.record.Properties, old.annotated)
	}
	next.record.UpdatedAt = max(next.record.UpdatedAt, old.annotatedAt)
	return w.replace(old, next)
}

// replace puts a record in the place of its earlier version. Values in columns are left alone
// if they stay the same, as when the record is scored.
func (w *writer) replace(old, next *row) error {
	if next.n == old.n && sameRequest(old, next) {
		if err := w.removeRest(old); err != nil {
			return err
		}
		return w.insertRest(next)
	}
	if err := w.remove(old); err != nil {
		return err
	}
	_, err := w.insert(next)
	return err
}

// sameRequest reports whether two versions are the same in what columns have: in requests
// and in their properties.
func sameRequest(a, b *row) bool {
	if !maps.Equal(a.record.Properties, b.record.Properties) {
		return false
	}
	for i := range requestColumns {
		c := &requestColumns[i]
		if c.names != "" && c.text(a) != c.text(b) {
			return false
		}
		if c.encode == nil || c.names != "" {
			continue
		}
		x, y := c.encode(a), c.encode(b)
		if id, ok := x.([]byte); ok {
			if other, ok := y.([]byte); !ok || !bytes.Equal(id, other) {
				return false
			}
		} else if _, ok := y.([]byte); ok || x != y {
			return false
		}
	}
	return true
}

var (
	// A record takes the next free n of its millisecond, or of the first later one
	// that is not full. What fails ends the transaction, so FAIL undoes nothing by itself.
	insertRequest = "INSERT OR FAIL INTO requests (n, " + columnList(requestColumns, "") + `)
		VALUES (coalesce(?, (SELECT max(n) + 1 FROM requests WHERE n BETWEEN ? AND ?), ?), ` + parameterList(requestColumns) + `)
		ON CONFLICT DO NOTHING`
	insertDetails = "INSERT INTO details (n, " + columnList(detailColumns, "") + ") VALUES (?, " + parameterList(detailColumns) + ")"
)

// insert inserts a record unless one of its id is there.
func (w *writer) insert(r *row) (inserted bool, err error) {
	var n driver.Value
	if r.n != 0 {
		n = r.n
	}
	for first := columnar.FirstKey(r.record.CreatedAt); ; first += columnar.Sequence + 1 {
		request, err := w.c.prepare(insertRequest)
		if err != nil {
			return false, err
		}
		request.bind(n)
		request.bind(first)
		request.bind(first | columnar.Sequence)
		request.bind(first)
		result, err := w.run(request, requestColumns, r)
		if err != nil {
			return false, err
		}
		if changes, _ := result.RowsAffected(); changes > 0 {
			r.n, _ = result.LastInsertId()
			r.record.CreatedAt = columnar.CreatedAt(r.n)
			break
		}
		if _, err := w.rows.find(context.Background(), r.record.Key()); !errors.Is(err, storage.ErrNotFound) {
			return false, err
		}
		n = nil // the millisecond is full
	}
	w.changed = append(w.changed, r.n)
	if err := w.bucket(r.n); err != nil {
		return false, err
	}
	return true, w.insertRest(r)
}

// insertRest inserts what refers to a request.
func (w *writer) insertRest(r *row) error {
	details, err := w.c.prepare(insertDetails)
	if err != nil {
		return err
	}
	details.bind(r.n)
	if _, err := w.run(details, detailColumns, r); err != nil {
		return err
	}
	if err := w.insertLabels(r); err != nil {
		return err
	}
	return w.eachScore(r, func(name driver.Value, value float64) error {
		_, err := w.c.exec("INSERT INTO scores (name, n, value) VALUES (?, ?, ?)", name, r.n, value)
		return err
	})
}

// insertSomeLabels inserts labels of a request, by how many they are.
var insertSomeLabels = func() (statements [9]string) {
	statement, separator := "INSERT OR IGNORE INTO labels (bucket, label, n) VALUES", " "
	for i := 1; i < len(statements); i++ {
		statement += fmt.Sprintf("%s(?1, ?%d, ?2)", separator, 2+i)
		statements[i], separator = statement, ", "
	}
	return statements
}()

func (w *writer) insertLabels(r *row) error {
	w.labels = w.labels[:0]
	err := w.eachLabel(r, func(label driver.Value) error {
		w.labels = append(w.labels, label)
		return nil
	})
	if err != nil {
		return err
	}
	for labels := range slices.Chunk(w.labels, len(insertSomeLabels)-1) {
		s, err := w.c.prepare(insertSomeLabels[len(labels)])
		if err != nil {
			return err
		}
		s.bind(bucketOf(r.n))
		s.bind(r.n)
		for _, label := range labels {
			s.bind(label)
		}
		if _, err := s.exec(); err != nil {
			return err
		}
	}
	return nil
}

// run runs a statement. The columns of a row are its next arguments, and the last column is the
// sum of the others.
func (w *writer) run(s *statement, columns []column, r *row) (driver.Result, error) {
	for i := range columns[:len(columns)-1] {
		c := &columns[i]
		var v driver.Value
		if c.names == "" {
			v = c.encode(r)
		} else if name := c.text(r); name != "" {
			var err error
			if v, err = w.names.id(c.names, name, r.record.CreatedAt); err != nil {
				return nil, err
			}
		}
		w.sum.add(c, v)
		s.bind(v)
	}
	s.bind(w.sum.take())
	return s.exec()
}

// remove deletes a record with all that refers to it but names.
func (w *writer) remove(r *row) error {
	if err := w.removeRest(r); err != nil {
		return err
	}
	w.changed = append(w.changed, r.n)
	_, err := w.c.exec("DELETE FROM requests WHERE n = ?", r.n)
	return err
}

// removeRest deletes what refers to a request.
func (w *writer) removeRest(r *row) error {
	err := w.eachLabel(r, func(label driver.Value) error {
		_, err := w.c.exec("DELETE FROM labels WHERE bucket = ? AND label = ? AND n = ?", bucketOf(r.n), label, r.n)
		return err
	})
	if err != nil {
		return err
	}
	err = w.eachScore(r, func(name driver.Value, _ float64) error {
		_, err := w.c.exec("DELETE FROM scores WHERE name = ? AND n = ?", name, r.n)
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.c.exec("DELETE FROM details WHERE n = ?", r.n)
	return err
}

// eachLabel calls do for the record's properties and assets.
func (w *writer) eachLabel(r *row, do func(label driver.Value) error) error {
	label := func(kind, name string) error {
		id, err := w.names.id(kind, name, r.record.CreatedAt)
		if err != nil {
			return err
		}
		return do(id)
	}
	for name, value := range r.record.Properties {
		if err := label(propertyKind(name), value); err != nil {
			return err
		}
	}
	for _, asset := range r.record.Assets {
		if err := label(assetKind, asset); err != nil {
			return err
		}
	}
	return nil
}

// eachScore calls do for the record's scores. Feedback counts as a score.
func (w *writer) eachScore(r *row, do func(name driver.Value, value float64) error) error {
	for name, value := range r.record.Scores {
		id, err := w.names.id(scoreKind, name, r.record.CreatedAt)
		if err != nil {
			return err
		}
		if err := do(id, value); err != nil {
			return err
		}
	}
	value, ok := r.record.Score(storage.FeedbackScore)
	if !ok {
		return nil
	}
	id, err := w.names.id(scoreKind, storage.FeedbackScore, r.record.CreatedAt)
	if err != nil {
		return err
	}
	return do(id, value)
}

// bucket makes the bucket of a new request known.
func (w *writer) bucket(n int64) error {
	bucket := bucketOf(n)
	if w.bucketKnown && bucket == w.lastBucket {
		return nil
	}
	_, err := w.c.exec("INSERT OR IGNORE INTO buckets (bucket) VALUES (?)", bucket)
	w.lastBucket, w.bucketKnown = bucket, err == nil
	return err
}
