// Package columnar answers queries that group the requests of one organisation. It reads
// columns of four bytes. Files have the columns of older requests, a Tail in memory has the
// newest requests, and a Source, which is a database, has what both lack.
package columnar

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/storage"
)

// Requests has all requests by their keys.
type Requests interface {
	// Between appends at most limit requests with keys in (after, to], in the order of their keys,
	// each to what chunk returns then. rows is the number of requests.
	Between(after, to int64, limit int, chunk func() *Chunk) (rows int, err error)
	// Keys appends those requests of the given keys that exist, as Between does.
	Keys(keys []int64, chunk func() *Chunk) error
}

// Source is a database in the state that a query sees. Texts are known by the ids of
// their names; 0 is the id of a name that no request has. Several goroutines may call its methods at a
// time; what a method calls must not call another.
type Source interface {
	Requests
	// Regions are the files that have requests with keys between two keys, in the order
	// of the keys.
	Regions(from, to int64) ([]Region, error)
	// Changed returns the keys in (after, to], ascending, of the requests that have changed since
	// the file of their region was written.
	Changed(after, to int64) ([]int64, error)
	// Damaged takes note that the file of a region cannot be read.
	Damaged(Region)

	// Name is the id of a text in a column that has names of the kind.
	Name(kind, text string) (uint32, error)
	// PropertyValue is the id of a value of a property.
	PropertyValue(property, text string) (uint32, error)
	// Texts are the texts of ids.
	Texts(ids []uint32) ([]string, error)
	// Properties calls each with the requests between two keys that have the property,
	// and the id of its value.
	Properties(property string, from, to int64, each func(key int64, value uint32)) error
	// WithProperty are the keys between two keys of the requests that have the value of
	// a property.
	WithProperty(value uint32, from, to int64) ([]int64, error)
	// Scores calls each with the scores of requests between two keys.
	Scores(from, to int64, each func(Score)) error
	// Chosen are the keys between two keys, ascending, of the organisation's requests that
	// match the filter. If scored is true, only requests with scores are chosen.
	Chosen(f storage.Filter, from, to int64, scored bool) ([]int64, error)
	// Roots calls each for every id whose request exists: place is the id's index in ids, and
	// key the request's key.
	Roots(ids []string, each func(place int, key int64)) error
	// Newest are the sessions that a Top is about, nil if looking at all requests is as
	// fast.
	Newest(storage.Top) (*NewestSessions, error)
}

// Region is the requests with keys in (After, Last]. File is the name of the file that
// has them, "" if no file has.
type Region struct {
	After, Last int64
	File        string
}

// Engine answers queries. Its options must not change while it does.
type Engine struct {
	// Dir is the directory of the files.
	Dir string
	// ChunkRows bounds the rows of a chunk, and so of a file.
	ChunkRows int
	// MaxProperties bounds the properties, and the scores, that a file has as columns: clients
	// name them.
	MaxProperties int
	// Limits bounds the groups that queries have in memory.
	Limits Limits
	// turn has an element while a query has its turn to have many groups.
	turn chan struct{}
	// helpers has an element for each goroutine that helps a query to add up.
	helpers chan struct{}
	// readers are the *fileReaders that no query uses.
	readers sync.Pool
	memory  *memory
}

// New returns an engine on the files in a directory.
func New(dir string) *Engine {
	return &Engine{
		Dir: dir, ChunkRows: 64 << 10, MaxProperties: 64, Limits: StandardRoom, turn: make(chan struct{}, 1),
		helpers: make(chan struct{}, lowpriority.Processors()-1), memory: newMemory(memoryLimit),
	}
}

// Forget forgets what is known about a file, which nobody needs any more.
func (e *Engine) Forget(file string) { e.memory.forget(file) }

// Query is a query of an organisation in one state of the store.
type Query struct {
	*storage.GroupQuery
	// Org is the id of the organisation's name, 0 if it has no requests.
	Org uint32
	// Tags are the tags of sessions by their ids, nil if the query does not ask for them.
	Tags map[string]string
	// Source is the database. Tail has the newest requests, nil if there are too many.
	Source Source
	Tail   *Tail
}

// Answers reports whether the columns answer a query.
func Answers(q *storage.GroupQuery) bool {
	by, ok := q.RowDimensions()
	return ok && inColumns(q, by)
}

// Answer answers a query that Answers is true of, in a turn of InTurn.
func (t *Turn) Answer(ctx context.Context, q *Query, each func(*storage.GroupTotals) error) error {
	by, _ := q.RowDimensions()
	x := &rows{ctx: ctx, source: q.Source, org: q.Org, tail: q.Tail, turn: t}
	for _, d := range by {
		if d.Name == storage.ByPropertyName {
			continue
		}
		x.scores = d.Name == storage.ByScore
		grouped, err := x.dimension(q.GroupQuery, d, q.Tags)
		if err != nil {
			return err
		}
		x.dimensions = append(x.dimensions, grouped)
	}
	if slices.Contains(by, storage.Dimension{Name: storage.ByPropertyName}) {
		err := groupPropertyNames(q.GroupQuery, x, each)
		return cmp.Or(x.failed, err)
	}
	err := x.onlyNewest(q.GroupQuery)
	if err == nil {
		err = storage.GroupRows(q.GroupQuery, x, each)
	}
	return cmp.Or(x.failed, err)
}

// InTurn calls do, and once more when it fails because it has many groups while another
// query has its turn to have many.
func (e *Engine) InTurn(ctx context.Context, do func(*Turn) error) error {
	t := &Turn{engine: e}
	defer t.end()
	err := do(t)
	if errors.Is(err, errNotItsTurn) {
		if err = t.wait(ctx); err == nil {
			err = do(t)
		}
	}
	return err
}
