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
	// cells are the totals by subject and the start of the cell.
	cells map[string]map[storage.Timestamp]float64
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
		rule: r, ago: storage.Timestamp(ago.Milliseconds()), cells: make(map[string]map[storage.Timestamp]float64),
		width: storage.Timestamp((minutes + maxCells - 1) / maxCells * time.Minute.Milliseconds()),
	}
}

// at returns the totals of the window that ends before a time, by subject. Unknown totals are
// missing, and so are sums of no records.
func (s *series) at(ctx context.Context, g storage.Grouper, org string, now storage.Timestamp) (map[string]float64, error) {
	now -= s.ago
	over := storage.Timestamp(time.Duration(s.rule.Over).Milliseconds())
	q := &storage.GroupQuery{
		Org: org, Filter: s.rule.filter, By: s.rule.by, Details: true, Window: storage.Window{From: now - over, To: now - 1},
	}
	total := storage.TotalKey(s.rule.Total)
	values := make(map[string]float64)
	if !total.IsSum() {
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
	fresh := make(map[string]map[storage.Timestamp]float64)
	scale := 1.0
	if total.IsMoney() {
		scale = 1e-9
	}
	err := g.Groups(ctx, q, func(group *storage.GroupTotals) error {
		cells := make(map[storage.Timestamp]float64, len(group.Cells))
		for i := range group.Cells {
			if n := total.OfCell(&group.Cells[i]); n.Valid {
				cells[group.Cells[i].Start] = float64(n.N) * scale
			}
		}
		fresh[subjectOf(group)] = cells
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.read = now
	for subject, cells := range s.cells {
		for start := range cells {
			if start < begins || start >= from {
				delete(cells, start)
			}
		}
		if len(cells) == 0 {
			delete(s.cells, subject)
		}
	}
	for subject, cells := range fresh {
		if s.cells[subject] == nil {
			s.cells[subject] = cells
			continue
		}
		for start, n := range cells {
			s.cells[subject][start] = n
		}
	}
	for subject, cells := range s.cells {
		for _, n := range cells {
			values[subject] += n
		}
	}
	return values, nil
}

// subjectOf is the value of the attribute of a rule.
func subjectOf(g *storage.GroupTotals) string {
	if len(g.Key) == 0 {
		return ""
	}
	return g.Key[0]
}
