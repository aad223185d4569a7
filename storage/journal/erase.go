package journal

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// eraseLate removes from a batch what was erased of its records: a restored segment may have them.
func (j *Journal) eraseLate(b *storage.Batch) {
	var content map[string][]storage.ContentRef
	if b.Records, content = j.erasures.records.Load().apply(b.Records); j.Shared() {
		return
	}
	for org, refs := range content {
		left := leftOf(refs)
		of := j.Erasures(org)
		if len(of) == 0 {
			continue
		}
		if err := j.change(of[0].ID, func(e *Erasure) {
			e.add(left)
			e.DoneAt = 0
		}); err != nil {
			j.options.logger().Error("erased content stays in the segments until content_retention ends", zap.Error(err))
		}
		signal(j.maintenance.wake)
	}
}

// runErasures does what is left of the erasures. Backups and sealing go on between two segments.
// What cannot be done yet is left to the next maintenance.
func (j *Journal) runErasures(ctx context.Context) {
	if err := j.eraseReleased(ctx); err != nil && ctx.Err() == nil {
		j.options.logger().Error("it is not known which records are under hold: erasures go on with the others", zap.Error(err))
	}
	all := j.erasures.unfinished()
	if len(all) == 0 {
		return
	}
	if err := j.eraseRecords(ctx, all); err != nil && ctx.Err() == nil {
		j.options.logger().Error("records cannot be erased from the database: it is tried again", zap.Error(err))
	}
	j.closeErased(all)
	left := j.erasures.left()
	var w rewriter
	for _, number := range slices.Sorted(maps.Keys(left)) {
		var err error
		j.options.Load().LowPriority(func() { err = j.eraseSegment(ctx, &w, number, left[number]) })
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			j.options.logger().Error("content cannot be erased: it is tried again", zap.String("file", segmentPath(j.dir, number, sealedSuffix)), zap.Error(err))
		}
	}
	if err := j.finishErasures(ctx); err != nil && ctx.Err() == nil {
		j.options.logger().Error("what was erased is still in the files of the database: it is tried again", zap.Error(err))
	}
}

// closeErased ends the active segment if something of it is erased, so that it can be sealed.
func (j *Journal) closeErased(all []*Erasure) {
	left := j.erasures.left()
	j.log.turn.Lock()
	defer j.log.turn.Unlock()
	s := j.log.active
	if s == nil {
		return
	}
	if left[s.number] != nil || slices.ContainsFunc(all, func(e *Erasure) bool { return s.number <= e.Segment }) {
		j.log.close(s) // the drain wakes maintenance when the backend has all of it
	}
}

// eraseSegment removes entries from one segment, unless it is still raw.
func (j *Journal) eraseSegment(ctx context.Context, w *rewriter, number uint64, ordinals []uint32) error {
	if !j.takeTurn(ctx) {
		return ctx.Err()
	}
	defer j.giveTurn()
	j.mu.Lock()
	_, raw := j.log.find(number)
	j.mu.Unlock()
	if raw {
		return nil
	}
	err := j.archive.rewrite(ctx, w, number, func(ordinal uint32) bool {
		_, found := slices.BinarySearch(ordinals, ordinal)
		return found
	})
	if err != nil {
		return err
	}
	return j.erasedSegment(number, ordinals)
}

// erasedSegment notes that a segment is written.
func (j *Journal) erasedSegment(number uint64, ordinals []uint32) error {
	j.erasures.mu.Lock()
	defer j.erasures.mu.Unlock()
	for i, e := range j.erasures.all {
		mine, there := e.Left[number]
		if !there || !contains(ordinals, mine) { // else it was created meanwhile
			continue
		}
		next := *e
		next.Left = maps.Clone(e.Left)
		delete(next.Left, number)
		if !j.erasesRows(e.Scope) {
			next.Erased += int64(len(mine))
		}
		if next.settled() && !j.erasesRows(e.Scope) { // else the backend's files come next
			next.DoneAt = j.options.now()
		}
		j.erasures.all[i] = &next
	}
	j.erasures.hide()
	return j.saveErasures()
}

// erasePage is how many records are found at a time, and eraseRows how many the backend erases
// at a time: batches wait meanwhile.
const (
	erasePage = 1000
	eraseRows = 200
)

// eraseRecords erases the records of erasures in the backend. Those of erasures from before the
// start are found there once for each organisation.
func (j *Journal) eraseRecords(ctx context.Context, all []*Erasure) error {
	unknown := make(map[string][]*Erasure) // by organisation
	for _, e := range all {
		switch {
		case !e.Find:
		case e.ids == nil:
			unknown[e.Org] = append(unknown[e.Org], e)
		default:
			if err := j.eraseRows(ctx, e.Org, e.ids, max(e.Scope, storage.EraseContent)); err != nil {
				return err
			}
			if err := j.change(e.ID, j.erasedRows); err != nil {
				return err
			}
		}
	}
	for org, erasures := range unknown {
		ids, left, err := j.findErased(ctx, org)
		if err == nil { // before they are erased in the backend, which alone knows their content
			err = j.change(erasures[0].ID, func(e *Erasure) {
				e.add(left)
				e.Segment = max(e.Segment, j.newestRaw())
			})
		}
		for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
			if err == nil && j.erasesRows(scope) {
				err = j.eraseRows(ctx, org, ids[scope], scope)
			}
		}
		for _, e := range erasures {
			if err == nil {
				err = j.change(e.ID, j.erasedRows)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eraseRows erases records in the backend, in steps, between which batches can be written.
func (j *Journal) eraseRows(ctx context.Context, org string, ids []uuid.UUID, scope storage.ErasureScope) (err error) {
	eraser, ok := j.backend.(storage.RecordEraser)
	if !ok {
		return nil
	}
	for some := range slices.Chunk(ids, eraseRows) {
		j.options.Load().LowPriority(func() {
			err = j.inSteps(ctx, func() (bool, error) { return false, eraser.EraseRecords(ctx, org, some, scope) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// findErased finds the erased records that the backend still has of an organisation, by scope,
// and their content.
func (j *Journal) findErased(ctx context.Context, org string) (ids map[storage.ErasureScope][]uuid.UUID, left map[uint64][]uint32, err error) {
	if err := j.flushSoon(ctx); err != nil {
		return nil, nil, err
	}
	ids = make(map[storage.ErasureScope][]uuid.UUID)
	var content []storage.ContentRef
	erased := j.erasures.records.Load()
	err = j.EachPage(ctx, org, storage.All{}, func(records []*storage.Record) error {
		for _, r := range records {
			scope := erased.scope(r.Key())
			if scope == 0 {
				continue
			}
			ids[scope] = append(ids[scope], r.ID)
			if r.Content != (storage.ContentRef{}) && !j.Shared() {
				content = append(content, r.Content)
			}
		}
		return nil
	})
	return ids, leftOf(content), err
}

// finishErasures ends the erasures whose records are in no segment any more, once the backend's
// files have nothing of them either.
func (j *Journal) finishErasures(ctx context.Context) error {
	j.mu.Lock()
	oldestRaw := uint64(1<<64 - 1)
	if len(j.log.unsealed) > 0 {
		oldestRaw = j.log.unsealed[0].number
	}
	j.mu.Unlock()
	var ready []*Erasure
	rows := false
	for _, e := range j.erasures.unfinished() {
		if e.settled() && e.Segment < oldestRaw {
			ready = append(ready, e)
			rows = rows || j.erasesRows(e.Scope)
		}
	}
	if rows {
		if err := j.eraseUnused(ctx, ready); err != nil {
			return err
		}
	}
	for _, e := range ready {
		if err := j.change(e.ID, func(e *Erasure) { e.DoneAt = j.options.now() }); err != nil {
			return err
		}
	}
	return nil
}

// eraseUnused removes from the backend's files what only the records of erasures have needed.
func (j *Journal) eraseUnused(ctx context.Context, of []*Erasure) (err error) {
	if eraser, ok := j.backend.(storage.RecordEraser); ok && slices.ContainsFunc(of, func(e *Erasure) bool { return !e.unusedErased }) {
		j.options.Load().LowPriority(func() { err = eraser.EraseUnused(ctx) })
	}
	for _, e := range of {
		if err == nil {
			err = j.change(e.ID, func(e *Erasure) { e.unusedErased = true })
		}
	}
	if err != nil {
		return err
	}
	return j.eraseFiles(ctx)
}
