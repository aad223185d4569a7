package sqlite

import (
	"database/sql/driver"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// maxNewestRows bounds the requests that Newest reads. With more, a query of all requests is as fast.
const maxNewestRows = 200_000

// Newest returns the sessions that begin last, up to top.Until: top.Count of them, and those that
// begin at the same time as the last of these. It reads requests backwards in time, and returns
// nil if it finds too few sessions in maxNewestRows.
func (s source) Newest(top storage.Top) (*columnar.NewestSessions, error) {
	defer s.lock()()
	until := storage.Always.To
	if top.Until != nil {
		until = *top.Until
	}
	seen := make(map[columnar.Session]sessionBounds)
	since, count, rows := storage.Always.From, 0, 0 // since is the begin of the last session of top.Count
	err := s.query("SELECT n, session, session_name FROM requests WHERE n <= ? AND +org = ? AND +session IS NOT NULL ORDER BY n DESC",
		[]driver.Value{columnar.LastKey(until), int64(s.orgID)}, func(row []driver.Value) (err error) {
			n := row[0].(int64)
			if rows++; columnar.CreatedAt(n) < since || rows > maxNewestRows {
				return errStop
			}
			name, _ := row[2].(int64)
			id := columnar.Session{ID: uint32(row[1].(int64)), Name: uint32(name)}
			b, ok := seen[id]
			if !ok {
				if b, err = s.boundsOf(row[1], row[2]); err != nil {
					return err
				}
				seen[id] = b
			}
			if b.begun && n == b.begin && columnar.CreatedAt(n) < until {
				if count++; count == top.Count {
					since = columnar.CreatedAt(n)
				}
			}
			return nil
		})
	if err != nil || rows > maxNewestRows {
		return nil, err
	}
	found := &columnar.NewestSessions{Sessions: make(map[columnar.Session]bool), Window: storage.Window{From: storage.Always.To, To: storage.Always.From}}
	for id, b := range seen {
		if at := columnar.CreatedAt(b.begin); b.begun && at >= since && at <= until {
			found.Sessions[id] = true
			found.Window.From, found.Window.To = min(found.Window.From, columnar.CreatedAt(b.first)), max(found.Window.To, columnar.CreatedAt(b.last))
		}
	}
	return found, nil
}

// sessionBounds are keys of requests of a session.
type sessionBounds struct {
	first, last int64
	begin       int64 // the first request that is not a failed attempt; 0 unless begun
	begun       bool
}

// boundsOf returns the bounds of a session.
func (s source) boundsOf(id, name driver.Value) (b sessionBounds, err error) {
	const query = "SELECT n, attempt_of IS NULL FROM requests WHERE session = ? AND org = ? AND session_name IS ? ORDER BY n"
	args := []driver.Value{id, int64(s.orgID), name}
	rows := 0
	err = s.r.c.query(s.ctx, query, args, func(row []driver.Value) error {
		n := row[0].(int64)
		if rows++; rows == 1 {
			b.first = n
		}
		if b.begun = row[1].(int64) != 0; !b.begun {
			return nil
		}
		b.begin = n
		return errStop
	})
	if err == nil {
		err = s.r.c.query(s.ctx, query+" DESC LIMIT 1", args, func(row []driver.Value) error {
			b.last = row[0].(int64)
			return nil
		})
	}
	return b, err
}
