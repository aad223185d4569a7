package journal

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// run goes on with all unfinished erasures, as far as it can. The next maintenance tries the rest. Backups
// and sealing may run between two segments.
func (l *erasures) run(ctx context.Context) {
	if err := l.eraseReleased(ctx); err != nil && ctx.Err() == nil {
		l.j.options.logger().Error("it is not known which records are under hold: erasures go on with the others", zap.Error(err))
	}
	if err := l.reopen(); err != nil {
		l.j.options.logger().Error("erasures cannot go on for a node that has joined: it is tried again", zap.Error(err))
	}
	if err := l.chooseAgain(ctx); err != nil && ctx.Err() == nil {
		l.j.options.logger().Error("the calls that other nodes had to write first cannot be chosen to be erased: it is tried again", zap.Error(err))
	}
	if err := l.forgetFilters(); err != nil {
		l.j.options.logger().Error("the filters of old erasures stay, encrypted, until they can be removed", zap.Error(err))
	}
	all := l.unfinished()
	if len(all) == 0 {
		return
	}
	if err := l.eraseRecords(ctx, all); err != nil && ctx.Err() == nil {
		l.j.options.logger().Error("records cannot be erased from the database: it is tried again", zap.Error(err))
	}
	l.closeSegment(all)
	l.eraseSegments(ctx, all)
	if err := l.finish(ctx); err != nil && ctx.Err() == nil {
		l.j.options.logger().Error("what was erased is still in the files of the database: it is tried again", zap.Error(err))
	}
}

// closeSegment ends the active segment if it may have erased records: only sealed segments are rewritten.
func (l *erasures) closeSegment(all []*Erasure) {
	l.j.log.turn.Lock()
	defer l.j.log.turn.Unlock()
	s := l.j.log.active
	if s != nil && slices.ContainsFunc(all, func(e *Erasure) bool { return s.number <= e.Segment }) {
		l.j.log.close(s) // the drain wakes maintenance when the backend has all of it
	}
}

// eraseSegments rewrites the sealed segments that have listed entries. If an erasure has to scan, it looks
// for versions of erased records in all sealed segments.
func (l *erasures) eraseSegments(ctx context.Context, all []*Erasure) {
	listed := l.listedEntries()
	numbers := slices.Collect(maps.Keys(listed))
	scans := slices.ContainsFunc(all, func(e *Erasure) bool { return e.Scan })
	if scans {
		for number, s := range l.j.archive.all() {
			if s.Size > 0 {
				numbers = append(numbers, number)
			}
		}
	}
	slices.Sort(numbers)
	w := rewriter{erased: l.records.Load()}
	scanned := true // all segments that can be read
	var unidentified int64
	for _, number := range slices.Compact(numbers) {
		var n int64
		var err error
		l.j.options.Load().LowPriority(func() { n, err = l.eraseSegment(ctx, &w, number, listed[number], scans) })
		if ctx.Err() != nil {
			return
		}
		if unidentified += n; err != nil {
			l.j.options.logger().Error("content cannot be erased: it is tried again", zap.String("file", segmentPath(l.j.dir, number, sealedSuffix)), zap.Error(err))
			scanned = scanned && errors.Is(err, errSealed)
		}
	}
	if err := l.saveProgress(); err != nil {
		l.j.options.logger().Error("segments are erased again after a start", zap.Error(err))
	}
	if !scanned {
		return
	}
	scanning := slices.DeleteFunc(slices.Clone(all), func(e *Erasure) bool { return !e.Scan })
	if err := l.change(scanning, func(e *Erasure) { e.Scan, e.Unidentified = false, unidentified }); err != nil {
		l.j.options.logger().Error("segments are scanned again for what is erased", zap.Error(err))
	}
}

// eraseSegment removes entries from one segment: those that are listed and, if scans is true, all versions
// of erased records. It leaves a segment that is not sealed yet. A segment that is both raw and sealed
// counts as sealed, because its raw file is only to be removed. unidentified counts the entries that do
// not say whose they are.
func (l *erasures) eraseSegment(ctx context.Context, w *rewriter, number uint64, listed []uint32, scans bool) (unidentified int64, err error) {
	if !l.j.maintenance.takeTurn(ctx) {
		return 0, ctx.Err()
	}
	defer l.j.maintenance.giveTurn()
	l.j.mu.Lock()
	_, raw := l.j.log.find(number)
	l.j.mu.Unlock()
	s, there := l.j.archive.segment(number)
	if raw && !there {
		return 0, nil
	}
	ordinals := listed
	if scans && s.Size > 0 {
		var found []uint32
		found, unidentified, err = w.erasedEntries(segmentPath(l.j.dir, number, sealedSuffix))
		if errors.Is(err, errSealed) {
			unidentified, err = s.Entries, nil
		}
		if err != nil {
			return 0, err
		}
		ordinals = slices.Concat(listed, found)
		slices.Sort(ordinals)
	}
	if len(ordinals) == 0 {
		return unidentified, nil
	}
	err = l.j.archive.rewrite(ctx, w, number, func(ordinal uint32) bool {
		_, found := slices.BinarySearch(ordinals, ordinal)
		return found
	})
	if err == nil && len(listed) > 0 {
		err = l.segmentErased(number, listed)
	}
	return unidentified, err
}

// segmentErased notes for each erasure that its listed entries of a segment are gone. An erasure that came
// while the segment was rewritten may list further entries, and goes on. The list has all erasures, so it is written
// in a twentieth of the time, and by saveProgress: segments can be erased again.
func (l *erasures) segmentErased(number uint64, ordinals []uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.all {
		own, there := e.Left[number]
		if !there || !contains(ordinals, own) {
			continue
		}
		next := *e
		next.Left = maps.Clone(e.Left)
		delete(next.Left, number)
		if !l.countsRows(e) {
			next.Erased += int64(len(own))
		}
		l.all[i] = &next
	}
	l.unsaved = true
	if time.Since(l.savedAt) < 20*l.saving {
		return nil
	}
	return l.save()
}

// saveProgress writes what segmentErased has noted.
func (l *erasures) saveProgress() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.unsaved {
		return nil
	}
	return l.save()
}

// erasePage is how many records are found at a time, and eraseRows how many the backend erases
// at a time: batches may wait meanwhile.
const (
	erasePage = 1000
	eraseRows = 200
	// conversationPage is how many conversations are read at a time, with their items.
	conversationPage = 100
)

// eraseRecords erases the records of erasures in the backend, those of one organisation and scope
// together: to some databases, each change is a file written anew. Those of erasures from before the
// start are found there once for each organisation. The error of one does not keep the others.
func (l *erasures) eraseRecords(ctx context.Context, all []*Erasure) (failed error) {
	type kind struct {
		org   string
		scope storage.ErasureScope
	}
	known, unknown := make(map[kind][]*Erasure), make(map[string][]*Erasure) // the latter by organisation
	awaits := make(map[uuid.UUID]bool)                                       // of erasures for which other nodes may write rows again
	rowsErased := func(e *Erasure) {
		if e.rowsGone = awaits[e.ID]; !e.rowsGone {
			l.rowsErased(e)
		}
	}
	for _, e := range all {
		awaits[e.ID] = len(l.j.Unflushed(e)) > 0
		switch {
		case !e.Find, awaits[e.ID] && (e.rowsGone || l.j.options.now()-e.RequestedAt < storage.Timestamp(flushTimeout.Milliseconds())):
		case e.ids == nil:
			unknown[e.Org] = append(unknown[e.Org], e)
		default:
			k := kind{e.Org, max(e.Scope, storage.EraseContent)}
			known[k] = append(known[k], e)
		}
	}
	for k, erasures := range known {
		var ids []uuid.UUID
		for _, e := range erasures {
			ids = append(ids, e.ids...)
		}
		err := l.eraseRows(ctx, k.org, ids, k.scope)
		if err == nil {
			err = l.change(erasures, rowsErased)
		}
		failed = errors.Join(failed, err)
	}
	for org, erasures := range unknown {
		ids, left, err := l.find(ctx, org)
		finding := slices.DeleteFunc(slices.Clone(erasures), func(e *Erasure) bool { return !e.FindContent })
		if err == nil && len(finding) > 0 { // before they are erased in the backend, which alone knows their content
			err = l.change(finding[:1], func(e *Erasure) { e.add(left) })
		}
		for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
			if err == nil {
				err = l.eraseRows(ctx, org, ids[scope], scope)
			}
		}
		if err == nil {
			err = l.deleteConversations(ctx, org)
		}
		if err == nil {
			err = l.change(erasures, func(e *Erasure) {
				rowsErased(e)
				e.Segment = max(e.Segment, l.j.log.newestRaw())
			})
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// eraseRows erases records in the backend, in steps. Batches are written meanwhile.
func (l *erasures) eraseRows(ctx context.Context, org string, ids []uuid.UUID, scope storage.ErasureScope) (err error) {
	eraser, ok := l.j.backend.(storage.RecordEraser)
	if !ok {
		return nil
	}
	l.j.delivery.awaitWrite()
	for some := range slices.Chunk(ids, eraseRows) {
		l.j.options.Load().LowPriority(func() {
			if err = l.takeConversations(ctx, eraser, org, some); err == nil {
				err = eraser.EraseRecords(ctx, org, some, scope)
			}
		})
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxDrain bounds how long an erasure waits until the backend has what was appended. Maintenance waits, too.
	maxDrain = time.Minute
	// maxDecision bounds how long changes of conversations wait for an erasure. An erasure that takes longer
	// is tried again.
	maxDecision = 5 * time.Second
)

// takeConversations notes which conversations go as a whole with records, before they do: from then
// on, no change of them is written. It decides that with all changes in the backend that were appended: a
// conversation to which another call has added an item stays.
func (l *erasures) takeConversations(ctx context.Context, eraser storage.RecordEraser, org string, ids []uuid.UUID) error {
	if items, _, err := eraser.CountItems(ctx, org, ids); err != nil || items == 0 {
		return err
	}
	// Changes of conversations wait for the second of the two alone, which has little left to write.
	if err := l.j.flushWithin(ctx, maxDrain); err != nil {
		return err
	}
	l.deciding.Lock()
	defer l.deciding.Unlock()
	if err := l.j.flushWithin(ctx, maxDecision); err != nil {
		return err
	}
	_, whole, err := eraser.CountItems(ctx, org, ids)
	if err != nil || len(whole) == 0 {
		return err
	}
	hashed := make([][]byte, len(whole))
	for i, id := range whole {
		hashed[i] = conversationHashed(id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.records.Load()
	after, err := before.with(l.j.dir, org, hashed, storage.EraseRecord)
	if err != nil {
		return err
	}
	l.records.Store(after)
	if err := l.save(); err != nil {
		l.records.Store(before)
		return err
	}
	return nil
}

// deleteConversations deletes the erased conversations that an older backend still has.
func (l *erasures) deleteConversations(ctx context.Context, org string) error {
	for after := ""; ; {
		found, err := l.j.backend.Conversations(ctx, org, after, conversationPage)
		if len(found) == 0 || err != nil {
			return err
		}
		for _, c := range found {
			if after = c.ID; !l.j.ErasedConversation(org, c.ID) {
				continue
			}
			if err := l.j.AppendAnnotation(&storage.Annotation{Org: org, At: c.ChangedAt + 1, Conversation: &storage.ConversationChange{ID: c.ID, Deleted: true}}); err != nil {
				return err
			}
		}
	}
}

// find finds the erased records that the backend still has of an organisation, by scope,
// and their content.
func (l *erasures) find(ctx context.Context, org string) (ids map[storage.ErasureScope][]uuid.UUID, left map[uint64][]uint32, err error) {
	if err := l.j.flushSoon(ctx); err != nil {
		return nil, nil, err
	}
	ids = make(map[storage.ErasureScope][]uuid.UUID)
	var content []storage.ContentRef
	erased := l.records.Load()
	err = l.j.eachPage(ctx, org, storage.All{}, func(records []*storage.Record) error {
		for _, r := range records {
			scope := erased.scope(r.Key())
			if scope == 0 {
				continue
			}
			ids[scope] = append(ids[scope], r.ID)
			if r.Content != (storage.ContentRef{}) && !l.j.Shared() {
				content = append(content, r.Content)
			}
		}
		return nil
	})
	return ids, leftOf(content), err
}

// finish ends the erasures whose records are in no segment any more, once the backend's
// files have nothing of them either.
func (l *erasures) finish(ctx context.Context) error {
	oldestRaw := l.j.log.oldestRaw()
	var ready []*Erasure
	rows := false
	for _, e := range l.unfinished() {
		if e.settled() && e.Segment < oldestRaw && len(l.j.Unflushed(e)) == 0 {
			ready = append(ready, e)
			rows = rows || l.needsBackend(e)
		}
	}
	if rows {
		if err := l.eraseUnused(ctx, ready); err != nil {
			return err
		}
	}
	silent := l.j.nodes.silent()
	return l.change(ready, func(e *Erasure) { e.DoneAt, e.Silent = l.j.options.now(), silent })
}

// eraseUnused removes from the backend's files what only the records of erasures have needed.
func (l *erasures) eraseUnused(ctx context.Context, of []*Erasure) (err error) {
	copies := false
	if eraser, ok := l.j.backend.(storage.RecordEraser); ok && slices.ContainsFunc(of, func(e *Erasure) bool { return !e.unusedErased }) {
		l.j.options.Load().LowPriority(func() { err = eraser.EraseUnused(ctx) })
		if copies = errors.Is(err, storage.ErrCopiesRemain); copies {
			l.j.options.logger().Warn("an erasure leaves copies", zap.Error(err))
			err = nil
		}
	}
	if err == nil {
		err = l.change(of, func(e *Erasure) {
			if !e.unusedErased {
				e.unusedErased, e.CopiesRemain = true, copies
			}
		})
	}
	if err != nil {
		return err
	}
	return l.j.maintenance.eraseFiles(ctx)
}
