package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// cursor is the drain's place in the raw segments. The segment is nil between
// two of them.
type cursor struct {
	at      storage.Position // where the next segment is entered
	segment *segment
	scan    *scanner
	entries uint32 // of the segment, at the scan's end
	// exchanges counts entries that were the first of one, or should have been.
	exchanges int64
}

// delivery is a batch, with what has to be booked when it is delivered.
type delivery struct {
	storage.Batch
	start   storage.Position
	losses  []storage.Loss
	at      map[storage.RecordKey]int // index in Records
	records []storage.RecordKey       // of all versions
	entries int
	// exchanges counts the records that are the first of one, number is the highest
	// of theirs, and began has them.
	exchanges int64
	number    uint64
	began     map[storage.RecordKey]bool
	released  []storage.RecordKey // of what was held and is held no more
	bytes     int64
	gap       bool // entries were lost, whose records are not known
	full      bool
}

// readBatch reads the next batch. Of the versions of a record it takes the last.
func (j *Journal) readBatch(ctx context.Context) *delivery {
	d := &delivery{at: map[storage.RecordKey]int{}, began: map[storage.RecordKey]bool{}}
	size := 0
	limits, o := j.limits(), j.options.Load()
	j.mu.Lock()
	j.waiting = 0
	d.Journal, d.start, d.End = j.identity, j.position, j.position
	again := j.position.Before(j.cut)
	if !again {
		j.releaseHeld(d, &limits)
	}
	j.mu.Unlock()
	if len(d.released) > 0 {
		return d
	}
	for again && d.End.Before(j.cut) || !again && d.entries < limits.Entries && size < limits.Bytes {
		if j.cursor.segment == nil && !j.openSegment() {
			break
		}
		c := &j.cursor
		from, number := c.scan.off, c.segment.number
		e, err := c.scan.next()
		if err != nil && !errors.Is(err, io.EOF) {
			o.Logger.Error("a segment cannot be read: its remaining entries are lost", zap.String("file", c.segment.path), zap.Error(err))
			c.scan.lost++
			c.scan.off = c.scan.end
		}
		if err != nil && c.scan.ordinal < c.entries { // damaged since it was appended
			c.scan.lost = int64(c.entries - c.scan.ordinal)
			c.scan.off, c.scan.ordinal = c.scan.end, c.entries
		}
		if c.scan.lost > 0 {
			j.mu.Lock()
			c.segment.damaged += c.scan.lost
			j.corrupt(d, c.scan.lost, 0)
			j.mu.Unlock()
			c.scan.lost = 0
		}
		d.bytes += c.scan.off - from
		d.End = storage.Position{Segment: number, Ordinal: c.scan.ordinal}
		if err != nil {
			if !j.nextSegment(d) {
				break
			}
			continue
		}
		d.entries++
		size += len(e.metadata)
		if err := j.add(ctx, d, &e); err != nil {
			o.Logger.Error("an entry of the journal cannot be read", zap.String("file", c.segment.path), zap.Uint32("ordinal", e.ordinal), zap.Error(err))
			j.mu.Lock()
			j.corrupt(d, 1, 0)
			j.mu.Unlock()
		}
	}
	d.full = d.entries >= limits.Entries || size >= limits.Bytes
	d.ID = fmt.Sprintf("%d.%d-%d.%d", d.start.Segment, d.start.Ordinal, d.End.Segment, d.End.Ordinal)
	return d
}

// corrupt counts entries that are damaged, and exchanges that have no record
// for it. It needs the mutex.
func (j *Journal) corrupt(d *delivery, entries, exchanges int64) {
	now := j.options.now()
	l := storage.Loss{Reason: storage.LostCorrupt, Count: entries, Exchanges: exchanges, From: now, To: now}
	d.losses = addLoss(d.losses, l)
	d.gap = true
	j.ledger.drop(l)
}

// add adds an entry to the batch.
func (j *Journal) add(ctx context.Context, d *delivery, e *entry) error {
	o := j.options.Load()
	at := storage.Position{Segment: j.cursor.segment.number, Ordinal: e.ordinal}
	switch e.kind {
	case kindRecord:
		r := new(storage.Record)
		if err := recordWire.parse(e.metadata, r); err != nil {
			return err
		}
		if err := j.assets(ctx, r, e); err != nil {
			o.Logger.Warn("the media of a request are not known", zap.Stringer("request_id", r.ID), zap.Error(err))
		}
		key := r.Key()
		if r.Number > 0 {
			d.exchanges++
			d.number = max(d.number, r.Number)
			d.began[key] = true
			j.cursor.exchanges++
			r.Number = 0
		}
		d.records = append(d.records, key)
		r.Version = at
		i, again := d.at[key]
		j.mu.Lock()
		holds := j.recovered[at] || !again && j.hold(r, at)
		if !holds {
			j.supersede(d, key, at)
		}
		j.mu.Unlock()
		if holds {
			return nil
		}
		if again {
			d.Records[i] = r
			return nil
		}
		d.at[key] = len(d.Records)
		d.Records = append(d.Records, r)
	case kindAnnotation:
		a := new(storage.Annotation)
		if err := annotationWire.parse(e.metadata, a); err != nil {
			return err
		}
		j.mu.Lock()
		holds := j.recovered[at] || j.holdAnnotation(a, at)
		j.mu.Unlock()
		if !holds {
			d.Annotations = append(d.Annotations, a)
		}
	case kindLoss:
		var l storage.Loss
		if err := lossWire.parse(e.metadata, &l); err != nil {
			return err
		}
		d.losses = addLoss(d.losses, l)
	}
	return nil
}

// assets completes a record with what depends on where its content stands.
func (j *Journal) assets(ctx context.Context, r *storage.Record, e *entry) error {
	if e.length > 0 {
		r.Content = storage.ContentRef{Segment: j.cursor.segment.number, Ordinal: e.ordinal}
		if !e.media {
			return nil
		}
		c, err := j.cursor.segment.content(e)
		if err == nil {
			r.Assets = assetsOf(c)
		}
		return err
	}
	if r.Content == (storage.ContentRef{}) || r.Assets != nil {
		return nil
	}
	c, err := j.Content(ctx, r)
	if err == nil && c != nil && c.Media {
		r.Assets = assetsOf(c)
	}
	return err
}

func assetsOf(c *storage.Content) []string { return transcript.Assets(c.Request.Data) }

// openSegment opens the next segment that has something to read.
func (j *Journal) openSegment() bool {
	c := &j.cursor
	j.mu.Lock()
	defer j.mu.Unlock()
	i, _ := j.find(c.at.Segment)
	if i == len(j.raw) {
		return false
	}
	s := j.raw[i]
	s.refs++
	c.segment, c.scan, c.entries, c.exchanges = s, s.scanner(0, scanWindow), s.entries, 0
	if s.number == c.at.Segment && c.at.Ordinal > 0 { // where an earlier process stopped
		c.scan = s.scanner(c.at.Ordinal, scanWindow)
		_, _ = c.scan.seek(c.at.Ordinal)
	}
	return true
}

// nextSegment goes on from the end of what was there to read, in the same segment
// or behind it.
func (j *Journal) nextSegment(d *delivery) bool {
	c := &j.cursor
	j.mu.Lock()
	defer j.mu.Unlock()
	s := c.segment
	if c.scan.end < s.size {
		c.scan.end, c.entries = s.size, s.entries
		return true
	}
	if missing := s.exchanges - c.exchanges; missing > 0 { // their entries were damaged since
		c.exchanges = s.exchanges
		j.corrupt(d, 0, missing)
	}
	if !s.closed {
		return false
	}
	d.End = storage.Position{Segment: s.number + 1}
	c.at, c.segment = d.End, nil
	j.unref(s)
	return true
}

func (j *Journal) closeSegment() {
	if s := j.cursor.segment; s != nil {
		j.release(s)
	}
}

// heldEntries are those that the drain has read and the backend shall not have yet:
// versions of records from before the end of their exchanges, and annotations on
// these. They stay in their raw segments, and the checkpoint has their positions, so
// that they reach the backend after a crash.
type heldEntries map[storage.RecordKey]*heldRecord

// heldRecord is the last version of a record, nil when a later one is on its way to
// the backend.
type heldRecord struct {
	record      *storage.Record
	at          storage.Position
	annotations []heldAnnotation
}

type heldAnnotation struct {
	*storage.Annotation
	at storage.Position
}

// maxHeld bounds the entries that are held, since the checkpoint has room for so many.
// More are given to the backend at once, where they are seen as interrupted.
const maxHeld = 4 << 10

func (h heldEntries) positions() []storage.Position {
	var all []storage.Position
	for _, r := range h {
		if r.record != nil {
			all = append(all, r.at)
		}
		for _, a := range r.annotations {
			all = append(all, a.at)
		}
	}
	return all
}

// segments are those that held entries stand in.
func (h heldEntries) segments() map[uint64]bool {
	segments := make(map[uint64]bool)
	for _, p := range h.positions() {
		segments[p.Segment] = true
	}
	return segments
}

// hold keeps a version of a record back while its exchange lives, and drops it if
// there is a later one. It needs the mutex.
func (j *Journal) hold(r *storage.Record, at storage.Position) bool {
	if r.EndState != storage.Interrupted {
		return false
	}
	key := r.Key()
	if last, waits := j.pending[key]; waits && at.Before(last) {
		return true
	}
	if _, lives := j.live[key]; !lives || j.heldCount >= maxHeld {
		return false
	}
	h := j.held.of(key)
	if h.record == nil {
		j.heldCount++
	}
	h.record, h.at = r, at
	return true
}

// of returns what is held of a record, for more.
func (h heldEntries) of(key storage.RecordKey) *heldRecord {
	r := h[key]
	if r == nil {
		r = new(heldRecord)
		h[key] = r
	}
	return r
}

// holdAnnotation keeps an annotation on a record that is held. It needs the mutex.
func (j *Journal) holdAnnotation(a *storage.Annotation, at storage.Position) bool {
	h := j.held[a.Key()]
	if h == nil || h.record == nil || j.heldCount >= maxHeld {
		return false
	}
	j.heldCount++
	h.annotations = append(h.annotations, heldAnnotation{a, at})
	return true
}

// supersede takes the annotations that are held of a record into the batch that has the
// version at a later position. It needs the mutex.
func (j *Journal) supersede(d *delivery, key storage.RecordKey, at storage.Position) {
	h := j.held[key]
	if h == nil || at.Before(h.at) { // an earlier process has read the version before
		return
	}
	h.record = nil
	d.release(key, h)
}

func (d *delivery) release(key storage.RecordKey, h *heldRecord) {
	if h.record != nil {
		d.Records = append(d.Records, h.record)
	}
	for _, a := range h.annotations {
		d.Annotations = append(d.Annotations, a.Annotation)
	}
	d.released = append(d.released, key)
}

// releaseHeld makes a batch of what is held of exchanges that live no more. The
// batch has nothing else, and an ID of its own: after a crash there may be more to
// release, and a batch that comes again must be as it was. It needs the mutex.
func (j *Journal) releaseHeld(d *delivery, limits *storage.Limits) {
	if !j.released {
		return
	}
	j.released = false
	for key, h := range j.held {
		if _, lives := j.live[key]; lives {
			continue
		}
		if last, waits := j.pending[key]; waits && (h.record == nil || h.at.Before(last)) {
			continue // the later one takes it along
		}
		if n := len(d.Records) + len(d.Annotations); n > 0 && n+1+len(h.annotations) > limits.Entries {
			j.released = true
			break
		}
		d.release(key, h)
	}
	d.full = len(d.released) > 0
	d.ID = "held-" + uuid.NewString()
}

// isHeld needs the mutex.
func (j *Journal) isHeld(key storage.RecordKey) bool {
	h := j.held[key]
	return h != nil && h.record != nil
}
