package sqlite

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/weirhq/weir/storage"
)

// newest knows when each session began, so that its newest can be found without
// reading all requests. It follows a table from one query to the next.
type newest struct {
	mu       sync.Mutex
	sessions []beginning // by number
	// latest has, for each newestBlock of sessions, a moment after which none
	// began.
	latest []storage.Timestamp
	// chunk and row are where the rows begin that have not been read; removals
	// are those of the table that was read.
	chunk, row, removals int
}

const newestBlock = 1024

// beginning is the beginning of a session.
type beginning struct {
	n   int64 // the least key
	to  int64 // the largest
	at  storage.Timestamp
	org uint32
	// begun is false while the session has only attempts that did not answer.
	begun bool
}

// of finds the sessions of an organisation that a Top is about: so many, or more if
// some began at one time; and between which keys their requests are. It is false of a
// table older than one that it read, and when ctx ends.
func (x *newest) of(ctx context.Context, t *table, org uint32, top storage.Top) (sessions []int, from, to int64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.follow(ctx, t) {
		return nil, 0, 0, false
	}
	until := storage.Always.To
	if top.Until != nil {
		until = *top.Until
	}
	since := x.since(org, top.Count, until)
	for i, s := range x.begun(org, &since) {
		if s.at > until {
			continue
		}
		if len(sessions) == 0 {
			from, to = s.n, s.to
		}
		from, to = min(from, s.n), max(to, s.to)
		sessions = append(sessions, i)
	}
	return sessions, from, to, true
}

// since is when the last but so many sessions of an organisation began, of those that
// began before until.
func (x *newest) since(org uint32, count int, until storage.Timestamp) storage.Timestamp {
	var starts []storage.Timestamp
	since := storage.Always.From
	sift := func() {
		slices.SortFunc(starts, func(a, b storage.Timestamp) int { return cmp.Compare(b, a) })
		if len(starts) >= count {
			starts = starts[:count]
			since = starts[count-1]
		}
	}
	for _, s := range x.begun(org, &since) {
		if s.at >= until {
			continue
		}
		if starts = append(starts, s.at); len(starts) > 2*count+1000 {
			sift()
		}
	}
	sift()
	return since
}

// begun yields the sessions of an organisation that began at since, which may
// change meanwhile, or later. The newest mostly have the largest numbers, which
// come first.
func (x *newest) begun(org uint32, since *storage.Timestamp) iter.Seq2[int, *beginning] {
	return func(yield func(int, *beginning) bool) {
		for block := len(x.latest) - 1; block >= 0; block-- {
			if x.latest[block] < *since {
				continue
			}
			first := block * newestBlock
			for i := min(first+newestBlock, len(x.sessions)) - 1; i >= first; i-- {
				if s := &x.sessions[i]; s.org == org && s.begun && s.at >= *since && !yield(i, s) {
					return
				}
			}
		}
	}
}

// follow reads what the table has that it had not before.
func (x *newest) follow(ctx context.Context, t *table) bool {
	switch chunks := len(t.requests); {
	case x.removals < t.removals:
		x.sessions, x.latest, x.chunk, x.row, x.removals = nil, nil, 0, 0, t.removals
	case x.removals > t.removals, x.chunk > chunks, x.chunk == chunks && x.row > 0,
		x.chunk == chunks-1 && x.row > len(t.requests[x.chunk].n):
		return false
	}
	for ; x.chunk < len(t.requests); x.chunk, x.row = x.chunk+1, 0 {
		if ctx.Err() != nil {
			return false
		}
		c := &t.requests[x.chunk]
		for ; x.row < len(c.n); x.row++ {
			x.add(c, x.row)
		}
		if len(c.n) < chunkRows {
			break // it may grow
		}
	}
	return true
}

func (x *newest) add(c *chunk, row int) {
	session := int(c.at(sessionColumn, row))
	if session == 0 || c.org[row] == 0 {
		return
	}
	if session >= len(x.sessions) {
		x.sessions = append(x.sessions, make([]beginning, session+1-len(x.sessions))...)
	}
	s, n := &x.sessions[session], c.n[row]
	if s.org == 0 {
		s.org, s.n, s.to = c.org[row], n, n
	}
	s.n, s.to = min(s.n, n), max(s.to, n)
	if at := createdAt(n); c.at(attemptColumn, row) == 0 && (!s.begun || at < s.at) {
		s.at, s.begun = at, true
		block := session / newestBlock
		for block >= len(x.latest) {
			x.latest = append(x.latest, storage.Always.From)
		}
		x.latest[block] = max(x.latest[block], at)
	}
}

// newestSessions are the rows that a query needs: those of the newest sessions,
// when it asks for these among all.
func newestSessions(x *rows, q *storage.GroupQuery) storage.Rows {
	if x.loader != nil || q.Apart || len(q.By) == 0 || q.By[0].Name != storage.BySession || q.Filter != (storage.All{}) || q.Window != storage.Always ||
		q.Top.By != storage.NewestGroups || q.Top.Count == 0 || q.Top.Count > maxNewest {
		return x
	}
	sessions, from, to, ok := x.table.newest.of(x.ctx, x.table, x.table.orgs.find(x.org), q.Top)
	if !ok {
		return x
	}
	r := &newestRows{rows: x, sessions: sessions, window: storage.Window{From: createdAt(from), To: createdAt(to)}, groups: make(map[int]int)}
	for i, session := range sessions {
		r.groups[session] = i + 1
	}
	return r
}

// maxNewest bounds the sessions that are looked for; beyond, reading all is as
// fast.
const maxNewest = 11_000

// newestRows are the rows of a few sessions.
type newestRows struct {
	*rows
	window   storage.Window
	sessions []int       // by group, from 1
	groups   map[int]int // by session
}

// Scan scans no further than the sessions reach.
func (x *newestRows) Scan(f storage.Filter, w storage.Window, parts storage.RowParts, each func(*storage.Row) bool) error {
	w.From, w.To = max(w.From, x.window.From), min(w.To, x.window.To)
	return x.rows.Scan(f, w, parts, func(r *storage.Row) bool {
		group, ok := x.groups[r.Groups[0]]
		if !ok {
			return true
		}
		r.Groups[0] = group
		return each(r)
	})
}

// Key is the key of a session.
func (x *newestRows) Key(dimension, group int) storage.Key {
	return x.rows.Key(dimension, x.sessions[group-1])
}

var _ storage.Rows = (*newestRows)(nil)
