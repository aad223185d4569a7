package columnar

import "github.com/weirhq/weir/storage"

// NewestSessions are a few sessions, and the window of their requests.
type NewestSessions struct {
	Sessions map[Session]bool
	Window   storage.Window
}

// newestSessions are the rows that a query needs. If the query asks for the newest of all
// sessions, these are the rows of the newest sessions, else all rows.
func newestSessions(x *rows, q *storage.GroupQuery) (storage.Rows, error) {
	if q.Apart || len(q.By) == 0 || q.By[0].Name != storage.BySession || q.Filter != (storage.All{}) || q.Window != storage.Always ||
		q.Top.By != storage.NewestGroups || q.Top.Count == 0 || q.Top.Count > maxNewest {
		return x, nil
	}
	found, err := x.source.Newest(q.Top)
	if err != nil || found == nil {
		return x, err
	}
	all := x.dimensions[0].number
	x.dimensions[0].number = func(c *Chunk, row int) int {
		if !found.Sessions[Session{c.at(sessionColumn, row), c.at(sessionNameColumn, row)}] {
			return 0
		}
		return all(c, row)
	}
	return &newestRows{x, found.Window}, nil
}

// maxNewest bounds the sessions that are looked for; beyond, to read all is as fast.
const maxNewest = 11_000

// newestRows are the rows of a few sessions. All rows are in a window.
type newestRows struct {
	*rows
	window storage.Window
}

// Scan scans no further than the sessions reach.
func (x *newestRows) Scan(f storage.Filter, w storage.Window, parts storage.RowParts, each func(*storage.Row) bool) error {
	w.From, w.To = max(w.From, x.window.From), min(w.To, x.window.To)
	return x.rows.Scan(f, w, parts, func(r *storage.Row) bool { return r.Groups[0] == 0 || each(r) })
}

var _ storage.Rows = (*newestRows)(nil)
