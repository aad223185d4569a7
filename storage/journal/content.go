package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// Content implements storage.Contents.
func (j *Journal) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	r := contentReader{j: j, parts: storage.WholeContent}
	defer r.Close()
	c, err := r.Content(ctx, rec)
	if c != nil {
		// What surrounds them may be much more.
		c.Request.Data, c.Response.Data = bytes.Clone(c.Request.Data), bytes.Clone(c.Response.Data)
	}
	return c, err
}

// Removals counts the times at which records or content may have been removed here: while it stays
// the same, all that was read of them is still there. Other nodes with the same backend may remove
// more.
func (j *Journal) Removals() uint64 { return j.removals.Load() }

// Answer returns the answer of a record as it came, of a stream the events: those of a CacheMiss
// are kept so. It returns no data if Content would return no answer. A backend that keeps content
// itself has streams only assembled.
func (j *Journal) Answer(ctx context.Context, rec *storage.Record) (storage.Body, error) {
	if keeper, ok := j.backend.(storage.ContentKeeper); ok && !j.Pending(rec.Key()) {
		c, err := keptContents{j, keeper}.Content(ctx, rec)
		if c == nil || err != nil {
			return storage.Body{}, err
		}
		return c.Response, nil
	}
	r := contentReader{j: j, parts: storage.ResponsePart, unassembled: true}
	defer r.Close()
	_, err := r.Content(ctx, rec)
	return r.content.Response, err
}

// Reader implements storage.Contents.
func (j *Journal) Reader(parts storage.ContentPart) storage.ContentReader {
	return &contentReader{j: j, parts: parts}
}

// contentReader implements storage.ContentReader. It keeps the sealed segment that it
// read last, and blocks of this segment.
type contentReader struct {
	j       *Journal
	parts   storage.ContentPart
	content storage.Content // as returned last
	// unassembled reads streams as they came.
	unassembled bool

	segment uint64
	file    sealedFile // nil when none is open
	index   *sealedIndex
	// rewrites is that of the archive from before the file was opened.
	rewrites uint64
	// frames are the frames that were read last, within cacheBytes, 0 for the constant of that name;
	// reads counts the entries that were read.
	cacheBytes int
	frames     []*decodedFrame
	reads      int
	compressed []byte
	layout     layout
	request    []byte // put together
	// broken is where the damage was found.
	broken brokenFrame

	buffer    contentBuffer // of an entry of a raw segment
	assembler transcript.Assembler
}

type sealedFile interface {
	io.ReaderAt
	io.Closer
}

// Content implements storage.ContentReader. Damaged content reads as if it had been deleted,
// so that a damaged body does not hide the other records of a list.
func (r *contentReader) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	ref := rec.Content
	if ref == (storage.ContentRef{}) || r.j.Erased(rec.Key()) > 0 {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.content = storage.Content{}
	found, err := r.read(rec)
	if err != nil {
		err = fmt.Errorf("reading the content of entry %d of %s: %w", ref.Ordinal, segmentPath(r.j.dir, ref.Segment, ""), err)
	}
	switch {
	case errors.Is(err, errDamaged) && r.file != nil && r.segment == ref.Segment:
		r.countLost(err)
		return nil, nil
	case errors.Is(err, errSealed), errors.Is(err, fs.ErrNotExist):
		r.j.archive.damaged(ref.Segment, nil, 0, err)
		return nil, nil
	case errors.Is(err, errDamaged): // of a raw segment, which counts it when it is sealed
		if r.j.Shared() { // unless sealing leaves all content out
			r.j.archive.damagedBody(&r.j.log, ref)
		}
		return nil, nil
	case err != nil:
		return nil, err
	case !found:
		return nil, nil
	}
	return &r.content, nil
}

// read reads the content of a record, and tells whether there is any.
func (r *contentReader) read(rec *storage.Record) (bool, error) {
	ref := rec.Content
	if r.file == nil || r.segment != ref.Segment || r.rewrites != r.j.archive.rewrites.Load() {
		r.j.mu.Lock()
		if s := r.j.log.acquire(ref.Segment); s != nil {
			scan := s.scanner(ref.Ordinal, headWindow)
			r.j.mu.Unlock()
			defer r.j.log.release(s)
			return r.readRaw(s, scan, rec)
		}
		r.j.mu.Unlock()
		// Sealing completes the sealed file before it lets go of the raw file.
		if !r.j.archive.has(ref.Segment) {
			return false, nil
		}
		if err := r.open(ref.Segment); err != nil {
			return false, err
		}
	}
	return r.readSealed(ref.Ordinal)
}

// headWindow suits reading heads that have content between them.
const headWindow = 4 << 10

// readRaw reads the content of a record in a raw segment, in stored form. There is none if the
// entry is another record's: the backend may be older or newer than the journal.
func (r *contentReader) readRaw(s *segment, scan *scanner, of *storage.Record) (bool, error) {
	ordinal := of.Content.Ordinal
	e, err := scan.seek(ordinal)
	if errors.Is(err, io.EOF) || err == nil && (e.ordinal != ordinal || e.length == 0) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var rec record
	if err := headWire.parse(e.metadata, &rec); err != nil {
		return false, err
	}
	if rec.Key() != of.Key() {
		return false, nil
	}
	c := &r.content
	if err := s.readContent(&r.buffer, e.content(), e.length, e.sum, c); err != nil {
		return false, err
	}
	if r.parts&storage.ResponsePart != 0 {
		r.assemble(rec.Dialect)
	}
	return true, nil
}

// assemble brings an answer that was read as it came into stored form, if that is asked for.
func (r *contentReader) assemble(d plugins.Dialect) {
	if c := &r.content; !r.unassembled {
		c.Response.Data, c.Response.Type = r.assembler.Stored(observe.Transcript(d), c.Response.Type, c.Response.Data)
	}
}

// headWire reads no more of a record than its key and its dialect.
var headWire = message[record]{1: recordWire[1], 2: recordWire[2], 11: recordWire[11]}

// keptContents reads content from a backend that keeps it, and from the journal while
// the backend has not taken the record.
type keptContents struct {
	journal *Journal
	keeper  storage.ContentKeeper
}

func (k keptContents) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	if k.journal.Pending(r.Key()) {
		return k.journal.Content(ctx, r)
	}
	if k.journal.Erased(r.Key()) > 0 {
		return nil, nil
	}
	return k.keeper.Content(ctx, r)
}

func (k keptContents) Reader(parts storage.ContentPart) storage.ContentReader {
	return &keptReader{k, k.keeper.Reader(parts), k.journal.Reader(parts)}
}

// keptReader is the reader of keptContents.
type keptReader struct {
	keptContents
	stored, pending storage.ContentReader
}

func (r *keptReader) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	if r.journal.Pending(rec.Key()) {
		return r.pending.Content(ctx, rec)
	}
	if r.journal.Erased(rec.Key()) > 0 {
		return nil, nil
	}
	return r.stored.Content(ctx, rec)
}

// Prefetch implements storage.Prefetcher.
func (r *keptReader) Prefetch(records []*storage.Record) {
	if p, ok := r.stored.(storage.Prefetcher); ok {
		p.Prefetch(records)
	}
}

func (r *keptReader) Close() {
	r.stored.Close()
	r.pending.Close()
}
