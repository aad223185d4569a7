package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

const (
	// batchEntries and batchBytes (of metadata) bound a batch where the backend does
	// not.
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
	start   storage.Position
	losses  []storage.Loss
	at      map[uuid.UUID]int // index in Records
	records []uuid.UUID       // of all versions
	entries int
	// exchanges counts the records that are the first of one, number is the highest
	// of theirs, and began has them.
	exchanges int64
	number    uint64
	began     map[uuid.UUID]bool
	released  []uuid.UUID // of what was held and is held no more
	bytes     int64
	gap       bool // entries were lost, whose records are not known
	full      bool
}

// drain brings the backend up to date until the journal is closed and the
// backend has everything, or ctx ends.
func (j *Journal) drain(ctx context.Context) {
	defer close(j.drained)
	defer j.leave()
	if !j.connect(ctx) {
		return
	}
	for {
		start := time.Now()
		d := j.gather(ctx)
		j.mu.Lock()
		// That a segment is over the backend must know before it goes.
		empty := d.entries == 0 && len(d.losses) == 0 && len(d.released) == 0 && d.End.Segment <= j.position.Segment
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
			j.rest(ctx, j.limits().Delay-time.Since(start))
		}
	}
}

// gather reads the next batch. Of the versions of a record it takes the last.
func (j *Journal) gather(ctx context.Context) *delivery {
	d := &delivery{at: map[uuid.UUID]int{}, began: map[uuid.UUID]bool{}}
	size := 0
	limits := j.limits()
	j.mu.Lock()
	j.waiting = 0
	o := j.options
	d.Journal, d.start, d.End = j.identity, j.position, j.position
	again := j.position.Before(j.cut)
	if !again {
		j.releaseHeld(d)
	}
	j.mu.Unlock()
	for again && d.End.Before(j.cut) || !again && d.entries < limits.Entries && size < limits.Bytes {
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
	d.full = d.entries >= limits.Entries || size >= limits.Bytes
	d.ID = fmt.Sprintf("%d.%d-%d.%d", d.start.Segment, d.start.Ordinal, d.End.Segment, d.End.Ordinal)
	return d
}

// corrupt counts entries that are damaged, and exchanges that have no record
// for it. It needs the mutex.
func (j *Journal) corrupt(d *delivery, entries, exchanges int64) {
	now := storage.Millis(j.options.now())
	l := storage.Loss{Reason: storage.LostCorrupt, Count: entries, Exchanges: exchanges, From: now, To: now}
	d.losses = addLoss(d.losses, l)
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
			d.number = max(d.number, r.Number)
			d.began[r.ID] = true
			j.cursor.exchanges++
			r.Number = 0
		}
		d.records = append(d.records, r.ID)
		place := storage.Position{Segment: j.cursor.segment.number, Ordinal: e.ordinal}
		r.Version = place
		j.mu.Lock()
		holds := j.recovered[place] || j.hold(r, place)
		if !holds {
			j.supersede(d, r.ID)
		}
		j.mu.Unlock()
		if holds {
			return nil
		}
		if i, again := d.at[r.ID]; again {
			d.Records[i] = r
			return nil
		}
		d.at[r.ID] = len(d.Records)
		d.Records = append(d.Records, r)
	case kindAnnotation:
		f := new(storage.Annotation)
		if err := annotationWire.parse(e.metadata, f); err != nil {
			return err
		}
		place := storage.Position{Segment: j.cursor.segment.number, Ordinal: e.ordinal}
		j.mu.Lock()
		holds := j.recovered[place] || j.holdAnnotation(f, place)
		j.mu.Unlock()
		if !holds {
			d.Annotations = append(d.Annotations, f)
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
	j.saveCheckpoint(d.End)
	start := time.Now()
	if !j.writeBatch(ctx, d, &d.Batch) {
		return false
	}
	j.arrive(d, time.Since(start))
	return true
}

// writeBatch writes a batch, or what the backend does not reject of it.
func (j *Journal) writeBatch(ctx context.Context, d *delivery, b *storage.Batch) bool {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		j.writer.Lock()
		err := j.backend.Write(ctx, b)
		j.writer.Unlock()
		entries := len(b.Records) + len(b.Annotations)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, storage.ErrRejected) && entries == 1:
			j.reject(d, b, err)
			return true
		case errors.Is(err, storage.ErrRejected) && entries > 1:
			// The last part alone says that the batch is over.
			last := &storage.Batch{Journal: b.Journal, ID: b.ID + "/end", End: b.End}
			first, second := halves(b, d.start)
			return j.writeBatch(ctx, d, first) && j.writeBatch(ctx, d, second) && j.writeBatch(ctx, d, last)
		}
		j.refused(err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// halves takes a batch apart, in its order. The position stays at start.
func halves(b *storage.Batch, start storage.Position) (first, second *storage.Batch) {
	first = &storage.Batch{Journal: b.Journal, ID: b.ID + "/0", End: start}
	second = &storage.Batch{Journal: b.Journal, ID: b.ID + "/1", End: start}
	half := (len(b.Records) + len(b.Annotations)) / 2
	records := min(half, len(b.Records))
	first.Records, second.Records = b.Records[:records], b.Records[records:]
	first.Annotations, second.Annotations = b.Annotations[:half-records], b.Annotations[half-records:]
	return first, second
}

// reject counts as lost the one entry of a batch that can never be stored.
func (j *Journal) reject(d *delivery, b *storage.Batch, err error) {
	l := storage.Loss{Reason: storage.LostRejected, Count: 1}
	var id uuid.UUID
	j.mu.Lock()
	if len(b.Records) > 0 {
		id = b.Records[0].ID
		l.From = b.Records[0].CreatedAt
		if d.began[id] {
			l.Exchanges = 1
		}
	} else {
		id = b.Annotations[0].RequestID
		l.From = b.Annotations[0].At
	}
	l.To = l.From
	// It is part of the batch, so that it counts once if the batch comes again.
	d.losses = addLoss(d.losses, l)
	j.lost[l.Reason]++
	j.ledger.losses = addIncident(j.ledger.losses, l)
	if l.Exchanges > 0 {
		j.ledger.waiting--
		d.exchanges--
	}
	logger := j.options.Logger
	j.mu.Unlock()
	logger.Error("the backend rejects an entry, which is lost", zap.Stringer("request_id", id), zap.Error(err))
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
	j.ledger.recorded += d.exchanges
	j.ledger.number = max(j.ledger.number, d.number)
	j.ledger.drained = slices.Clone(j.ledger.drained)
	for _, l := range d.losses {
		j.ledger.drained = addIncident(j.ledger.drained, l)
	}
	j.letGo(d)
	j.ledger.waiting -= d.exchanges
	j.counts.Drains.add(took)
	j.pass(d)
	j.mu.Unlock()
	j.saveCheckpoint(storage.Position{})
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
		if p, waits := j.pending[id]; waits && p.last.Before(d.End) {
			delete(j.pending, id)
		}
	}
	if d.gap {
		maps.DeleteFunc(j.pending, func(_ uuid.UUID, p pending) bool { return p.last.Before(d.End) })
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
	if more = more || j.released; more || j.closed {
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
