package journal

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

const (
	// batchEntries and batchBytes (of metadata) bound a batch.
	batchEntries = 512
	batchBytes   = 4 << 20
	// pace is the least time from one batch that was not full to the next:
	// under traffic, batches cost a backend far less than records do.
	pace = 50 * time.Millisecond

	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second

	never = math.MaxInt
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
	at      map[uuid.UUID]int // index in Records
	records []uuid.UUID       // of all versions
	entries int
	// exchanges counts the records that are the first of one.
	exchanges int64
	bytes     int64
	gap       bool // entries were lost, whose records are not known
	full      bool
}

// drain brings the backend up to date until the journal is closed and the
// backend has everything, or ctx ends.
func (j *Journal) drain(ctx context.Context) {
	defer close(j.drained)
	defer j.leave()
	for {
		start := time.Now()
		d := j.gather(ctx)
		j.mu.Lock()
		// That a segment is over the backend must know before it goes.
		empty := d.entries == 0 && len(d.Losses) == 0 && d.End.Segment <= j.position.Segment
		j.mu.Unlock()
		if empty {
			j.mu.Lock()
			j.pass(d)
			j.mu.Unlock()
			if !j.idle(ctx) {
				return
			}
			continue
		}
		if !j.deliver(ctx, d) {
			return
		}
		j.mu.Lock()
		losses := j.losses != nil
		j.mu.Unlock()
		if losses { // while nothing is appended, nobody else saves them
			j.turn.Lock()
			j.saveLosses()
			j.turn.Unlock()
		}
		if !d.full {
			j.rest(ctx, pace-time.Since(start))
		}
	}
}

// gather reads the next batch. Of the versions of a record it takes the last.
func (j *Journal) gather(ctx context.Context) *delivery {
	d := &delivery{at: map[uuid.UUID]int{}}
	size := 0
	j.mu.Lock()
	j.waiting = 0
	o := j.options
	j.mu.Unlock()
	for d.entries < batchEntries && size < batchBytes {
		if j.cursor.segment == nil && !j.enter() {
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
			j.corrupt(d, c.scan.lost, 0)
			j.mu.Unlock()
			c.scan.lost = 0
		}
		d.bytes += c.scan.off - from
		d.End = storage.Position{Segment: number, Ordinal: c.scan.ordinal}
		if err != nil {
			if !j.advance(d) {
				break
			}
			continue
		}
		d.entries++
		size += len(e.metadata)
		if err := j.take(ctx, d, &e, &o); err != nil {
			o.Logger.Error("an entry of the journal cannot be read", zap.String("file", c.segment.path), zap.Uint32("ordinal", e.ordinal), zap.Error(err))
			j.mu.Lock()
			j.corrupt(d, 1, 0)
			j.mu.Unlock()
		}
	}
	d.full = d.entries >= batchEntries || size >= batchBytes
	return d
}

// corrupt counts entries that are damaged, and exchanges that have no record
// for it. It needs the mutex.
func (j *Journal) corrupt(d *delivery, entries, exchanges int64) {
	now := storage.Millis(j.options.now())
	l := storage.Loss{Reason: storage.LostCorrupt, Count: entries, Exchanges: exchanges, From: now, To: now}
	d.Losses = addLoss(d.Losses, l)
	d.gap = true
	j.lost[storage.LostCorrupt] += entries
	j.ledger.losses = addIncident(j.ledger.losses, l)
}

// take adds an entry to the batch.
func (j *Journal) take(ctx context.Context, d *delivery, e *entry, o *Options) error {
	switch e.kind {
	case kindRecord:
		r := new(storage.Record)
		if err := recordWire.parse(e.metadata, r); err != nil {
			return err
		}
		if err := j.assets(ctx, r, e); err != nil {
			o.Logger.Warn("the media of a request are not known", zap.Stringer("request_id", r.ID), zap.Error(err))
		}
		if r.Number > 0 {
			d.exchanges++
			d.Number = max(d.Number, r.Number)
			j.cursor.exchanges++
			r.Number = 0
		}
		d.records = append(d.records, r.ID)
		if i, again := d.at[r.ID]; again {
			d.Records[i] = r
			return nil
		}
		d.at[r.ID] = len(d.Records)
		d.Records = append(d.Records, r)
	case kindFact:
		f := new(storage.Annotation)
		if err := factWire.parse(e.metadata, f); err != nil {
			return err
		}
		d.Annotations = append(d.Annotations, f)
	case kindLoss:
		var l storage.Loss
		if err := lossWire.parse(e.metadata, &l); err != nil {
			return err
		}
		d.Losses = addLoss(d.Losses, l)
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
			r.Assets = transcript.Assets(c.Request.Data)
		}
		return err
	}
	if r.Content == (storage.ContentRef{}) || r.Assets != nil {
		return nil
	}
	c, err := j.Content(ctx, r.Content)
	if err == nil && c != nil && c.Media {
		r.Assets = transcript.Assets(c.Request.Data)
	}
	return err
}

// enter opens the next segment that has something to read.
func (j *Journal) enter() bool {
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

// advance goes on from the end of what was there to read, in the same segment
// or behind it.
func (j *Journal) advance(d *delivery) bool {
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
		j.ledger.waiting -= missing
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

func (j *Journal) leave() {
	if s := j.cursor.segment; s != nil {
		j.release(s)
	}
}

// deliver writes a batch, however often it takes. It is false when ctx ended.
func (j *Journal) deliver(ctx context.Context, d *delivery) bool {
	j.mu.Lock()
	d.Recorded, d.Number = j.ledger.recorded+d.exchanges, max(j.ledger.number, d.Number)
	j.mu.Unlock()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		start := time.Now()
		j.writer.Lock()
		err := j.backend.Write(ctx, &d.Batch)
		j.writer.Unlock()
		if err == nil {
			j.arrive(d, time.Since(start))
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		j.refused(err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// refused keeps why the backend does not take a batch.
func (j *Journal) refused(err error) {
	j.mu.Lock()
	first, o := j.err == nil, j.options
	if j.err = err; first {
		j.failingSince = o.now()
	}
	j.mu.Unlock()
	if first {
		o.Logger.Error("the backend refuses records: they wait in the journal", zap.Error(err))
	}
}

// arrive books what the backend has taken.
func (j *Journal) arrive(d *delivery, took time.Duration) {
	j.mu.Lock()
	recovered, logger := j.err != nil, j.options.Logger
	j.err, j.failingSince, j.full = nil, time.Time{}, false
	j.counts.Drained += int64(d.entries)
	j.ledger.recorded, j.ledger.number = d.Recorded, d.Number
	j.ledger.waiting -= d.exchanges
	j.counts.Drains.add(took)
	j.pass(d)
	j.mu.Unlock()
	if recovered {
		logger.Info("the backend takes records again")
	}
}

// pass moves the position behind a batch. It needs the mutex.
func (j *Journal) pass(d *delivery) {
	if d.End == (storage.Position{}) { // there is no segment
		return
	}
	if d.End.Segment > j.position.Segment {
		signal(j.tidy) // there may be one to seal
	}
	j.position = d.End
	j.pendingBytes -= d.bytes
	for _, id := range d.records {
		if p, waits := j.pending[id]; waits && before(p.last, d.End) {
			delete(j.pending, id)
		}
	}
	if d.gap {
		maps.DeleteFunc(j.pending, func(_ uuid.UUID, p pending) bool { return before(p.last, d.End) })
	}
	if len(d.records) >= batchEntries && len(j.pending) == 0 {
		j.pending = map[uuid.UUID]pending{} // a map keeps the room that a backlog needed
	}
	close(j.progress)
	j.progress = make(chan struct{})
}

// idle waits until there is something to read. It is false when there will not
// be.
func (j *Journal) idle(ctx context.Context) bool {
	j.mu.Lock()
	var more bool
	if c := &j.cursor; c.segment != nil {
		more = c.scan.end < c.segment.size || c.segment.closed
	} else {
		i, _ := j.find(c.at.Segment)
		more = i < len(j.raw)
	}
	if more || j.closed {
		j.mu.Unlock()
		return more
	}
	j.threshold = 1
	j.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-j.wake:
	}
	j.mu.Lock()
	j.threshold = never
	j.mu.Unlock()
	return ctx.Err() == nil
}

// rest waits for a batch's worth of entries, but no longer than d.
func (j *Journal) rest(ctx context.Context, d time.Duration) {
	j.mu.Lock()
	if d <= 0 || j.closed || j.waiting >= batchEntries {
		j.mu.Unlock()
		return
	}
	j.threshold = batchEntries
	j.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-j.wake:
	case <-timer.C:
	}
	j.mu.Lock()
	j.threshold = never
	j.mu.Unlock()
}
