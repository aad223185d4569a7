package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"slices"
	"sort"

	"github.com/klauspost/compress/s2"

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

// Reader implements storage.Contents.
func (j *Journal) Reader(parts storage.ContentPart) storage.ContentReader {
	return &contentReader{j: j, parts: parts}
}

// contentReader implements storage.ContentReader. It keeps the sealed segment
// and the block of it that it read last, and the memory for both.
type contentReader struct {
	j       *Journal
	parts   storage.ContentPart
	content storage.Content // as returned last

	segment uint64
	file    sealedFile // nil when none is open
	index   *sealedIndex
	// first and next are the ordinals between which the block has all entries.
	first, next uint32
	frames      [len(parts)]items
	compressed  []byte

	raw       []byte // of an entry of a raw segment
	assembler transcript.Assembler
}

type sealedFile interface {
	io.ReaderAt
	io.Closer
}

// Content implements storage.ContentReader. Content that is damaged reads as if
// it had been deleted, lest one body hide the records that are listed with it.
func (r *contentReader) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	ref := rec.Content
	if ref == (storage.ContentRef{}) {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.content = storage.Content{}
	found, err := r.read(ref)
	if err != nil {
		err = fmt.Errorf("reading the content of entry %d of %s: %w", ref.Ordinal, r.j.path(ref.Segment, ""), err)
	}
	switch {
	case errors.Is(err, errDamaged) && r.file != nil && r.segment == ref.Segment:
		r.j.damaged(ref.Segment, r.index.at(ref.Ordinal), err)
		return nil, nil
	case errors.Is(err, errSealed), errors.Is(err, fs.ErrNotExist):
		r.j.damaged(ref.Segment, nil, err)
		return nil, nil
	case errors.Is(err, errDamaged): // of a raw segment, which counts it when it is sealed
		return nil, nil
	case err != nil:
		return nil, err
	case !found:
		return nil, nil
	}
	return &r.content, nil
}

// read reads the content of an entry, and tells whether there is any.
func (r *contentReader) read(ref storage.ContentRef) (bool, error) {
	if r.file == nil || r.segment != ref.Segment {
		r.j.mu.Lock()
		if s := r.j.acquire(ref.Segment); s != nil {
			scan := s.scanner(ref.Ordinal, headWindow)
			r.j.mu.Unlock()
			defer r.j.release(s)
			return r.readRaw(s, scan, ref.Ordinal)
		}
		r.j.mu.Unlock()
		// Sealing completes the sealed file before it lets go of the raw one.
		if !r.j.sealed.has(ref.Segment) {
			return false, nil
		}
		if err := r.open(ref.Segment); err != nil {
			return false, err
		}
	}
	if ref.Ordinal < r.first || ref.Ordinal >= r.next {
		if err := r.readBlock(ref.Ordinal); err != nil {
			r.first, r.next = 0, 0
			return false, err
		}
	}
	found := false
	for i := range r.frames {
		item := r.frames[i].find(ref.Ordinal)
		if item == nil {
			continue
		}
		found = true
		if err := contentWire.parse(item, &r.content); err != nil {
			return false, err
		}
	}
	return found, nil
}

// headWindow suits reading heads that have content between them.
const headWindow = 4 << 10

// readRaw reads the content of an entry of a raw segment, in stored form.
func (r *contentReader) readRaw(s *segment, scan *scanner, ordinal uint32) (bool, error) {
	e, err := scan.seek(ordinal)
	if errors.Is(err, io.EOF) || err == nil && (e.ordinal != ordinal || e.length == 0) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var rec record
	if err := dialectWire.parse(e.metadata, &rec); err != nil {
		return false, err
	}
	r.raw = slices.Grow(r.raw[:0], int(e.length))[:e.length]
	c := &r.content
	if err := s.readContent(r.raw, e.content(), e.sum, c); err != nil {
		return false, err
	}
	if r.parts&storage.ResponsePart != 0 {
		c.Response.Data, c.Response.Type = r.assembler.Stored(observe.Transcript(rec.Dialect), c.Response.Type, c.Response.Data)
	}
	return true, nil
}

// dialectWire reads no more of a record than its dialect.
var dialectWire = message[record]{11: recordWire[11]}

// open opens a sealed segment in place of the one that is open.
func (r *contentReader) open(segment uint64) error {
	r.Close()
	f, size, err := openSealed(r.j.path(segment, sealedSuffix))
	if err != nil {
		return err
	}
	index, err := readIndex(f, size)
	if err != nil {
		f.Close()
		return err
	}
	r.segment, r.file, r.index = segment, f, index
	return nil
}

// Close implements storage.ContentReader.
func (r *contentReader) Close() {
	if r.file != nil {
		r.file.Close()
	}
	r.file, r.first, r.next = nil, 0, 0
}

// readBlock reads what the reader wants of the block that an entry is in, and
// of none when the entry comes before the first.
func (r *contentReader) readBlock(ordinal uint32) error {
	blocks := r.index.blocks
	i := sort.Search(len(blocks), func(i int) bool { return blocks[i].first > ordinal })
	r.first, r.next = 0, math.MaxUint32
	if i < len(blocks) {
		r.next = blocks[i].first
	}
	var b block
	if i > 0 {
		b = blocks[i-1]
		r.first = b.first
	}
	at := b.offset
	for k, f := range b.frames {
		if r.parts&parts[k].is == 0 {
			f.length = 0
		}
		if err := r.readFrame(&r.frames[k], at, f); err != nil {
			return err
		}
		at += int64(b.frames[k].length)
	}
	return nil
}

// readFrame reads a frame that stands at an offset.
func (r *contentReader) readFrame(into *items, at int64, f frame) error {
	into.data, into.places = into.data[:0], into.places[:0]
	if f.length == 0 {
		return nil
	}
	r.compressed = slices.Grow(r.compressed[:0], int(f.length))[:f.length]
	if err := readAt(r.file, r.compressed, at); err != nil {
		return err
	}
	if crc32.Checksum(r.compressed, castagnoli) != f.sum {
		return errDamaged
	}
	data, err := s2.Decode(into.data[:cap(into.data)], r.compressed)
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	into.data = data
	return into.locate()
}

// items are what stands in a frame.
type items struct {
	data   []byte
	places []itemPlace
}

// itemPlace is where an item stands, behind its head.
type itemPlace struct{ ordinal, start, end uint32 }

// locate finds the items of data.
func (x *items) locate() error {
	for at := 0; at < len(x.data); {
		if len(x.data)-at < itemHead {
			return errDamaged
		}
		ordinal, n := order.Uint32(x.data[at:]), int64(order.Uint32(x.data[at+4:]))
		at += itemHead
		if n > int64(len(x.data)-at) {
			return errDamaged
		}
		x.places = append(x.places, itemPlace{ordinal, uint32(at), uint32(at + int(n))})
		at += int(n)
	}
	return nil
}

// find returns the item of an entry, nil if it has none.
func (x *items) find(ordinal uint32) []byte {
	i, found := slices.BinarySearchFunc(x.places, ordinal, func(p itemPlace, o uint32) int { return int(int64(p.ordinal) - int64(o)) })
	if !found {
		return nil
	}
	return x.data[x.places[i].start:x.places[i].end]
}
