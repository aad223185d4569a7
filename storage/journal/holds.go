package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Hold keeps the records of an organisation that match a filter, with their content, from
// retention and from erasures.
type Hold struct {
	ID, Org string
	Filter  storage.Filter
}

// errHoldsChanged ends a run of retention that began with other holds, or without records that a
// hold may keep. The next one begins anew.
var errHoldsChanged = errors.New("what is under hold has changed meanwhile")

// UnderHolds calls do with the holds of organisations, which stay in force until it returns.
// Whoever decides that records are deleted does so in do: if the holds cannot be read, nothing is
// deleted.
func (j *Journal) UnderHolds(ctx context.Context, orgs []string, do func([]Hold) error) error {
	j.holding.RLock()
	defer j.holding.RUnlock()
	var all []Hold
	for _, org := range orgs {
		holds, err := j.options.Load().Holds(ctx, org)
		if err != nil {
			return fmt.Errorf("nothing is deleted while the holds cannot be read: %w", err)
		}
		all = append(all, holds...)
	}
	return do(all)
}

// ChangeHolds places or lifts a hold by do. Once it returns, whatever deletes knows of it.
func (j *Journal) ChangeHolds(do func() error) error {
	j.holding.Lock()
	defer j.holding.Unlock()
	defer signal(j.maintenance.wake)
	return do()
}

// EachPage passes on the records of the backend that a filter chooses, by pages, the oldest first.
func (j *Journal) EachPage(ctx context.Context, org string, f storage.Filter, each func([]*storage.Record) error) error {
	return j.Scan(ctx, oldestFirst(org, f), each)
}

// eachPage is EachPage for maintenance: no scan refuses or delays it.
func (j *Journal) eachPage(ctx context.Context, org string, f storage.Filter, each func([]*storage.Record) error) error {
	return j.ScanNow(ctx, oldestFirst(org, f), each)
}

func oldestFirst(org string, f storage.Filter) *storage.RequestQuery {
	return &storage.RequestQuery{Org: org, Filter: f, Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: erasePage}
}

// Scan passes on all records of the backend that a query finds, by pages of its Limit. Scans of an
// organisation leave turns to those of others, and to queries. If too many wait, the error is that of
// Options.Scan.
func (j *Journal) Scan(ctx context.Context, q *storage.RequestQuery, each func([]*storage.Record) error) error {
	return q.EachPage(func(q *storage.RequestQuery) (records []*storage.Record, err error) {
		err = j.options.Load().Scan(ctx, q.Org, func() (err error) {
			records, err = j.backend.Requests(ctx, q)
			return err
		})
		return records, err
	}, each)
}

// ScanNow is Scan without turns, for what must not wait behind other scans. The caller runs one at a
// time.
func (j *Journal) ScanNow(ctx context.Context, q *storage.RequestQuery, each func([]*storage.Record) error) error {
	return q.EachPage(func(q *storage.RequestQuery) (records []*storage.Record, err error) {
		j.options.Load().LowPriority(func() { records, err = j.backend.Requests(ctx, q) })
		return records, err
	}, each)
}

// createdAt is the filter of the records that were created at such a time.
func createdAt(op storage.Operator, at storage.Timestamp) storage.Filter {
	return &storage.Leaf{Field: createdAtField, Op: op, Time: at}
}

var createdAtField = storage.LookupField(storage.RequestResponse, "request_created_at")

// SameHolds reports whether a and b are the same holds, in the same order.
func SameHolds(a, b []Hold) bool {
	return slices.EqualFunc(a, b, func(a, b Hold) bool { return a.ID == b.ID })
}

// eraseReleased has erasures take the records that no hold keeps any more. The error of one does not
// keep the others.
func (l *erasures) eraseReleased(ctx context.Context) error {
	if l.j.delivery.rebuilding() {
		return nil
	}
	l.mu.Lock()
	all := slices.Clone(l.all)
	l.mu.Unlock()
	var failed error
	for _, e := range all {
		if len(e.Held) > 0 {
			failed = errors.Join(failed, l.j.UnderHolds(ctx, []string{e.Org}, func(holds []Hold) error { return l.release(ctx, e, holds) }))
		}
	}
	return failed
}

// release has an erasure take those of its records that no hold keeps, if one of its holds was
// lifted.
func (l *erasures) release(ctx context.Context, e *Erasure, holds []Hold) error {
	if !slices.ContainsFunc(e.Holds, func(id string) bool {
		return !slices.ContainsFunc(holds, func(h Hold) bool { return h.ID == id })
	}) {
		return nil
	}
	held := make(map[uuid.UUID]bool, len(e.Held))
	for _, id := range e.Held {
		held[id] = false
	}
	var keep []string
	for _, h := range holds {
		keeps := false
		if err := l.j.eachPage(ctx, h.Org, h.Filter, func(records []*storage.Record) error {
			for _, r := range records {
				if _, chosen := held[r.ID]; chosen {
					held[r.ID], keeps = true, true
				}
			}
			return ctx.Err()
		}); err != nil {
			return err
		}
		if keeps {
			keep = append(keep, h.ID)
		}
	}
	var chosen []Chosen
	var left []uuid.UUID
	for _, id := range e.Held {
		if held[id] {
			left = append(left, id)
			continue
		}
		r, err := l.j.backend.Request(ctx, storage.RecordKey{Org: e.Org, ID: id})
		switch {
		case err == nil:
			chosen = append(chosen, Chosen{id, r.Content})
		case errors.Is(err, storage.ErrNotFound): // retention has deleted it
			chosen = append(chosen, Chosen{ID: id})
		default:
			return err
		}
	}
	var err error
	saved := l.change([]*Erasure{e}, func(e *Erasure) {
		if err = l.take(e, chosen); err == nil {
			e.Held, e.Holds = left, keep
		}
	})
	return cmp.Or(err, saved)
}
