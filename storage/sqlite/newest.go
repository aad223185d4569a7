package sqlite

import (
	"database/sql/driver"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// maxNewestRows bounds the requests that Newest looks at; beyond, to read all is as fast.
const maxNewestRows = 200_000

// Newest finds the sessions that a Top is about. There are more than Top.Count if sessions began
// at the same time. Newest goes back in time until enough sessions have begun, and answers nil
// when it gave up.
func (s source) Newest(top storage.Top) (*columnar.NewestSessions, error) {
	defer s.lock()()
	until := storage.Always.To
	if top.Until != nil {
		until = *top.Until
	}
	seen := make(map[columnar.Session]beginning)
	since, begun, rows := storage.Always.From, 0, 0
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
				if b, err = s.beginning(row[1], row[2]); err != nil {
					return err
				}
				seen[id] = b
			}
			if b.begun && n == b.answered && columnar.CreatedAt(n) < until {
				if begun++; begun == top.Count {
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
		if at := columnar.CreatedAt(b.answered); b.begun && at >= since && at <= until {
			found.Sessions[id] = true
			found.Window.From, found.Window.To = min(found.Window.From, columnar.CreatedAt(b.first)), max(found.Window.To, columnar.CreatedAt(b.last))
		}
	}
	return found, nil
}

// beginning has keys of requests of a session: the first and the last request. answered is the
// first request that is no attempt without an answer, if begun says that there is one.
type beginning struct {
	first, last, answered int64
	begun                 bool
}

func (s source) beginning(id, name driver.Value) (b beginning, err error) {
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
		b.answered = n
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
