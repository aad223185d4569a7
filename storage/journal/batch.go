package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// cursor is the drain's place in the segments.
type cursor struct {
	at      storage.Position // where the next segment is entered
	segment *segment         // nil between two raw segments
	scan    *scanner         // of segment
	entries uint32           // of the segment, at the scan's end
	// exchanges counts entries that were the first of an exchange, or should have been.
	exchanges int64
	sealed    *rebuild // nil unless the place is in a sealed segment
}

// batch is a batch with what delivered counts when the backend has it.
type batch struct {
	storage.Batch
	start   storage.Position
	losses  []storage.Loss
	at      map[storage.RecordKey]int // index in Records
	records []storage.RecordKey       // of all versions
	entries int
	// exchanges counts the records that are the first of an exchange, began has these
	// records, and number is the highest number of them.
	exchanges int64
	number    uint64
	began     map[storage.RecordKey]bool
	released  []storage.RecordKey // records that were held and are held no more
	bytes     int64
	gap       bool // entries of unknown records were lost
	full      bool
	rebuilt   *rebuild // a sealed segment that ends with this batch, nil if none does
}

// readBatch reads the next batch. It takes only the last version of a record.
func (dv *delivery) readBatch(ctx context.Context) *batch {
	d := &batch{at: map[storage.RecordKey]int{}, began: map[storage.RecordKey]bool{}}
	size := 0
	limits, o := dv.limits(), dv.j.options.Load()
	dv.j.mu.Lock()
	dv.waiting = 0
	d.Journal, d.start, d.End = dv.j.identity, dv.position, dv.position
	again := dv.position.Before(dv.batchEnd)
	if !again {
		dv.j.versions.releaseHeld(d, &limits)
	}
	dv.j.mu.Unlock()
	if len(d.released) > 0 {
		return d
	}
	if dv.readSealed(d, &limits) {
		return d
	}
	for again && d.End.Before(dv.batchEnd) || !again && d.entries < limits.Entries && size < limits.Bytes {
		if dv.cursor.segment == nil && !dv.openSegment() {
			break
		}
		c := &dv.cursor
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
			dv.j.mu.Lock()
			c.segment.damaged += c.scan.lost
			dv.corrupt(d, c.scan.lost, 0)
			dv.j.mu.Unlock()
			c.scan.lost = 0
		}
		d.bytes += c.scan.off - from
		d.End = storage.Position{Segment: number, Ordinal: c.scan.ordinal}
		if err != nil {
			if !dv.nextSegment(d) {
				break
			}
			continue
		}
		d.entries++
		size += len(e.metadata)
		if err := dv.add(ctx, d, &e); err != nil {
			o.Logger.Error("an entry of the journal cannot be read", zap.String("file", c.segment.path), zap.Uint32("ordinal", e.ordinal), zap.Error(err))
			dv.j.mu.Lock()
			dv.corrupt(d, 1, 0)
			dv.j.mu.Unlock()
		}
	}
	d.full = d.entries >= limits.Entries || size >= limits.Bytes
	d.ID = fmt.Sprintf("%d.%d-%d.%d", d.start.Segment, d.start.Ordinal, d.End.Segment, d.End.Ordinal)
	return d
}

// corrupt counts entries that are damaged, and exchanges that have no record
// for it. It needs the mutex.
func (dv *delivery) corrupt(d *batch, entries, exchanges int64) {
	now := dv.j.options.now()
	l := storage.Loss{Reason: storage.LostCorrupt, Count: entries, Exchanges: exchanges, From: now, To: now}
	d.losses = addLoss(d.losses, l)
	d.gap = true
	dv.j.ledger.drop(l)
}

// add adds an entry to the batch.
func (dv *delivery) add(ctx context.Context, d *batch, e *entry) error {
	switch e.kind {
	case kindRecord:
		return dv.addRecord(ctx, d, e)
	case kindAnnotation:
		return dv.addAnnotation(d, e)
	case kindLoss:
		var l storage.Loss
		if err := lossWire.parse(e.metadata, &l); err != nil {
			return err
		}
		d.losses = addLoss(d.losses, l)
	}
	return nil
}

// addRecord adds a version of a record to the batch, in place of an earlier version there, unless it is
// held back.
func (dv *delivery) addRecord(ctx context.Context, d *batch, e *entry) error {
	r := new(storage.Record)
	var before *storage.Record
	if n := len(d.Records); n > 0 {
		before = d.Records[n-1]
	}
	if err := recordWire.parseAfter(e.metadata, r, before); err != nil {
		return err
	}
	if err := dv.assets(ctx, r, e); err != nil {
		dv.j.options.logger().Warn("the media of a request are not known", zap.Stringer("request_id", r.ID), zap.Error(err))
	}
	key, at := r.Key(), dv.positionOf(e)
	r.Charges = nil
	if r.Number > 0 {
		d.exchanges++
		d.number = max(d.number, r.Number)
		d.began[key] = true
		dv.cursor.exchanges++
		r.Number = 0
	}
	d.records = append(d.records, key)
	r.Version = at
	i, again := d.at[key]
	dv.j.mu.Lock()
	holds := dv.j.versions.recovered[at] || !again && dv.j.versions.hold(r, at)
	if !holds {
		dv.j.versions.supersede(d, key, at)
	}
	dv.j.mu.Unlock()
	switch {
	case holds:
	case again:
		d.Records[i] = r
	default:
		d.at[key] = len(d.Records)
		d.Records = append(d.Records, r)
	}
	return nil
}

// addAnnotation adds an annotation to the batch, unless it is held back with its record.
func (dv *delivery) addAnnotation(d *batch, e *entry) error {
	a := new(storage.Annotation)
	if err := annotationWire.parse(e.metadata, a); err != nil {
		return err
	}
	at := dv.positionOf(e)
	dv.j.mu.Lock()
	defer dv.j.mu.Unlock()
	if !dv.j.versions.recovered[at] && !dv.j.versions.holdAnnotation(a, at) {
		d.Annotations = append(d.Annotations, a)
	}
	return nil
}

// positionOf returns the position of an entry in the segment that the drain reads.
func (dv *delivery) positionOf(e *entry) storage.Position {
	return storage.Position{Segment: dv.cursor.segment.number, Ordinal: e.ordinal}
}

// assets completes a record with what depends on where its content stands.
func (dv *delivery) assets(ctx context.Context, r *storage.Record, e *entry) error {
	if e.length > 0 {
		r.Content = storage.ContentRef{Segment: dv.cursor.segment.number, Ordinal: e.ordinal}
		if !e.media {
			return nil
		}
		c, err := dv.cursor.segment.content(e)
		if err == nil {
			r.Assets = assetsOf(c)
		}
		return err
	}
	if r.Content == (storage.ContentRef{}) || r.Assets != nil {
		return nil
	}
	c, err := segmentContents{dv.j}.Content(ctx, r)
	if err == nil && c != nil && c.Media {
		r.Assets = assetsOf(c)
	}
	return err
}

func assetsOf(c *storage.Content) []string { return transcript.Assets(c.Request.Data) }

// openSegment opens the next segment that has something to read, unless a sealed one comes first.
func (dv *delivery) openSegment() bool {
	if _, sealed := dv.nextSealed(); sealed {
		return false
	}
	c := &dv.cursor
	dv.j.mu.Lock()
	defer dv.j.mu.Unlock()
	i, _ := dv.j.log.find(c.at.Segment)
	if i == len(dv.j.log.unsealed) {
		return false
	}
	s := dv.j.log.unsealed[i]
	s.refs++
	c.segment, c.scan, c.entries, c.exchanges = s, s.scanner(0, scanWindow), s.entries, 0
	if s.number == c.at.Segment && c.at.Ordinal > 0 { // where an earlier process stopped
		c.scan = s.scanner(c.at.Ordinal, scanWindow)
		_, _ = c.scan.seek(c.at.Ordinal)
	}
	return true
}

// nextSegment goes on from the end of what was there to read, in the same segment
// or after it.
func (dv *delivery) nextSegment(d *batch) bool {
	c := &dv.cursor
	dv.j.mu.Lock()
	defer dv.j.mu.Unlock()
	s := c.segment
	if c.scan.end < s.size {
		c.scan.end, c.entries = s.size, s.entries
		return true
	}
	if missing := s.exchanges - c.exchanges; missing > 0 { // their entries were damaged since
		c.exchanges = s.exchanges
		dv.corrupt(d, 0, missing)
	}
	if !s.closed {
		return false
	}
	d.End = storage.Position{Segment: s.number + 1}
	c.at, c.segment = d.End, nil
	dv.j.log.unref(s)
	return true
}

func (dv *delivery) closeSegment() {
	if s := dv.cursor.segment; s != nil {
		dv.j.log.release(s)
	}
}
