package alert

import (
	"context"
	"time"

	"github.com/weirhq/weir/storage"
)

// series has the total of a rule by subject and time, so that a minute reads the records of some
// minutes alone, however long the window is.
type series struct {
	rule *Rule
	// ago is how far the windows lie in the past, in milliseconds.
	ago storage.Timestamp
	// width is the length of a cell, in milliseconds.
	width storage.Timestamp
	// read is the end of what has been read, 0 for nothing, and refreshed when the last day was
	// read again.
	read, refreshed storage.Timestamp
	// cells are the totals by the start of the cell and the subject, money in nanodollars, and sums
	// those of all cells by subject.
	cells map[storage.Timestamp]map[string]int64
	sums  map[string]sum
	// values are the sums as the rule compares them.
	values map[string]float64
}

// sum is the total of a number of cells.
type sum struct {
	total int64
	cells int
}

const (
	// settling is for how long the records of a minute are read again: a call has its record when
	// it is over, at the time when it began.
	settling = storage.Timestamp(10 * time.Minute / time.Millisecond)
	// refreshing is how often the last day is read again, for calls that ran longer.
	refreshing = storage.Timestamp(time.Hour / time.Millisecond)
	lastDay    = 24 * refreshing
	// maxCells bounds the cells of a window.
	maxCells = 360
)

func newSeries(r *Rule, ago time.Duration) *series {
	minutes := time.Duration(r.Over).Milliseconds() / time.Minute.Milliseconds()
	return &series{
		rule: r, ago: storage.Timestamp(ago.Milliseconds()),
		cells: make(map[storage.Timestamp]map[string]int64), sums: make(map[string]sum), values: make(map[string]float64),
		width: storage.Timestamp((minutes + maxCells - 1) / maxCells * time.Minute.Milliseconds()),
	}
}

// at returns the totals of the window that ends before a time, by subject. Unknown totals are
// missing, and so are sums of no records. The caller may not change the totals, which hold until the
// next call.
func (s *series) at(ctx context.Context, g storage.Grouper, org string, now storage.Timestamp) (map[string]float64, error) {
	now -= s.ago
	over := storage.Timestamp(time.Duration(s.rule.Over).Milliseconds())
	q := &storage.GroupQuery{
		Org: org, Filter: s.rule.filter, By: s.rule.by, Details: true, Window: storage.Window{From: now - over, To: now - 1},
	}
	total := storage.TotalKey(s.rule.Total)
	if !total.IsSum() {
		values := make(map[string]float64)
		return values, g.Groups(ctx, q, func(group *storage.GroupTotals) error {
			if n := total.Of(group); n.Valid {
				values[subjectOf(group)] = float64(n.N) / 1000
			}
			return nil
		})
	}
	begins := (now - over + s.width - 1) / s.width * s.width // of the first cell
	from := begins
	if s.read != 0 {
		if from = s.read - settling; s.refreshed+refreshing <= now {
			from, s.refreshed = s.read-lastDay, now
		}
		from = max(begins, from/s.width*s.width)
	} else {
		s.refreshed = now
	}
	q.Window.From = from
	q.Buckets = storage.Buckets{Start: from, Width: s.width, Len: int((now - from + s.width - 1) / s.width)}
	fresh := make(map[storage.Timestamp]map[string]int64)
	err := g.Groups(ctx, q, func(group *storage.GroupTotals) error {
		subject := subjectOf(group)
		for i := range group.Cells {
			n, start := total.OfCell(&group.Cells[i]), group.Cells[i].Start
			if !n.Valid {
				continue
			}
			if fresh[start] == nil {
				fresh[start] = make(map[string]int64)
			}
			fresh[start][subject] += n.N // of a session with several names
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.read = now
	for start, cell := range s.cells {
		if start < begins || start >= from {
			s.add(cell, -1)
			delete(s.cells, start)
		}
	}
	for start, cell := range fresh {
		s.add(cell, 1)
		s.cells[start] = cell
	}
	return s.values, nil
}

// add adds the totals of a cell to the sums, or takes them away if sign is -1.
func (s *series) add(cell map[string]int64, sign int) {
	scale := 1.0
	if storage.TotalKey(s.rule.Total).IsMoney() {
		scale = 1e-9
	}
	for subject, n := range cell {
		of := s.sums[subject]
		of.total += int64(sign) * n
		if of.cells += sign; of.cells == 0 {
			delete(s.sums, subject)
			delete(s.values, subject)
			continue
		}
		s.sums[subject], s.values[subject] = of, float64(of.total)*scale
	}
}

// subjectOf is the value of the attribute of a rule.
func subjectOf(g *storage.GroupTotals) string {
	if len(g.Key) == 0 {
		return ""
	}
	return g.Key[0]
}
