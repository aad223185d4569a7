package journal

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// retentionEvery is how often retention looks at records among which some are under hold: all of
// these are looked at again.
const retentionEvery = time.Hour

// retention is one run of retention: it knows what holds keep of what it would delete.
type retention struct {
	j     *Journal
	orgs  []string
	holds []Hold
	// raw are the raw segments whose records all were in the backend when the list was read.
	raw []*segment
	// oldest is when the oldest record under hold was created; with none, later than any other. With
	// holds, it is 0 if other nodes write to the store: what they write meanwhile may be older.
	oldest storage.Timestamp
	// content are the entries of old segments that have the content of records under hold, sorted,
	// by segment.
	content map[uint64][]uint32
	at      time.Time // when they were found
}

// cutoff is the time before which a retention ends, 0 for one without an end.
func cutoff(now time.Time, retention time.Duration) storage.Timestamp {
	if retention <= 0 {
		return 0
	}
	return storage.Millis(now.Add(-retention))
}

// newRetention finds what holds keep of the records from before a time. It returns nil if the
// run after now is soon enough.
func (m *maintenance) newRetention(ctx context.Context, now time.Time, before storage.Timestamp) (*retention, error) {
	r := &retention{j: m.j, oldest: before, at: now}
	if before == 0 {
		return r, nil
	}
	if !m.j.delivery.isConnected() { // which records are under hold is not known yet
		return nil, nil
	}
	if m.j.delivery.rebuilding() {
		return nil, nil
	}
	// What is late ends the run. That the backend refuses records does not: it may lack the room
	// that retention makes.
	_ = m.j.flushSoon(ctx)
	m.j.delivery.writer.Lock()
	m.j.delivery.old, m.j.delivery.late = before, make(map[string]bool)
	m.j.delivery.writer.Unlock()
	var err error
	if r.orgs, err = m.j.backend.Organisations(ctx); err != nil {
		return nil, err
	}
	if err := m.j.UnderHolds(ctx, r.orgs, func(holds []Hold) error { r.holds = holds; return nil }); err != nil {
		return nil, err
	}
	if last := m.retention; last != nil && len(r.holds) > 0 && SameHolds(last.holds, r.holds) && now.Sub(last.at) < retentionEvery {
		return nil, nil
	}
	r.raw = m.deliveredSegments()
	old := make(map[uint64]bool) // the segments that expire
	for number, s := range m.j.archive.all() {
		old[number] = s.Newest < int64(before)
	}
	for _, s := range r.raw {
		old[s.number] = s.newest < before
	}
	var refs []storage.ContentRef
	for _, h := range r.holds {
		// Of any age: a segment can be older than a record in it that was dated ahead.
		err := m.j.eachPage(ctx, h.Org, h.Filter, func(records []*storage.Record) error {
			for _, held := range records {
				r.oldest = min(r.oldest, held.CreatedAt)
				if old[held.Content.Segment] && held.Content != (storage.ContentRef{}) {
					refs = append(refs, held.Content)
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	if m.j.Shared() && len(r.holds) > 0 {
		r.oldest = 0
	}
	r.content = leftOf(refs)
	for number, ordinals := range r.content { // two holds may have the same record
		r.content[number] = slices.Compact(ordinals)
	}
	return r, nil
}

// step runs a step of retention, unless the holds have changed.
func (r *retention) step(ctx context.Context, do func() error) error {
	return r.j.UnderHolds(ctx, r.orgs, func(holds []Hold) error {
		if !SameHolds(holds, r.holds) {
			return errHoldsChanged
		}
		defer r.j.removals.Add(1)
		return do()
	})
}

// deleteStep deletes records from the backend, unless old records have been written since it was
// read that a hold may keep.
func (r *retention) deleteStep(step func() error) error {
	r.j.delivery.writer.Lock()
	defer r.j.delivery.writer.Unlock()
	for org := range r.j.delivery.late {
		if !slices.Contains(r.orgs, org) || slices.ContainsFunc(r.holds, func(h Hold) bool { return h.Org == org }) {
			return errHoldsChanged
		}
	}
	return step()
}

// expire deletes the content of segments that have only records from before a time, but for the
// content that a hold keeps.
func (r *retention) expire(ctx context.Context, before storage.Timestamp) error {
	var w rewriter
	for number, s := range r.j.archive.all() {
		held := r.content[number]
		if s.Newest >= int64(before) || len(held) > 0 && s.Entries <= int64(len(held)) {
			continue
		}
		if err := r.step(ctx, func() (err error) {
			if len(held) == 0 {
				r.j.archive.expire(number, s)
				return nil
			}
			r.j.options.Load().LowPriority(func() {
				err = r.j.archive.rewrite(ctx, &w, number, func(ordinal uint32) bool {
					_, keeps := slices.BinarySearch(held, ordinal)
					return !keeps
				})
			})
			return err
		}); err != nil {
			return err
		}
	}
	for _, s := range r.raw {
		if s.newest >= before || len(r.content[s.number]) > 0 { // then it is sealed, and rewritten later
			continue
		}
		if err := r.step(ctx, func() error { return r.j.maintenance.drop(s) }); err != nil {
			return err
		}
	}
	return nil
}

// prune deletes the records that have outlived their retention, in steps, between which
// batches can be written. records is the time before which they have; content is that of their
// content.
func (r *retention) prune(ctx context.Context, content, records storage.Timestamp) error {
	if err := r.pruneBefore(ctx, content, storage.EraseContent, func(ctx context.Context, before storage.Timestamp) (bool, error) {
		more, err := r.j.backend.PruneConversations(ctx, before, nil)
		if err == nil && !more && before < content { // clients' items, which no record has, are deleted by this alone
			more, err = r.j.backend.PruneConversations(ctx, content, r.holding())
		}
		if keeper, ok := r.j.backend.(storage.ContentKeeper); ok && err == nil && !more {
			return keeper.PruneContent(ctx, before)
		}
		return more, err
	}); err != nil {
		return err
	}
	return r.pruneBefore(ctx, records, storage.EraseRecord, func(ctx context.Context, before storage.Timestamp) (bool, error) {
		if err := r.j.checkpoints.savePruned(records, r.j.options.Load().Sync); err != nil {
			return false, err
		}
		return r.j.backend.Prune(ctx, before)
	})
}

// holding returns the organisations that have holds.
func (r *retention) holding() (orgs []string) {
	for _, h := range r.holds {
		orgs = append(orgs, h.Org)
	}
	return slices.Compact(orgs) // holds are by organisation: see Journal.UnderHolds
}

// pruneBefore deletes what is older than a time: by prune up to the oldest record under hold, and
// one by one between those.
func (r *retention) pruneBefore(ctx context.Context, before storage.Timestamp, scope storage.ErasureScope, prune func(context.Context, storage.Timestamp) (bool, error)) error {
	if before == 0 {
		return nil
	}
	for more := true; more; {
		if err := r.step(ctx, func() error {
			return r.deleteStep(func() (err error) {
				more, err = prune(ctx, min(before, r.oldest))
				return cmp.Or(err, ctx.Err())
			})
		}); err != nil {
			return err
		}
	}
	return r.pruneAround(ctx, before, scope)
}

// pruneAround erases the records from before a time that no hold keeps, where the backend cannot
// delete all of them at once.
func (r *retention) pruneAround(ctx context.Context, before storage.Timestamp, scope storage.ErasureScope) error {
	eraser, ok := r.j.backend.(storage.RecordEraser)
	if !ok || r.oldest >= before {
		return nil
	}
	old := storage.And(createdAt(storage.GTE, r.oldest), createdAt(storage.LT, before))
	for _, org := range r.orgs {
		err := r.j.eachPage(ctx, org, old, func(records []*storage.Record) error {
			for some := range slices.Chunk(records, eraseRows) {
				if err := r.step(ctx, func() error { return r.eraseUnheld(ctx, eraser, some, scope) }); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eraseUnheld erases those of some records, in the order of their times, that no hold keeps.
func (r *retention) eraseUnheld(ctx context.Context, eraser storage.RecordEraser, records []*storage.Record, scope storage.ErasureScope) error {
	org := records[0].Org
	unheld := make(map[uuid.UUID]struct{})
	for _, one := range records {
		if scope > storage.EraseContent || one.Content != (storage.ContentRef{}) {
			unheld[one.ID] = struct{}{}
		}
	}
	among := storage.And(createdAt(storage.GTE, records[0].CreatedAt), createdAt(storage.LTE, records[len(records)-1].CreatedAt))
	for _, h := range r.holds {
		if h.Org != org {
			continue
		}
		if err := r.j.eachPage(ctx, h.Org, storage.And(h.Filter, among), func(held []*storage.Record) error {
			for _, one := range held {
				delete(unheld, one.ID)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if len(unheld) == 0 {
		return nil
	}
	ids := slices.Collect(maps.Keys(unheld))
	if scope == storage.EraseContent && !r.j.Shared() { // the journal has the content, and the backend has items alone
		if items, _, err := eraser.CountItems(ctx, org, ids); err != nil || items == 0 {
			return err
		}
	}
	r.j.maintenance.unused = true
	return r.deleteStep(func() error { return eraser.EraseRecords(ctx, org, ids, scope) })
}
