package alert

import (
	"context"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/storage"
)

// question is what rules ask of records. Rules with the same question share the answer.
type question struct {
	filter, per string
	over        caddy.Duration
	// ago is how far the windows lie in the past, in milliseconds.
	ago storage.Timestamp
	// sums is false of percentiles, which cannot be added up.
	sums bool
}

// series answers a question by subject and time, so that a minute reads the records of some minutes
// alone, however long the window is.
type series struct {
	question
	records storage.Filter
	by      []storage.Dimension
	// width is the length of a cell, in milliseconds.
	width storage.Timestamp
	// asked is true once the evaluation under way has asked, and err why the answer is unknown, nil if
	// it is known.
	asked bool
	err   error
	// read is the end of what has been read, 0 for nothing, and refreshed when the last day was
	// read again.
	read, refreshed storage.Timestamp
	// totals are those that rules compare.
	totals map[storage.TotalKey]*total
}

// total is a total of a series.
type total struct {
	// scale turns the numbers of cells, such as nanodollars, into those that rules compare.
	scale float64
	// cells are the totals by the start of the cell and the subject, and sums those of all cells by
	// subject. Percentiles have neither.
	cells map[storage.Timestamp]map[string]int64
	sums  map[string]sum
	// values are what rules compare, by subject.
	values map[string]float64
}

// sum is the total of a number of cells.
type sum struct {
	total int64
	cells int
}

const (
	// settleTime is the time for which the records of a minute are read again, in milliseconds: the
	// record of a call comes when the call ends, and counts at the time when it began.
	settleTime = storage.Timestamp(10 * time.Minute / time.Millisecond)
	// refreshInterval is the pause after which the last day is read again, for calls that ran longer, in
	// milliseconds.
	refreshInterval = storage.Timestamp(time.Hour / time.Millisecond)
	lastDay         = 24 * refreshInterval
	// maxCells bounds the cells of a window.
	maxCells = 360
)

// question returns what the rule asks of the records of a time ago.
func (r *Rule) question(ago time.Duration) question {
	return question{
		filter: string(r.Filter), per: r.Per, over: r.Over, ago: storage.Timestamp(ago.Milliseconds()), sums: storage.TotalKey(r.Total).IsSum(),
	}
}

func newSeries(r *Rule, q question) *series {
	minutes := time.Duration(r.Over).Milliseconds() / time.Minute.Milliseconds()
	return &series{
		question: q, records: r.filter, by: r.by, totals: make(map[storage.TotalKey]*total),
		width: storage.Timestamp((minutes + maxCells - 1) / maxCells * time.Minute.Milliseconds()),
	}
}

// add has a total answered, too.
func (s *series) add(key storage.TotalKey) {
	if s.totals[key] != nil {
		return
	}
	t := &total{scale: 1, cells: make(map[storage.Timestamp]map[string]int64), sums: make(map[string]sum), values: make(map[string]float64)}
	switch {
	case key.IsMoney():
		t.scale = 1e-9
	case !s.sums:
		t.scale = 1e-3
	}
	s.totals[key] = t
	s.read = 0 // all of the window has to be read for it
}

// totalsAt returns a total of the window that ends before a time, by subject. Unknown totals are missing, and
// so are sums of no records. The caller may not change the values, which hold until the next time.
// There are none with an error: those of an earlier window would be compared as if they were new.
func (s *series) totalsAt(ctx context.Context, g storage.Grouper, org string, key storage.TotalKey, now storage.Timestamp) (map[string]float64, error) {
	if !s.asked {
		s.asked, s.err = true, s.ask(ctx, g, org, now-s.ago)
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.totals[key].values, nil
}

// ask reads what is new before a time.
func (s *series) ask(ctx context.Context, g storage.Grouper, org string, now storage.Timestamp) error {
	over := storage.Timestamp(time.Duration(s.over).Milliseconds())
	q := &storage.GroupQuery{Org: org, Filter: s.records, By: s.by, Window: storage.Window{From: now - over, To: now - 1}}
	for key := range s.totals {
		q.Details = q.Details || !key.IsCount()
	}
	if s.sums {
		return s.askCells(ctx, g, q, now)
	}
	for _, t := range s.totals {
		t.values = make(map[string]float64)
	}
	return g.Groups(ctx, q, func(group *storage.GroupTotals) error {
		for key, t := range s.totals {
			if n := key.Of(group); n.Valid {
				t.values[subjectOf(group)] = float64(n.N) * t.scale
			}
		}
		return nil
	})
}

// askCells asks q for the cells that may have changed since the last time.
func (s *series) askCells(ctx context.Context, g storage.Grouper, q *storage.GroupQuery, now storage.Timestamp) error {
	begins := (q.Window.From + s.width - 1) / s.width * s.width // of the first cell
	from := begins
	if s.read != 0 {
		if from = s.read - settleTime; s.refreshed+refreshInterval <= now {
			from, s.refreshed = s.read-lastDay, now
		}
		from = max(begins, from/s.width*s.width)
	} else {
		s.refreshed = now
	}
	q.Window.From = from
	q.Buckets = storage.Buckets{Start: from, Width: s.width, Len: int((now - from + s.width - 1) / s.width)}
	fresh := make(map[storage.TotalKey]map[storage.Timestamp]map[string]int64, len(s.totals))
	for key := range s.totals {
		fresh[key] = make(map[storage.Timestamp]map[string]int64)
	}
	err := g.Groups(ctx, q, func(group *storage.GroupTotals) error {
		subject := subjectOf(group)
		for i := range group.Cells {
			start := group.Cells[i].Start
			for key, cells := range fresh {
				n := key.OfCell(&group.Cells[i])
				if !n.Valid {
					continue
				}
				if cells[start] == nil {
					cells[start] = make(map[string]int64)
				}
				cells[start][subject] += n.N // of a session with several names
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.read = now
	for key, t := range s.totals {
		t.replace(fresh[key], begins, from)
	}
	return nil
}

// replace replaces the cells from a time on by fresh ones, and drops those before the window begins.
func (t *total) replace(fresh map[storage.Timestamp]map[string]int64, begins, from storage.Timestamp) {
	for start, cell := range t.cells {
		if start < begins || start >= from {
			t.add(cell, -1)
			delete(t.cells, start)
		}
	}
	for start, cell := range fresh {
		t.add(cell, 1)
		t.cells[start] = cell
	}
}

// add adds the totals of a cell to the sums, or takes them away if sign is -1.
func (t *total) add(cell map[string]int64, sign int) {
	for subject, n := range cell {
		of := t.sums[subject]
		of.total += int64(sign) * n
		if of.cells += sign; of.cells == 0 {
			delete(t.sums, subject)
			delete(t.values, subject)
			continue
		}
		t.sums[subject], t.values[subject] = of, float64(of.total)*t.scale
	}
}

// subjectOf is the value of the attribute of a rule.
func subjectOf(g *storage.GroupTotals) string {
	if len(g.Key) == 0 {
		return ""
	}
	return g.Key[0]
}
