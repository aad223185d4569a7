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

// segmentContents is the content in the segments of a journal. Of records that a ContentKeeper has, it may
// have none: Contents knows where to read.
type segmentContents struct{ journal *Journal }

// Content implements storage.Contents.
func (s segmentContents) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	r := contentReader{j: s.journal, parts: storage.WholeContent}
	defer r.Close()
	c, err := r.Content(ctx, rec)
	if c != nil {
		// The bodies are parts of a buffer that may be much larger.
		c.Request.Data, c.Response.Data = bytes.Clone(c.Request.Data), bytes.Clone(c.Response.Data)
	}
	return c, err
}

// Removals counts the times at which records or content may have been removed here: while it stays
// the same, all that was read of them is still there. Other nodes with the same backend may remove
// more.
func (j *Journal) Removals() uint64 { return j.removals.Load() }

// Answer returns the answer of a record as the provider sent it: the events of a stream, if the record
// is a CacheMiss. It returns no data if Content would return no answer. A backend that keeps
// content itself has streams only assembled.
func (j *Journal) Answer(ctx context.Context, rec *storage.Record) (storage.Body, error) {
	if keeper, ok := j.backend.(storage.ContentKeeper); ok && !j.Pending(rec.Key()) {
		c, err := backendContents{j, keeper}.Content(ctx, rec)
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
func (s segmentContents) Reader(parts storage.ContentPart) storage.ContentReader {
	return &contentReader{j: s.journal, parts: parts}
}

// contentReader implements storage.ContentReader. It keeps the sealed segment that it
// read last, and blocks of this segment.
type contentReader struct {
	j       *Journal
	parts   storage.ContentPart
	content storage.Content // as returned last
	// unassembled returns the events of streams. Else their answers are assembled.
	unassembled bool

	segment uint64     // of the open file
	file    sealedFile // nil when none is open
	index   *sealedIndex
	// rewrites is archive.rewrites from before the file was opened.
	rewrites uint64
	// frames are the frames that were read last. Together they have at most cacheBytes, 0 for the
	// constant of that name. reads counts the entries that were read.
	cacheBytes int
	frames     []*decodedFrame
	reads      int
	compressed []byte // buffer for a frame as it is in the file
	layout     layout
	request    []byte      // buffer for a request that consists of chunks
	broken     brokenFrame // where the damage was found

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
	case errors.Is(err, errSealed), errors.Is(err, errOther), errors.Is(err, fs.ErrNotExist):
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

// headWindow is how many bytes a scanner reads at once if it only reads the heads of entries.
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

// assemble assembles the answer of a stream, unless the reader is to return its events.
func (r *contentReader) assemble(d plugins.Dialect) {
	if c := &r.content; !r.unassembled {
		c.Response.Data, c.Response.Type = r.assembler.Stored(observe.Transcript(d), c.Response.Type, c.Response.Data)
	}
}

// headWire decodes only the key and the dialect of a record.
var headWire = message[record]{1: recordWire[1], 2: recordWire[2], 11: recordWire[11]}
