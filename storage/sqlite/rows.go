package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// rows are storage.Rows read from one snapshot of the database.
type rows struct {
	ctx      context.Context
	r        reader
	contents storage.Contents
	by       storage.Grouping
	org      string

	groups map[group]int
	keys   []group
	// names are those of the first len(named) groups; tags those of the sessions.
	names map[int64]string
	tags  map[string]string
	// err is the first error of Key, which has none to return.
	err error
}

// group is a user or score, by its name's id, or a session with its name.
type group struct{ id, name int64 }

func newRows(ctx context.Context, r reader, contents storage.Contents, by storage.Grouping, org string) *rows {
	return &rows{ctx: ctx, r: r, contents: contents, by: by, org: org, groups: make(map[group]int)}
}

// groupColumns are what rows are grouped by, and the value of a score.
var groupColumns = map[storage.Grouping]string{
	storage.ByUser:    "r.user, NULL, NULL FROM requests r WHERE r.user IS NOT NULL",
	storage.BySession: "r.session, r.session_name, NULL FROM requests r WHERE r.session IS NOT NULL",
	storage.ByScore:   "s.name, NULL, s.value FROM scores s CROSS JOIN requests r ON r.n = s.n WHERE 1",
}

// Scan reads the requests that SQL chooses, and matches those that it cannot
// decide on.
func (x *rows) Scan(f storage.Filter, w storage.Window, each func(*storage.Row) bool) error {
	where := condition{ctx: x.ctx, r: x.r}
	where.write(" AND r.org = ? AND r.n >= ?", where.lookup("org", x.org), firstN(w.From))
	if w.To < storage.Always.To {
		where.write(" AND r.n < ?", firstN(w.To+1))
	}
	where.write(" AND ")
	where.filter(f)
	if where.err != nil {
		return where.err
	}
	query := "SELECT r.n, r.attempt_of IS NOT NULL, r.status, r.latency, r.cost, r.input, r.output, r.responded_at, " +
		groupColumns[x.by] + where.sql.String()
	return x.r.c.query(x.ctx, query, where.args, func(v []driver.Value) error {
		n := v[0].(int64)
		if where.inexact {
			if ok, err := x.matches(f, n); !ok {
				return err
			}
		}
		row := storage.Row{
			CreatedAt: createdAt(n),
			Attempt:   v[1].(int64) != 0,
			Status:    known(v[2]),
			Latency:   known(v[3]),
			Cost:      known(v[4]),
			Input:     known(v[5]),
			Output:    known(v[6]),
		}
		row.RespondedAt = storage.Timestamp(known(v[7]).N)
		row.Group = x.group(group{known(v[8]).N, known(v[9]).N})
		row.Score, _ = v[10].(float64)
		if !each(&row) {
			return errStop
		}
		return nil
	})
}

func known(v driver.Value) plugins.Count {
	n, ok := v.(int64)
	return plugins.Count{N: n, Valid: ok}
}

// matches tells whether the filter is true of a request.
func (x *rows) matches(f storage.Filter, n int64) (bool, error) {
	found, err := x.r.load(x.ctx, []int64{n})
	if err != nil || len(found) == 0 {
		return false, err
	}
	r := &found[0].Record
	ok := storage.Match(f, r, func() (c *storage.Content) {
		c, err = x.contents.Content(x.ctx, r.Content)
		return c
	})
	return ok && err == nil, err
}

func (x *rows) group(g group) int {
	i, ok := x.groups[g]
	if !ok {
		i = len(x.keys)
		x.groups[g] = i
		x.keys = append(x.keys, g)
	}
	return i
}

// Key reads the names of all groups when it is first asked for one.
func (x *rows) Key(i int) storage.Key {
	if x.names == nil {
		x.err = x.name()
	}
	g := x.keys[i]
	k := storage.Key{ID: x.names[g.id], Name: x.names[g.name]}
	k.Tag = x.tags[k.ID]
	return k
}

func (x *rows) name() error {
	x.names, x.tags = make(map[int64]string), make(map[string]string)
	for _, g := range x.keys {
		x.names[g.id], x.names[g.name] = "", ""
	}
	delete(x.names, 0)
	if err := x.r.names.names(x.ctx, x.r.c, x.names); err != nil || x.by != storage.BySession {
		return err
	}
	return x.r.c.query(x.ctx, "SELECT session, tag FROM session_tags WHERE org = ?", []driver.Value{x.org}, func(row []driver.Value) error {
		x.tags[row[0].(string)] = row[1].(string)
		return nil
	})
}

var _ storage.Rows = (*rows)(nil)
