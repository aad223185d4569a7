package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
)

// loader reads the database into a table, a chunk at a time. It numbers texts by
// their ids of names, and then reads those that are new.
type loader struct {
	ctx     context.Context
	r       reader
	table   *table
	numbers numbers // of sessions, the first of each id
	// sessions are those of the table, by number, and others are the numbers of
	// those that share their id with another organisation's or have another name.
	sessions []sessionIDs
	others   map[sessionIDs]uint32
	unread   []unread
}

// numbers are those of texts by id of names, in pages: ids that are used together
// are mostly near each other.
type numbers map[int64]*[numbersPage]uint32

const numbersPage = 1024

func (x numbers) at(id int64) *uint32 {
	page, ok := x[id/numbersPage]
	if !ok {
		page = new([numbersPage]uint32)
		x[id/numbersPage] = page
	}
	return &page[uint64(id)%numbersPage]
}

// sessionIDs are what the database has in place of a session's texts; name is 0
// if it has no name.
type sessionIDs struct {
	org      uint32
	id, name int64
}

// unread is an interned text whose texts have not been read yet.
type unread struct {
	texts    *internedTexts
	number   uint32
	id, name int64
}

func newLoader(ctx context.Context, r reader, t *table) *loader {
	return &loader{ctx: ctx, r: r, table: t, numbers: make(numbers), others: make(map[sessionIDs]uint32)}
}

// query looks at the context now and then, not at each row as the driver does,
// which would cost a tenth. The rows lie one behind the other, and each is wanted.
func (l *loader) query(query string, args []driver.Value, each func(row []driver.Value) error) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	rows := 0
	return l.r.c.query(context.WithoutCancel(l.ctx), query, args, func(row []driver.Value) error {
		if rows++; rows%loadedBetweenChecks == 0 {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			runtime.Gosched()
		}
		return each(row)
	})
}

// loadedBetweenChecks is the number of rows that are read between two looks at the
// context: a few milliseconds.
const loadedBetweenChecks = 2 << 10

var loadRequests = "SELECT n, org, session_name, " + strings.Join(cachedNames[:], ", ") + " FROM requests WHERE n > ? ORDER BY n LIMIT ?"

// requests appends the requests after a key to the table, a chunk at most, and
// answers the last one's; it answers errStop when there are no more.
func (l *loader) requests(after int64) (last int64, err error) {
	last = after
	t, rows := l.table, 0
	err = l.query(loadRequests, []driver.Value{after, int64(chunkRows)}, func(row []driver.Value) error {
		last = row[0].(int64)
		rows++
		org := l.number(&t.orgs, row[1])
		c := room(&t.requests)
		c.begin(last, org)
		for i, v := range row[3:] {
			switch {
			case i == sessionColumn:
				c.append(i, l.session(org, v, row[2]))
			case cachedColumns[i].names != "":
				c.append(i, l.number(t.textsIn(i), v))
			default:
				c.keep(i, v)
			}
		}
		return nil
	})
	return last, l.end(rows, err)
}

// scorePlace is the key of a score.
type scorePlace struct{ name, n int64 }

var firstScore = scorePlace{n: math.MinInt64}

const loadScores = `SELECT s.n, s.name, r.org, s.value FROM
	(SELECT * FROM scores WHERE (name, n) > (?, ?) ORDER BY name, n LIMIT ?) s JOIN requests r ON r.n = s.n ORDER BY s.name, s.n`

// scores appends the scores after a place to the table, as requests does.
func (l *loader) scores(after scorePlace) (last scorePlace, err error) {
	last = after
	t, rows := l.table, 0
	args := []driver.Value{after.name, after.n, int64(chunkRows)}
	err = l.query(loadScores, args, func(row []driver.Value) error {
		last = scorePlace{row[1].(int64), row[0].(int64)}
		rows++
		c := room(&t.scores)
		c.begin(last.n, l.number(&t.orgs, row[2]))
		c.append(scoreColumn, l.number(t.textsIn(scoreColumn), row[1]))
		c.scores = append(c.scores, row[3].(float64))
		return nil
	})
	return last, l.end(rows, err)
}

// end ends a chunk.
func (l *loader) end(rows int, err error) error {
	if err == nil {
		err = l.readTexts()
	}
	if err == nil && rows < chunkRows {
		err = errStop
	}
	return err
}

// number is the number of the text with an id of names, 0 without one.
func (l *loader) number(t *internedTexts, name driver.Value) uint32 {
	id, ok := name.(int64)
	if !ok {
		return 0
	}
	number := l.numbers.at(id)
	if *number == 0 {
		*number = t.append(internedText{})
		l.unread = append(l.unread, unread{texts: t, number: *number, id: id})
	}
	return *number
}

// session is the number of a session, 0 if it has no id.
func (l *loader) session(org uint32, id, name driver.Value) uint32 {
	ids := sessionIDs{org: org}
	var ok bool
	if ids.id, ok = id.(int64); !ok {
		return 0
	}
	ids.name, _ = name.(int64)
	first := l.numbers.at(ids.id)
	if *first > 0 && l.sessions[*first-1] == ids {
		return *first
	}
	if number, ok := l.others[ids]; ok {
		return number
	}
	t := l.table.textsIn(sessionColumn)
	number := t.append(internedText{org: org})
	if *first == 0 {
		*first = number
	} else {
		l.others[ids] = number
	}
	l.sessions = append(l.sessions, ids)
	l.unread = append(l.unread, unread{t, number, ids.id, ids.name})
	return number
}

// readTexts reads the interned texts that have none yet.
func (l *loader) readTexts() error {
	if len(l.unread) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(l.unread))
	for _, u := range l.unread {
		ids = append(ids, u.id)
		if u.name != 0 {
			ids = append(ids, u.name)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	texts, err := l.texts(ids)
	if err != nil {
		return err
	}
	text := func(id int64) string {
		i, _ := slices.BinarySearch(ids, id)
		return texts[i]
	}
	for _, u := range l.unread {
		x := u.texts.all[u.number-1]
		x.id = text(u.id)
		if u.name != 0 {
			x.name = text(u.name)
		}
		u.texts.set(u.number, x)
	}
	l.unread = l.unread[:0]
	return nil
}

// texts are the names of ids, which ascend and mostly follow each other: names
// are numbered as they come.
func (l *loader) texts(ids []int64) ([]string, error) {
	query, args := "SELECT id, name FROM names WHERE id BETWEEN ? AND ? ORDER BY id", []driver.Value{ids[0], ids[len(ids)-1]}
	const skipped = 4 // of the names between, for each that is wanted
	if ids[len(ids)-1]-ids[0] > skipped*int64(len(ids)) {
		query, args = "SELECT id, name FROM names WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", []driver.Value{compactJSON(ids)}
	}
	texts := make([]string, len(ids))
	i := 0
	err := l.query(query, args, func(row []driver.Value) error {
		id := row[0].(int64)
		for ids[i] < id {
			i++
		}
		if ids[i] == id {
			texts[i] = row[1].(string)
		}
		return nil
	})
	return texts, err
}

// load reads the whole database into a new table, until that is larger than limit
// bytes: then it answers errTooLarge.
func load(ctx context.Context, r reader, limit int) (*table, error) {
	t := &table{newest: new(newest)}
	l := newLoader(ctx, r, t)
	var err error
	for last := int64(math.MinInt64); err == nil && t.size() <= limit; {
		last, err = l.requests(last)
	}
	if errors.Is(err, errStop) {
		err = nil
	}
	for last := firstScore; err == nil && t.size() <= limit; {
		last, err = l.scores(last)
	}
	switch {
	case err != nil && !errors.Is(err, errStop):
		return nil, err
	case t.size() > limit:
		return nil, errTooLarge
	}
	t.orgs.index()
	for i := range t.texts {
		t.texts[i].index()
	}
	return t, nil
}
