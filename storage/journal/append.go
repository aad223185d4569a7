package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/storage"
)

// ErrFull tells that the entries that wait for the backend have come to Options.MaxBytes.
var ErrFull = errors.New("the journal is full, because the backend is behind: see max_journal")

var (
	errClosed = errors.New("the journal is closed")
	errSize   = errors.New("the entry is too large for the journal")
)

// Append writes a record and returns when it would survive the end of the
// process. k is what is kept of the record's content, and Append sets r.Content. A nil k
// leaves r.Content as it is: no content for a new record, the earlier content for an
// amendment. A later Append with the same key replaces the earlier record. The response
// may be a raw stream: readers get its stored form. r, k and their slices are the caller's
// again when Append returns. An error means that the record is lost, and counted.
//
// A version with the EndState Interrupted is given to the backend only when Abandon, or a
// crash, ends the exchange without another version. The first Append of an exchange that
// Begin counted accounts for the exchange.
func (j *Journal) Append(r *storage.Record, k *storage.Kept) error {
	d := drafts.Get().(*draft)
	defer d.free()
	d.key, d.at, d.number, d.interrupted = r.Key(), r.CreatedAt, r.Number, r.EndState == storage.Interrupted
	d.spanKeys = r.SpanKeys
	if k != nil {
		r.Content = storage.ContentRef{}
	}
	stored, c := k.Masked(r, j.mask(r.Org, r.ContentMask()))
	if scope := j.Erased(d.key); scope > 0 {
		stored, c = stored.Erased(scope), nil
		d.spanKeys = stored.SpanKeys
	}
	encode(d, kindRecord, recordWire, stored)
	d.content(c, j.log.chunks.Load())
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

// AppendAnnotation writes an annotation, as Append does a record, without the credentials
// in its texts, and without what was erased. A change of a conversation that was erased as a whole is
// storage.ErrNotFound, unless it deletes the conversation.
func (j *Journal) AppendAnnotation(f *storage.Annotation) error {
	if err := f.Redact(j.mask(f.Org, f.ContentMask())); err != nil {
		return err
	}
	if c := f.Conversation; c != nil {
		j.erasures.deciding.RLock()
		defer j.erasures.deciding.RUnlock()
		if !c.Deleted && j.ErasedConversation(f.Org, c.ID) {
			return fmt.Errorf("the conversation %s was erased: %w", c.ID, storage.ErrNotFound)
		}
	}
	f = j.erasures.records.Load().applyTo(f)
	d := drafts.Get().(*draft)
	defer d.free()
	d.at = f.At
	encode(d, kindAnnotation, annotationWire, f)
	d.content(nil, nil)
	return j.submit(d)
}

// mask returns what masks an entry of an organisation, and also its content, nil for nothing.
func (j *Journal) mask(org string, also mask.Content) *mask.Masker {
	if masker := j.options.Load().Mask; masker != nil {
		return masker(org, also)
	}
	return nil
}

// submit has d written, by this goroutine or by the first of its group.
func (j *Journal) submit(d *draft) error {
	j.mu.Lock()
	if err := j.admit(d); err != nil {
		fresh := errors.Is(err, ErrFull) && !j.full
		j.full = j.full || fresh
		logger := j.options.logger()
		j.mu.Unlock()
		if fresh {
			logger.Error("the journal is full: records are lost, and counted, until the backend takes some")
		}
		return err
	}
	j.pendingBytes += d.size()
	j.log.queue = append(j.log.queue, d)
	first := len(j.log.queue) == 1
	j.mu.Unlock()
	if first {
		runtime.Gosched() // calls that end now, too, join the group: one write serves them all
		j.writeQueue()
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
		j.ledger.lose(d.loss(storage.LostJournalFailed))
		return errSize
	case j.pendingBytes+d.size() > j.options.Load().MaxBytes:
		j.ledger.lose(d.loss(storage.LostJournalFull))
		return ErrFull
	}
	return nil
}

// writeQueue writes the group that has formed by the time it has the turn.
func (j *Journal) writeQueue() {
	j.log.turn.Lock()
	defer j.log.turn.Unlock()
	j.saveLosses()
	j.mu.Lock()
	group := j.log.queue
	j.log.queue = j.log.spare
	j.mu.Unlock()
	j.commit(group)
	for _, d := range group[1:] {
		d.done <- struct{}{}
	}
	clear(group)
	j.log.spare = group[:0]
}

// commit writes a group, all or nothing, and publishes it. It needs the turn.
func (j *Journal) commit(group []*draft) {
	o := j.options.Load()
	start := time.Now()
	var s *segment
	var err error
	if start.Sub(j.log.checkedAt) >= checkEvery {
		err = j.checkDirectory()
	}
	if err == nil {
		s, err = j.log.writable()
	}
	if err == nil {
		j.shareAgain(group)
		if o.Sync {
			j.witness.syncOthers() // what was charged for a record is on the disk before the record
		}
		err = j.log.write(s, group, o.Sync)
	}
	j.mu.Lock()
	changed := j.log.failing != (err != nil)
	j.log.failing = err != nil
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

// shareAgain encodes content again that shares bytes with another segment than the active.
func (j *Journal) shareAgain(group []*draft) {
	t := j.log.chunks.Load()
	for _, d := range group {
		if d.source == nil || d.table == t {
			continue
		}
		size := d.size()
		d.content(d.source, t)
		j.mu.Lock()
		j.pendingBytes += d.size() - size
		j.mu.Unlock()
	}
}

// publish enters a group in the books that was written at the time now. It needs the mutex.
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
			j.versions.appended(d)
		}
		if d.number > 0 {
			s.exchanges++
			j.ledger.appended(1)
		}
	}
	j.counts.Appended += int64(len(group))
	if j.delivery.waiting += len(group); j.delivery.waiting >= j.delivery.threshold {
		signal(j.delivery.wake)
	}
}

// write writes a group after the segment's entries, or leaves no trace of it.
func (l *log) write(s *segment, group []*draft, sync bool) error {
	pieces := l.pieces[:0]
	var size int64
	for i, d := range group {
		d.finish(s.entries+uint32(i), s.salt)
		pieces = d.appendPieces(pieces)
		size += d.size()
	}
	l.largest = max(l.largest, size)
	err := s.file.write(pieces, s.size)
	clear(pieces)
	l.pieces = pieces[:0]
	written := err == nil
	if written && sync {
		err = s.file.sync()
	}
	if err == nil {
		return nil
	}
	// What the disk holds now is not known after a failed flush, nor after a write that
	// cannot be undone. Nothing more is written to this segment, and the next segment says
	// where this segment ends, so that what counts as lost is not found again.
	if s.file.Truncate(s.size) != nil || written {
		l.close(s)
		l.unsavedEnds = append(l.unsavedEnds, storage.Position{Segment: s.number, Ordinal: s.entries})
	}
	return err
}

// fail counts a group that could not be written. It needs the mutex.
func (j *Journal) fail(group []*draft, err error) {
	for _, d := range group {
		d.err = fmt.Errorf("writing the journal: %w", err)
		j.pendingBytes -= d.size()
		if d.kind == kindRecord || d.kind == kindAnnotation {
			j.ledger.lose(d.loss(storage.LostJournalFailed))
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// draft is an entry on its way into a segment. Concurrent drafts form a group: the goroutine
// of the first draft writes all of them.
type draft struct {
	kind kind
	// buf holds head, metadata and content but for the bodies that are written
	// from the caller's memory.
	buf      []byte
	metadata int
	bodies   []span
	// length and sum are the length and the checksum of the content.
	length int64
	sum    uint32
	media  bool

	// spanKeys are those of the record.
	spanKeys []string

	key    storage.RecordKey // zero unless the entry is a version of a record
	at     moment
	number uint64 // of the exchange, 0 unless it is the first of its entries

	interrupted bool // a record from before the end of its exchange

	// source is the content before encoding, and table the chunks with which it was
	// encoded. own is where the request's own bytes begin in the entry, offset where the
	// entry stands in its segment.
	source *storage.Content
	table  *chunkTable
	split  splitter
	own    int64
	offset int64

	// done tells a draft that another has written for it.
	done  chan struct{}
	place storage.Position
	err   error
}

// span is a body that belongs at an offset of a draft's buf.
type span struct {
	at   int
	data []byte
}

const (
	// borrowSize is the size from which a body is written from the caller's memory:
	// copying a smaller body costs less than one more vector.
	borrowSize = 4 << 10
	// keepSize bounds the buffers that idle drafts hold.
	keepSize = 64 << 10
	// keepChunks bounds the memory of their splitters.
	keepChunks = 1 << 10
)

var drafts = sync.Pool{New: func() any { return &draft{done: make(chan struct{}, 1)} }}

func (d *draft) free() {
	if cap(d.buf) > keepSize {
		d.buf = nil
	}
	if cap(d.split.cuts) > keepChunks {
		d.split = splitter{}
	}
	clear(d.bodies)
	*d = draft{buf: d.buf[:0], bodies: d.bodies[:0], split: d.split, done: d.done}
	drafts.Put(d)
}

func encode[M any](d *draft, k kind, wire message[M], m *M) {
	d.kind = k
	d.buf = wire.append(append(d.buf[:0], make([]byte, headSize)...), m)
	d.metadata = len(d.buf) - headSize
}

// content encodes c and its checksum. What t knows of the request is not written
// again; if t is nil, the request is encoded whole.
func (d *draft) content(c *storage.Content, t *chunkTable) {
	d.buf, d.bodies, d.length, d.sum = d.buf[:headSize+d.metadata], d.bodies[:0], 0, 0
	d.source, d.table, d.split.cuts = c, t, d.split.cuts[:0]
	if c == nil || len(c.Request.Data)+len(c.Response.Data)+len(c.Inputs) == 0 {
		return
	}
	d.media = c.Media
	d.buf = contentWire[:requestData].append(d.buf, c)
	if request := c.Request.Data; t.takes(request) {
		d.share(request)
	} else if len(request) > 0 {
		d.buf = appendField(d.buf, requestData, len(request))
		d.body(request)
	}
	if len(c.Response.Data) > 0 {
		d.buf = appendField(d.buf, requestData+1, len(c.Response.Data))
		d.body(c.Response.Data)
	}
	from := headSize + d.metadata
	for _, s := range append(d.bodies, span{at: len(d.buf)}) {
		d.sum = crc32.Update(crc32.Update(d.sum, castagnoli, d.buf[from:s.at]), castagnoli, s.data)
		d.length += int64(s.at - from + len(s.data))
		from = s.at
	}
}

// share encodes what the table does not know of a request.
func (d *draft) share(request []byte) {
	d.split.split(d.table, d.key.Org, request)
	d.buf = appendShared(d.buf, d.split.extents, crc32.Checksum(request, castagnoli), uint64(len(request)), uint64(d.split.literal))
	d.own = int64(len(d.buf))
	for _, e := range d.split.extents {
		d.body(request[:e.literal])
		request = request[e.literal+e.shared:]
	}
}

func (d *draft) body(b []byte) {
	if len(b) < borrowSize {
		d.buf = append(d.buf, b...)
		return
	}
	d.bodies = append(d.bodies, span{len(d.buf), b})
}

// loss is the loss of the entry.
func (d *draft) loss(reason string) storage.Loss {
	return storage.Loss{Reason: reason, Count: 1, Exchanges: int64(min(d.number, 1)), From: d.at, To: d.at}
}

func (d *draft) size() int64 { return headSize + int64(d.metadata) + d.length }

// finish writes the head, once the draft's place is known.
func (d *draft) finish(ordinal, salt uint32) {
	b := d.buf[:headSize+d.metadata]
	sizes := uint32(d.metadata) | uint32(d.kind)<<24
	if d.media {
		sizes |= mediaBit
	}
	order.PutUint32(b[4:], d.sum)
	order.PutUint32(b[8:], ordinal)
	order.PutUint32(b[12:], uint32(d.length))
	order.PutUint32(b[16:], sizes)
	order.PutUint32(b, crc32.Update(salt, castagnoli, b[4:]))
}

func (d *draft) appendPieces(pieces [][]byte) [][]byte {
	from := 0
	for _, s := range d.bodies {
		pieces = append(pieces, d.buf[from:s.at], s.data)
		from = s.at
	}
	if from < len(d.buf) {
		pieces = append(pieces, d.buf[from:])
	}
	return pieces
}
