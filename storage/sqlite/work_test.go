//go:build cgo && linux

package sqlite

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlite/internal/vmsteps"
)

var workFilters = flag.Int("sqlite.filters", 40, "random pairs and trees of filters whose work TestNoFilterIsAProduct counts")

// stepsPerRecord bounds the instructions of SQLite for each record of the store, whatever the
// query is: some read a record more than once.
const stepsPerRecord = 300

// steps counts the instructions of the next connection that reads, during do.
func steps(t *testing.T, b *Backend, do func() error) int {
	t.Helper()
	c, err := b.readers.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.readers.give(c) // the connection that was used last is the next
	n := vmsteps.Count(c.Conn.(*sqlite3.SQLiteConn), func() { err = do() })
	if err != nil {
		t.Error(err)
	}
	return n
}

// spread makes records of one organisation over the days of a quarter, in order of time.
func spread(r *rand.Rand, n int) ([]*storage.Record, storagetest.Contents) {
	records, contents := storagetest.Records(r, n)
	begin := storage.Millis(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	for i, rec := range records {
		later := begin + storage.Timestamp(int64(i)*benchmarkSpan.Milliseconds()/int64(n)) - rec.CreatedAt
		rec.Org = "acme"
		rec.CreatedAt += later
		rec.UpdatedAt += later
		if rec.RespondedAt != 0 {
			rec.RespondedAt += later
		}
		if rec.Feedback != nil {
			rec.Feedback.CreatedAt = rec.UpdatedAt
		}
	}
	return records, contents
}

// TestSearchReadsOnlyContent holds that a search does not walk records that have no content.
func TestSearchReadsOnlyContent(t *testing.T) {
	b := newBackend(t)
	batch := newTraffic(3000).batch(3000)
	for i, rec := range batch.Records {
		if i%30 != 0 {
			rec.Content = storage.ContentRef{}
		}
	}
	write(t, b, batch)
	for name, f := range map[string]storage.Filter{
		"a word":                 &storage.Leaf{Field: field("request_body"), Op: storage.Contains, Text: "word"},
		"a word, and a model":    and(&storage.Leaf{Field: field("request_body"), Op: storage.Contains, Text: "word"}, &storage.Leaf{Field: field("model"), Op: storage.Contains, Text: "e"}),
		"a word in one or other": or(&storage.Leaf{Field: field("request_body"), Op: storage.Contains, Text: "word"}, &storage.Leaf{Field: field("response_body"), Op: storage.Contains, Text: "word"}),
	} {
		n := steps(t, b, func() error {
			_, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "default", Filter: f, Limit: 10})
			return err
		})
		if n > 10_000 {
			t.Errorf("%s takes %d steps for 100 records with content", name, n)
		}
	}
}

// Of several bounds of time, the narrowest say which rows are read.
func TestTheNarrowestBoundsCount(t *testing.T) {
	b := newBackend(t)
	records, _ := spread(rand.New(rand.NewPCG(1, 1)), 3000)
	write(t, b, &storage.Batch{Records: records})
	at := func(op storage.Operator, i int) storage.Filter {
		return &storage.Leaf{Field: field("request_created_at"), Op: op, Time: records[i].CreatedAt}
	}
	for name, f := range map[string]storage.Filter{
		"lower bounds": and(at(storage.GTE, 0), and(at(storage.GT, 100), at(storage.GTE, 2990))),
		"upper bounds": and(at(storage.LTE, 2999), and(at(storage.LT, 2900), at(storage.LTE, 10))),
		"both":         and(and(at(storage.GTE, 0), at(storage.LTE, 2999)), and(at(storage.GTE, 1500), at(storage.LT, 1510))),
	} {
		n := steps(t, b, func() error {
			_, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: f, Limit: 100})
			return err
		})
		if n > 5_000 {
			t.Errorf("%s: %d steps for some ten records of 3,000", name, n)
		}
	}
}
