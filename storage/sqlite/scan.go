package sqlite

import (
	"errors"
	"runtime"
	"slices"

	"github.com/weirhq/weir/storage"
)

// scan is one Scan of rows.
type scan struct {
	*rows
	each     func(*storage.Row) bool
	parts    storage.RowParts
	from, to int64 // keys of requests
	// holds is what the columns decide of the filter, nil if nothing, and residual
	// what the database does.
	holds    predicate
	residual storage.Filter
	// all are the requests of the whole scan of which the residual is true, nil until
	// a chunk asks for them.
	all *keySet
}

// plan takes the filter apart.
func (s *scan) plan(f storage.Filter) {
	cancel := storage.NewCancelCheck(s.ctx.Err)
	leaves := make(map[*storage.Leaf]predicate)
	plan := storage.PlanFilter(f, func(l *storage.Leaf) storage.Support {
		if s.scores {
			return storage.Unsupported
		}
		holds, ok := leaves[l]
		if !ok {
			holds = s.table.leaf(l, cancel)
			leaves[l] = holds
		}
		if holds == nil {
			return storage.Unsupported
		}
		return storage.Exact
	})
	s.residual = plan.Residual
	if plan.Prefilter != (storage.All{}) {
		s.holds = join(plan.Prefilter, leaves)
	}
}

// rowsBetweenChecks is the number of rows between two looks at the context.
const rowsBetweenChecks = 16 << 10

// chunk gives each its rows of one chunk, as long as it wants more.
func (s *scan) chunk(c *chunk) (more bool, err error) {
	from, to := max(s.from, c.low), min(s.to, c.high)
	if from > to {
		return true, nil
	}
	var chosen *keySet
	if s.residual != (storage.All{}) {
		if chosen, err = s.chosenOf(c, from, to); err != nil || len(chosen.keys) == 0 {
			return true, err
		}
	}
	org := s.table.orgs.find(s.org)
	if org == 0 {
		return true, nil
	}
	r := storage.Row{Groups: make([]int, len(s.dimensions))}
	first, last := 0, len(c.n)
	if c.sorted {
		first, _ = slices.BinarySearch(c.n, from)
	}
	for i := first; i < last; i++ {
		if i%rowsBetweenChecks == 0 {
			if err := s.ctx.Err(); err != nil {
				return false, err
			}
			runtime.Gosched() // traffic is not to wait for the 10 ms of a time slice
		}
		n := c.n[i]
		switch {
		case c.org[i] != org || n < from || n > to:
			continue
		case s.holds != nil && !s.holds(c, i):
			continue
		case chosen != nil && !chosen.has(n):
			continue
		}
		for j := range s.dimensions {
			r.Groups[j] = s.dimensions[j].number(c, i)
		}
		r.CreatedAt = createdAt(n)
		if s.scores {
			r.Score = c.scores[i]
		} else {
			c.read(&r, i, s.parts)
		}
		if s.failed != nil || !s.each(&r) {
			return false, s.failed
		}
	}
	return true, nil
}

// streamRequests scans the requests as they are read.
func (s *scan) streamRequests() error {
	return stream(s, &s.table.requests, s.from-1, func(last int64) (int64, error) {
		if last >= s.to {
			return last, errStop
		}
		return s.loader.requests(last)
	})
}

// streamScores scans the scores as they are read.
func (s *scan) streamScores() error {
	return stream(s, &s.table.scores, firstScore, s.loader.scores)
}

// stream scans chunks which load reads after a place, until it answers errStop,
// and forgets them.
func stream[P any](s *scan, chunks *[]chunk, last P, load func(P) (P, error)) error {
	for err := error(nil); err == nil; {
		*chunks = nil
		if last, err = load(last); err != nil && !errors.Is(err, errStop) {
			return err
		}
		for i := range *chunks {
			if more, failed := s.chunk(&(*chunks)[i]); failed != nil || !more {
				return failed
			}
		}
	}
	return nil
}
