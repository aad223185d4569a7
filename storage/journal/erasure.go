package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// ErasuresName is the file of the erasures in the journal's directory.
const ErasuresName = "erasures"

// Erasure removes some records, or a part of them, from the journal's files and from the backend,
// and afterwards proves that it did. It never has the values by which the records were chosen.
type Erasure struct {
	ID uuid.UUID
	// Org is the organisation whose records these are.
	Org string
	// Scope is what is removed of the records; 0, of an earlier version of Weir, is EraseContent.
	Scope storage.ErasureScope `json:",omitempty"`
	// RequestedAt is when the records were chosen, RequestedBy is the id of the API
	// key, or the beginning of its hash.
	RequestedAt storage.Timestamp
	RequestedBy string
	// Searched are the fields and operators of the filter.
	Searched []string
	// Records counts the records: of EraseContent, those that had content. Bytes are the bytes of
	// their bodies as they were sent.
	Records, Bytes int64
	// Erased counts the records that are erased so far: of EraseContent, those whose content is in
	// no segment any more, else those that the backend has erased.
	Erased int64
	// DoneAt is when the last file was written, 0 if some are left.
	DoneAt storage.Timestamp
	// Left are the entries in segments that are not written yet, by segment.
	Left map[uint64][]uint32 `json:",omitempty"`
	// Find is true while records are left to find in the backend: those to erase there, and, after
	// a restore, the content of all.
	Find bool `json:",omitempty"`
	// Segment is the newest segment that may have the records' metadata, 0 if nothing of these is
	// erased. It is sealed, and so without metadata, before the erasure is done.
	Segment uint64 `json:",omitempty"`

	// ids are the records to erase in the backend; without them, after a start, it is searched.
	ids []uuid.UUID
	// unusedErased is true once the backend has erased what only these records needed.
	unusedErased bool
}

// Chosen is a record that an erasure has chosen, with its content.
type Chosen struct {
	ID      uuid.UUID
	Content storage.ContentRef
}

// erasures are the erasures of a journal, in the order of creation.
type erasures struct {
	// mu guards the fields. It is held while the files are written.
	mu    sync.Mutex
	all   []*Erasure
	reach Reach
	// refused is why no erasure can be created, nil if one can.
	refused error

	// hidden are the entries that are left to erase, sorted, by segment: nobody can read their
	// content. It is nil if there are none.
	hidden atomic.Pointer[map[uint64][]uint32]
	// finds is true while the content of erased records is left to find: after a restore.
	finds atomic.Bool
	// records are all records of all erasures.
	records atomic.Pointer[erasedRecords]
}

// erasuresText is what the file has, as JSON.
type erasuresText struct {
	// Generation counts the writes of the file.
	Generation uint64
	Erasures   []*Erasure
	// Records is how much of the file of erased records holds.
	Records erasedFile `json:",omitzero"`

	records *erasedRecords
}

// openErasures reads the files, if there are any. Without them, nobody knows what is left to erase.
func (j *Journal) openErasures() {
	e := &j.erasures
	t, err := readErasures(j.dir)
	if err != nil {
		j.options.logger().Error("the list of erasures cannot be read", zap.Error(err))
	}
	e.all, e.reach = t.Erasures, t.reach()
	e.records.Store(t.records)
	e.hide()
	if e.refused = j.Compare(ErasuresName, e.reach); e.refused != nil {
		j.options.logger().Error("what is left to erase is not known: the erasures have to be requested again", zap.Error(e.refused))
	}
}

// readErasures returns an empty list if there is no file, or with an error.
func readErasures(dir string) (t erasuresText, err error) {
	path := filepath.Join(dir, ErasuresName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return erasuresText{}, fmt.Errorf("%s: %w", path, err)
	}
	if t.records, err = readErased(dir, t.Records); err != nil {
		return erasuresText{}, err
	}
	return t, nil
}

// reach is how far the file reaches, zero if there is none.
func (t *erasuresText) reach() Reach {
	if t.Generation == 0 {
		return Reach{}
	}
	return Reach{t.Generation, 1}
}

// write writes the file anew.
func (t *erasuresText) write(dir string) error {
	text, err := json.Marshal(t)
	if err == nil {
		err = replaceFile(filepath.Join(dir, ErasuresName), text)
	}
	if err != nil {
		return fmt.Errorf("the list of erasures cannot be written: %w", err)
	}
	return nil
}

// saveErasures writes the file anew. It needs the mutex.
func (j *Journal) saveErasures() error {
	e := &j.erasures
	next := erasuresText{Generation: e.reach.Generation + 1, Erasures: e.all}
	if records := e.records.Load(); records != nil {
		next.Records = records.file
	}
	if err := next.write(j.dir); err != nil {
		return err
	}
	e.reach = next.reach()
	j.Note(ErasuresName, e.reach)
	return nil
}

// Erase begins an erasure of records that the backend has. It returns once the erasure is durable:
// from then on nobody reads the content. Maintenance does the rest, also after a crash.
func (j *Journal) Erase(e Erasure, chosen []Chosen) error {
	ids, content := make([]uuid.UUID, len(chosen)), make([]storage.ContentRef, 0, len(chosen))
	for i, c := range chosen {
		if ids[i] = c.ID; c.Content != (storage.ContentRef{}) {
			content = append(content, c.Content)
		}
	}
	e.Left = leftOf(content)
	l := &j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil {
		return l.refused
	}
	before := l.records.Load()
	records, err := before.with(j.dir, e.Org, ids, max(e.Scope, storage.EraseContent))
	if err != nil {
		return fmt.Errorf("the list of erased records cannot be written: %w", err)
	}
	l.records.Store(records)
	if e.Scope > storage.EraseContent { // what is appended from now on has nothing of them
		e.Find, e.ids, e.Segment = true, ids, j.newestRaw()
	}
	if e.settled() {
		e.DoneAt = j.options.now()
	}
	l.all = append(l.all, &e)
	if err := j.saveErasures(); err != nil {
		l.all = l.all[:len(l.all)-1]
		l.records.Store(before)
		return err
	}
	l.hide()
	signal(j.maintenance.wake)
	return nil
}

// settled reports whether nothing is left to find or to write.
func (e *Erasure) settled() bool { return !e.Find && len(e.Left) == 0 }

// newestRaw is the number of the newest segment that is not sealed, 0 if all are.
func (j *Journal) newestRaw() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.log.raw); n > 0 {
		return j.log.raw[n-1].number
	}
	return 0
}

// Erasures returns the erasures of an organisation, the newest first.
func (j *Journal) Erasures(org string) (all []Erasure) {
	j.erasures.mu.Lock()
	defer j.erasures.mu.Unlock()
	for _, e := range slices.Backward(j.erasures.all) {
		if e.Org == org {
			all = append(all, *e)
		}
	}
	return all
}

// Erased is what was erased of a record, 0 if it was not.
func (j *Journal) Erased(key storage.RecordKey) storage.ErasureScope {
	return j.erasures.records.Load().scope(key)
}

// apply removes from records what was erased of them, and returns the content that is left of
// them.
func (r *erasedRecords) apply(records []*storage.Record) (kept []*storage.Record, content map[string][]storage.ContentRef) {
	if r == nil {
		return records, nil
	}
	kept = records[:0]
	for _, record := range records {
		scope := r.scope(record.Key())
		if scope == 0 {
			kept = append(kept, record)
			continue
		}
		if record.Content != (storage.ContentRef{}) {
			if content == nil {
				content = make(map[string][]storage.ContentRef)
			}
			content[record.Org] = append(content[record.Org], record.Content)
		}
		if scope < storage.EraseRecord {
			kept = append(kept, record.Erased(scope))
		}
	}
	return kept, content
}

// eraseLate removes from a batch what was erased of its records: a restored segment may have them.
func (j *Journal) eraseLate(b *storage.Batch) {
	var content map[string][]storage.ContentRef
	b.Records, content = j.erasures.records.Load().apply(b.Records)
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

// leftOf sorts entries into their segments.
func leftOf(refs []storage.ContentRef) map[uint64][]uint32 {
	left := make(map[uint64][]uint32)
	for _, ref := range refs {
		left[ref.Segment] = append(left[ref.Segment], ref.Ordinal)
	}
	for _, ordinals := range left {
		slices.Sort(ordinals)
	}
	return left
}

// add adds entries to those that are left.
func (e *Erasure) add(left map[uint64][]uint32) {
	all := make(map[uint64][]uint32, len(e.Left)+len(left))
	maps.Copy(all, e.Left)
	for number, ordinals := range left {
		merged := slices.Concat(all[number], ordinals)
		slices.Sort(merged)
		all[number] = slices.Compact(merged)
	}
	e.Left = all
}

// hide makes the entries unreadable that all erasures together still have to remove. It needs the
// mutex.
func (e *erasures) hide() {
	var left map[uint64][]uint32
	finds := false
	for _, one := range e.all {
		finds = finds || one.Find
		for number, ordinals := range one.Left {
			if left == nil {
				left = make(map[uint64][]uint32)
			}
			left[number] = append(left[number], ordinals...)
		}
	}
	e.finds.Store(finds)
	if left == nil {
		e.hidden.Store(nil)
		return
	}
	for _, ordinals := range left {
		slices.Sort(ordinals)
	}
	e.hidden.Store(&left)
}

// left returns the entries that are left to erase, sorted, by segment.
func (e *erasures) left() map[uint64][]uint32 {
	if hidden := e.hidden.Load(); hidden != nil {
		return *hidden
	}
	return nil
}

// hides reports whether the content of a record is left to erase.
func (e *erasures) hides(r *storage.Record) bool {
	_, found := slices.BinarySearch(e.left()[r.Content.Segment], r.Content.Ordinal)
	return found || e.finds.Load() && e.records.Load().scope(r.Key()) > 0
}

// change replaces an erasure by what do makes of a copy, and writes the list.
func (j *Journal) change(id uuid.UUID, do func(*Erasure)) error {
	l := &j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.all {
		if e.ID == id {
			next := *e
			do(&next)
			l.all[i] = &next
		}
	}
	l.hide()
	return j.saveErasures()
}

// unfinished are the erasures that are not done.
func (e *erasures) unfinished() (all []*Erasure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		if one.DoneAt == 0 {
			all = append(all, one)
		}
	}
	return all
}

// runErasures does what is left of the erasures. Backups and sealing go on between two segments.
// What cannot be done yet is left to the next maintenance.
func (j *Journal) runErasures(ctx context.Context) {
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
		if e.Scope <= storage.EraseContent {
			next.Erased += int64(len(mine))
		}
		if next.settled() && next.Scope <= storage.EraseContent { // else the backend's files come next
			next.DoneAt = j.options.now()
		}
		j.erasures.all[i] = &next
	}
	j.erasures.hide()
	return j.saveErasures()
}

// contains reports whether a sorted list has all of some values.
func contains(sorted, values []uint32) bool {
	return !slices.ContainsFunc(values, func(v uint32) bool {
		_, found := slices.BinarySearch(sorted, v)
		return !found
	})
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
			if err := j.eraseRows(ctx, e.Org, e.ids, e.Scope); err != nil {
				return err
			}
			if err := j.change(e.ID, (*Erasure).erasedRows); err != nil {
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
		for _, scope := range []storage.ErasureScope{storage.EraseIdentity, storage.EraseRecord} {
			if err == nil {
				err = j.eraseRows(ctx, org, ids[scope], scope)
			}
		}
		for _, e := range erasures {
			if err == nil {
				err = j.change(e.ID, (*Erasure).erasedRows)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// erasedRows notes that the backend has erased the records.
func (e *Erasure) erasedRows() {
	e.Find, e.ids = false, nil
	if e.Scope > storage.EraseContent {
		e.Erased = e.Records
	}
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
	q := &storage.RequestQuery{Org: org, Filter: storage.All{}, Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: erasePage}
	ask := func(q *storage.RequestQuery) (records []*storage.Record, err error) {
		j.options.Load().LowPriority(func() { records, err = j.backend.Requests(ctx, q) })
		return records, err
	}
	err = q.EachPage(ask, func(records []*storage.Record) error {
		for _, r := range records {
			scope := erased.scope(r.Key())
			if scope == 0 {
				continue
			}
			ids[scope] = append(ids[scope], r.ID)
			if r.Content != (storage.ContentRef{}) {
				content = append(content, r.Content)
			}
		}
		return nil
	})
	return ids, leftOf(content), err
}

// findAgain has all erasures repeated in the backend, which is older than it was.
func (j *Journal) findAgain() error {
	l := &j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return nil
	}
	for i, e := range l.all {
		next := *e
		next.Find, next.DoneAt, next.unusedErased = true, 0, false
		l.all[i] = &next
	}
	l.hide()
	return j.saveErasures()
}

// finishErasures ends the erasures whose records are in no segment any more, once the backend's
// files have nothing of them either.
func (j *Journal) finishErasures(ctx context.Context) error {
	j.mu.Lock()
	oldestRaw := uint64(1<<64 - 1)
	if len(j.log.raw) > 0 {
		oldestRaw = j.log.raw[0].number
	}
	j.mu.Unlock()
	var ready []*Erasure
	rows := false
	for _, e := range j.erasures.unfinished() {
		if e.settled() && e.Segment < oldestRaw {
			ready = append(ready, e)
			rows = rows || e.Scope > storage.EraseContent
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
