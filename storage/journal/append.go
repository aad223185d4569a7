package journal

import (
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// ErrFull tells that the entries that wait for the backend have come to Options.MaxBytes.
var ErrFull = errors.New("the journal is full, because the backend is behind: see max_journal")

var (
	errClosed = errors.New("the journal is closed")
	errSize   = errors.New("the entry is too large for the journal")
)

// Append writes a record and returns when it would survive the end of the
// process. c is its content; nil leaves r.Content as it is, which is none for
// a new record and the earlier one for an amendment: a later Append of the same
// ID replaces the earlier. Append sets r.Content. c.Response.Data may be a raw
// stream: readers get its stored form. r, c and their slices are the caller's
// again when Append returns. An error means that the record is lost, and
// counted. A version whose EndState is Interrupted is given to the backend only
// when Abandon, or a crash, ends the exchange without another one. The first Append of an exchange that Begin counted accounts for it.
func (j *Journal) Append(r *storage.Record, c *storage.Content) error {
	d := drafts.Get().(*draft)
	defer d.free()
	d.id, d.org, d.at, d.number, d.interrupted = r.ID, r.Org, r.CreatedAt, r.Number, r.EndState == storage.Interrupted
	if c != nil {
		r.Content = storage.ContentRef{}
	}
	encode(d, kindRecord, recordWire, r)
	d.content(c, j.chunks.Load())
	err := j.submit(d)
	if !errors.Is(err, errClosed) {
		r.Number = 0
	}
	if err != nil {
		return err
	}
	if d.length > 0 {
		r.Content = storage.ContentRef(d.place)
	}
	if len(d.split.cuts) > 0 {
		d.table.learn(&d.split, uint64(d.offset+d.own), d.place.Ordinal)
	}
	return nil
}

// AppendAnnotation writes an annotation, as Append does a record.
func (j *Journal) AppendAnnotation(f *storage.Annotation) error {
	d := drafts.Get().(*draft)
	defer d.free()
	d.at = f.At
	encode(d, kindAnnotation, annotationWire, f)
	d.content(nil, nil)
	return j.submit(d)
}

// submit has d written, by this goroutine or by the first of its group.
func (j *Journal) submit(d *draft) error {
	j.mu.Lock()
	if err := j.admit(d); err != nil {
		fresh := errors.Is(err, ErrFull) && !j.full
		j.full = j.full || fresh
		logger := j.options.Logger
		j.mu.Unlock()
		if fresh {
			logger.Error("the journal is full: records are lost, and counted, until the backend takes some")
		}
		return err
	}
	j.pendingBytes += d.size()
	j.queue = append(j.queue, d)
	first := len(j.queue) == 1
	j.mu.Unlock()
	if first {
		j.lead()
	} else {
		<-d.done
	}
	return d.err
}

func (j *Journal) admit(d *draft) error {
	switch {
	case j.closed:
		return errClosed
	case d.metadata > maxMetadata || d.length > math.MaxUint32:
		j.loseDraft(d, storage.LostJournalFailed)
		return errSize
	case j.pendingBytes+d.size() > j.options.MaxBytes:
		j.loseDraft(d, storage.LostJournalFull)
		return ErrFull
	}
	return nil
}

// lead writes the group that has formed by the time the turn comes.
func (j *Journal) lead() {
	j.turn.Lock()
	defer j.turn.Unlock()
	j.saveLosses()
	j.mu.Lock()
	group, o := j.queue, j.options
	j.queue = j.spare
	j.mu.Unlock()
	j.commit(group, &o)
	for _, d := range group[1:] {
		d.done <- struct{}{}
	}
	clear(group)
	j.spare = group[:0]
}

// commit writes a group, all or nothing, and publishes it. It needs the turn.
func (j *Journal) commit(group []*draft, o *Options) {
	start := time.Now()
	var s *segment
	var err error
	if start.Sub(j.looked) >= checkEvery {
		err = j.checkDirectory(o)
	}
	if err == nil {
		s, err = j.writable(o)
	}
	if err == nil {
		j.lay(group)
		err = j.write(s, group, o.Sync)
	}
	j.mu.Lock()
	changed := j.failing != (err != nil)
	j.failing = err != nil
	if err != nil {
		j.fail(group, err)
	} else {
		j.publish(s, group, storage.Millis(o.now()))
		j.counts.Writes.add(time.Since(start))
	}
	j.mu.Unlock()
	switch {
	case changed && err != nil:
		o.Logger.Error("the journal cannot be written: records are lost, and counted, until it can", zap.Error(err))
	case changed:
		o.Logger.Info("the journal can be written again")
	}
}

// lay lays down anew what shares bytes with another segment than it goes to.
func (j *Journal) lay(group []*draft) {
	t := j.chunks.Load()
	for _, d := range group {
		if d.whole == nil || d.table == t {
			continue
		}
		size := d.size()
		d.content(d.whole, t)
		j.mu.Lock()
		j.pendingBytes += d.size() - size
		j.mu.Unlock()
	}
}

// publish enters a group that was written now in the books. It needs the mutex.
func (j *Journal) publish(s *segment, group []*draft, now moment) {
	for _, d := range group {
		d.place = storage.Position{Segment: s.number, Ordinal: s.entries}
		s.note(s.entries, s.size)
		d.offset = s.size
		if len(d.split.cuts) > 0 && d.split.hasParent {
			s.parents[s.entries] = d.split.parent
		}
		s.size += d.size()
		s.entries++
		if d.length > 0 {
			s.contents++
		}
		if d.kind == kindRecord {
			s.newest = max(s.newest, min(d.at, now))
			j.pending[d.id] = pending{d.org, d.place}
			if d.interrupted {
				j.live[d.id] = struct{}{}
			} else {
				delete(j.live, d.id)
			}
		}
		if d.number > 0 {
			s.exchanges++
			j.ledger.waiting++
			j.counter.end()
		}
	}
	j.counts.Appended += int64(len(group))
	if j.waiting += len(group); j.waiting >= j.threshold {
		signal(j.wake)
	}
}

// write writes a group behind the segment's entries, or leaves no trace of it.
func (j *Journal) write(s *segment, group []*draft, sync bool) error {
	pieces := j.pieces[:0]
	var size int64
	for i, d := range group {
		d.finish(s.entries+uint32(i), s.salt)
		pieces = d.appendPieces(pieces)
		size += d.size()
	}
	j.largest = max(j.largest, size)
	err := s.file.write(pieces, s.size)
	clear(pieces)
	j.pieces = pieces[:0]
	written := err == nil
	if written && sync {
		err = s.file.sync()
	}
	if err == nil {
		return nil
	}
	// What the disk holds now is not known after a failed flush, nor after a write that
	// cannot be undone: nothing more goes here, and the next segment says where this one
	// ends, lest what counts as lost be found again.
	if s.file.Truncate(s.size) != nil || written {
		j.close(s)
		j.ends = append(j.ends, storage.Position{Segment: s.number, Ordinal: s.entries})
	}
	return err
}

// fail counts a group that could not be written. It needs the mutex.
func (j *Journal) fail(group []*draft, err error) {
	for _, d := range group {
		d.err = fmt.Errorf("writing the journal: %w", err)
		j.pendingBytes -= d.size()
		if d.kind == kindRecord || d.kind == kindAnnotation {
			j.loseDraft(d, storage.LostJournalFailed)
		}
	}
}

// writable returns the segment that entries go to.
func (j *Journal) writable(o *Options) (*segment, error) {
	if s := j.active; s != nil {
		if s.size < o.SegmentBytes && s.entries < math.MaxUint32-1<<20 && o.now().Sub(s.opened) < o.age() {
			return s, nil
		}
		j.close(s)
	}
	s, err := j.create(o)
	if err == nil {
		j.active = s
		j.chunks.Store(newChunkTable())
	}
	return s, err
}

// close ends the active segment. It needs the turn.
func (j *Journal) close(s *segment) {
	j.active = nil
	j.chunks.Store(nil)
	j.mu.Lock()
	s.closed = true
	j.mu.Unlock()
	signal(j.wake)
}

// loseDraft counts an entry that will not be written. It needs the mutex.
func (j *Journal) loseDraft(d *draft, reason string) {
	l := storage.Loss{Reason: reason, Count: 1, From: d.at, To: d.at}
	if d.number > 0 {
		l.Exchanges = 1
		j.counter.end()
	}
	j.lose(l)
}

// lose counts losses; they are written before the next entry that can be. It
// needs the mutex.
func (j *Journal) lose(l storage.Loss) {
	j.lost[l.Reason] += l.Count
	j.losses = addLoss(j.losses, l)
	j.ledger.losses = addIncident(j.ledger.losses, l)
}

func addLoss(losses []storage.Loss, l storage.Loss) []storage.Loss {
	for i := range losses {
		if k := &losses[i]; k.Reason == l.Reason {
			k.Count += l.Count
			k.Exchanges += l.Exchanges
			k.From, k.To = min(k.From, l.From), max(k.To, l.To)
			return losses
		}
	}
	return append(losses, l)
}

// saveLosses writes the losses that no segment knows of, and before them the ends of
// segments that have what was lost. It needs the turn.
func (j *Journal) saveLosses() {
	j.mu.Lock()
	losses, o := j.losses, j.options
	j.losses = nil
	j.mu.Unlock()
	if losses == nil {
		return
	}
	ends := j.ends
	j.ends = nil
	var group []*draft
	for i := range ends {
		d := new(draft)
		encode(d, kindEnd, endWire, &ends[i])
		group = append(group, d)
	}
	for i := range losses {
		d := &draft{at: losses[i].To}
		encode(d, kindLoss, lossWire, &losses[i])
		group = append(group, d)
	}
	j.mu.Lock()
	for _, d := range group {
		j.pendingBytes += d.size()
	}
	j.mu.Unlock()
	j.commit(group, &o)
	if group[0].err == nil {
		return
	}
	j.ends = append(ends, j.ends...)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range losses {
		j.losses = addLoss(j.losses, l)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
