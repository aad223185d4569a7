package sqlite

import (
	"database/sql/driver"

	"github.com/weirhq/weir/storage"
)

// newestSessions are the rows that a query needs: those of the newest sessions,
// when it asks for these among all.
func newestSessions(x *rows, q *storage.GroupQuery) (storage.Rows, error) {
	if q.Apart || len(q.By) == 0 || q.By[0].Name != storage.BySession || q.Filter != (storage.All{}) || q.Window != storage.Always ||
		q.Top.By != storage.NewestGroups || q.Top.Count == 0 || q.Top.Count > maxNewest {
		return x, nil
	}
	found, err := x.newest(q.Top)
	if err != nil || found == nil {
		return x, err
	}
	all := x.dimensions[0].number
	x.dimensions[0].number = func(c *chunk, row int) int {
		if !found.sessions[session{c.at(sessionColumn, row), c.at(sessionNameColumn, row)}] {
			return 0
		}
		return all(c, row)
	}
	return found, nil
}

const (
	// maxNewest bounds the sessions that are looked for, and maxNewestRows the requests
	// that are looked at; beyond, reading all is as fast.
	maxNewest     = 11_000
	maxNewestRows = 200_000
)

// newestRows are the rows of a few sessions.
type newestRows struct {
	*rows
	sessions map[session]bool
	window   storage.Window
}

// newest finds the sessions that a Top is about: so many, or more if some began at one
// time. It goes back in time until as many have begun, and answers nil when it gave up.
func (x *rows) newest(top storage.Top) (*newestRows, error) {
	until := storage.Always.To
	if top.Until != nil {
		until = *top.Until
	}
	seen := make(map[session]beginning)
	since, begun, rows := storage.Always.From, 0, 0
	err := loader{x.ctx, x.r}.query("SELECT n, session, session_name FROM requests WHERE n <= ? AND +org = ? AND +session IS NOT NULL ORDER BY n DESC",
		[]driver.Value{lastN(until), int64(x.orgID)}, func(row []driver.Value) (err error) {
			n := row[0].(int64)
			if rows++; createdAt(n) < since || rows > maxNewestRows {
				return errStop
			}
			name, _ := row[2].(int64)
			s := session{uint32(row[1].(int64)), uint32(name)}
			b, ok := seen[s]
			if !ok {
				if b, err = x.beginning(row[1], row[2]); err != nil {
					return err
				}
				seen[s] = b
			}
			if b.begun && n == b.answered && createdAt(n) < until {
				if begun++; begun == top.Count {
					since = createdAt(n)
				}
			}
			return nil
		})
	if err != nil || rows > maxNewestRows {
		return nil, err
	}
	found := &newestRows{rows: x, sessions: make(map[session]bool), window: storage.Window{From: storage.Always.To, To: storage.Always.From}}
	for s, b := range seen {
		if at := createdAt(b.answered); b.begun && at >= since && at <= until {
			found.sessions[s] = true
			found.window.From, found.window.To = min(found.window.From, createdAt(b.first)), max(found.window.To, createdAt(b.last))
		}
	}
	return found, nil
}

// beginning are keys of the requests of a session: the first and the last one, and the
// first one that is no attempt that did not answer, if it has begun with one.
type beginning struct {
	first, last, answered int64
	begun                 bool
}

func (x *rows) beginning(id, name driver.Value) (b beginning, err error) {
	const query = "SELECT n, attempt_of IS NULL FROM requests WHERE session = ? AND org = ? AND session_name IS ? ORDER BY n"
	args := []driver.Value{id, int64(x.orgID), name}
	rows := 0
	err = x.r.c.query(x.ctx, query, args, func(row []driver.Value) error {
		n := row[0].(int64)
		if rows++; rows == 1 {
			b.first = n
		}
		if b.begun = row[1].(int64) != 0; !b.begun {
			return nil
		}
		b.answered = n
		return errStop
	})
	if err == nil {
		err = x.r.c.query(x.ctx, query+" DESC LIMIT 1", args, func(row []driver.Value) error {
			b.last = row[0].(int64)
			return nil
		})
	}
	return b, err
}

// Scan scans no further than the sessions reach.
func (x *newestRows) Scan(f storage.Filter, w storage.Window, parts storage.RowParts, each func(*storage.Row) bool) error {
	w.From, w.To = max(w.From, x.window.From), min(w.To, x.window.To)
	return x.rows.Scan(f, w, parts, func(r *storage.Row) bool { return r.Groups[0] == 0 || each(r) })
}

var _ storage.Rows = (*newestRows)(nil)
