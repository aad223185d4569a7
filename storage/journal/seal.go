package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// sealer rewrites segments, one after the other, in memory that it keeps.
type sealer struct {
	// noContent is true if the backend stores content itself: sealed segments have none.
	noContent bool
	// erased are records whose content is left out.
	erased    *erasedRecords
	w         sealedWriter
	assembler transcript.Assembler
	buffer    contentBuffer
	content   content // of an entry, consists of buffer
	record    sealedRecord
	encoded   []byte // record
}

// seal rewrites a segment into blocks of its content. At any point the raw file exists, or the
// sealed file is complete and in the list.
func (a *archive) seal(ctx context.Context, z *sealer, s *segment) error {
	if !a.has(s.number) { // else the list, or the end of the raw file, failed
		path := segmentPath(a.dir, s.number, sealedSuffix)
		as, damaged, err := z.write(ctx, s, path+temporarySuffix)
		if err != nil {
			os.Remove(path + temporarySuffix)
			return err
		}
		if as.Size == 0 && as.Records == 0 {
			return nil
		}
		if as.Size > 0 {
			if err := Rename(path+temporarySuffix, path); err != nil {
				return err
			}
			if err := SyncDir(a.dir); err != nil {
				return err
			}
		}
		if a.add(s.number, as, damaged, a.options.now()) {
			a.contentLost(damaged, zap.String("file", s.path))
		}
	}
	if a.stale() {
		return a.saveList()
	}
	return nil
}

// write writes the sealed form of a segment, without entries with damaged content.
// A segment that never had content gets no file.
func (z *sealer) write(ctx context.Context, s *segment, path string) (as sealed, damaged int64, err error) {
	all, found, records, err := s.currentContents(z.erased)
	if err != nil {
		return as, 0, err
	}
	current := slices.DeleteFunc(all, func(p place) bool { return z.erased.scope(p.key) > 0 })
	as.recordCount, as.RawEntries, as.Newest, as.Erased = records, s.entries, int64(s.newest), int64(len(all)-len(current))
	damaged = max(s.contents-found-max(s.damaged, 0), 0) // heads, since they were drained
	if z.noContent || len(current) == 0 && damaged == 0 {
		return as, 0, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return as, 0, err
	}
	defer f.Close()
	z.w.reset(f)
	current = sortByConversation(current, s.parents)
	for i := range current {
		if err := ctx.Err(); err != nil {
			return as, 0, err
		}
		e := &current[i]
		err := z.add(s, e)
		if errors.Is(err, errDamaged) {
			damaged++
		} else if err != nil {
			return as, 0, fmt.Errorf("entry %d: %w", e.ordinal, err)
		} else {
			as.Entries++
		}
	}
	if err := z.w.finish(s.newest); err != nil {
		return as, 0, err
	}
	if err := f.Sync(); err != nil {
		return as, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return as, 0, err
	}
	as.Size, as.Index = info.Size(), z.w.sum
	return as, damaged, nil
}

// add writes the content of an entry in stored form.
func (z *sealer) add(s *segment, e *place) error {
	z.content = content{}
	c := &z.content
	if err := s.readStored(&z.buffer, e.at, e.length, e.sum, c); err != nil {
		return err
	}
	var shared *rawRequest
	if z.buffer.layout.extents != nil {
		shared = s.rawRequest(&z.buffer, e, c)
	}
	if e.unassembled {
		c.Unassembled = e.dialect
	} else {
		c.Response.Data, c.Response.Type = z.assembler.Stored(observe.Transcript(e.dialect), c.Response.Type, c.Response.Data)
	}
	if err := z.encode(s, &e.last, shared); err != nil {
		return err
	}
	return z.w.add(e.ordinal, c, shared, z.encoded)
}

// encode brings a record into its sealed form.
func (z *sealer) encode(s *segment, last *latestVersion, shared *rawRequest) error {
	r := &z.record
	r.recordCount = last.recordCount
	r.Metadata = slices.Grow(r.Metadata[:0], int(last.length))[:last.length]
	if err := readAt(s.file, r.Metadata, last.at); err != nil {
		return err
	}
	if z.content.Media {
		request, err := z.content.Request.Data, error(nil)
		if shared != nil {
			request, err = shared.request()
		}
		if err != nil {
			return err
		}
		of := record{Assets: transcript.Assets(request)}
		r.Metadata = assetsWire.append(withoutFields(r.Metadata, assetsWire), &of)
	}
	r.Metadata = withoutFields(r.Metadata, rawAlone)
	z.encoded = sealedRecordWire.append(z.encoded[:0], r)
	return nil
}

// rawRequest is the request of an entry. The entry's content must have been read into m.
func (s *segment) rawRequest(m *contentBuffer, e *place, c *content) *rawRequest {
	own, behind := c.Request.Data, 0
	if n := len(c.Response.Data); n > 0 {
		behind = protowire.SizeTag(requestData+1) + protowire.SizeBytes(n)
	}
	return &rawRequest{
		extents: m.layout.extents,
		own:     own,
		at:      uint64(e.at) + uint64(e.length) - uint64(behind) - uint64(len(own)),
		request: func() ([]byte, error) { return s.assemble(m, e.at, own) },
	}
}

// place locates the content of a record in a raw segment.
type place struct {
	key         storage.RecordKey
	dialect     plugins.Dialect
	unassembled bool // a stream is not assembled: Weir's cache may answer with it
	ordinal     uint32
	sum         uint32
	at          int64
	length      int64
	last        latestVersion // of the record
}

// latestVersion is the last version of a record within a segment.
type latestVersion struct {
	at, length int64  // of its metadata
	content    uint32 // the ordinal of its content
	hasContent bool   // in this segment
	recordCount
}

// currentContents returns the contents of the last versions of records in the segment, by ordinal.
// found is the number of contents of all versions. records counts all entries but those of records
// that were erased, with content or without: a database cannot lose them.
func (s *segment) currentContents(erased *erasedRecords) (all []place, found int64, records recordCount, err error) {
	last := make(map[storage.RecordKey]latestVersion, s.contents)
	all = make([]place, 0, s.contents)
	var r record
	for sc := s.scanner(0, scanWindow); ; {
		e, err := sc.next()
		if errors.Is(err, io.EOF) {
			for key, v := range last {
				if erased.scope(key) == storage.EraseRecord {
					records = records.without(v.recordCount)
				}
			}
			current := all[:0]
			for _, p := range all {
				if p.last = last[p.key]; p.last.hasContent && p.last.content == p.ordinal {
					current = append(current, p)
				}
			}
			return current, found, records, nil
		}
		if err != nil {
			return nil, 0, records, err
		}
		if e.kind == kindAnnotation {
			records.Records++
		}
		r = record{}
		if e.kind != kindRecord || referenceWire.parse(e.metadata, &r) != nil {
			continue
		}
		v := last[r.Key()]
		v.Records++
		records.Records++
		if r.Number > 0 {
			v.Exchanges++
			records.Exchanges++
		}
		v.at, v.length, v.hasContent = e.offset+headSize, int64(len(e.metadata)), true
		switch {
		case e.length > 0:
			found++
			v.content = e.ordinal
			all = append(all, place{
				key: r.Key(), dialect: r.Dialect, unassembled: r.AnswerCache == storage.CacheMiss,
				ordinal: e.ordinal, sum: e.sum, at: e.content(), length: e.length,
			})
		case r.Content.Segment == s.number:
			v.content = r.Content.Ordinal
		default: // no content, or that of another segment
			v.hasContent = false
		}
		last[r.Key()] = v
	}
}

// referenceWire reads no more of a record than its key, its dialect, its content's place, its
// number, and whether Weir's cache may answer with its content.
var referenceWire = message[record]{
	1: recordWire[1], 2: recordWire[2], 11: recordWire[11], 70: recordWire[70], 71: recordWire[71], 72: recordWire[72], 100: recordWire[100],
}

// sortByConversation moves each entry that shares bytes with an earlier one next to it, so that a
// conversation is in few blocks. all is sorted by ordinal.
func sortByConversation(all []place, parents map[uint32]uint32) []place {
	if len(parents) == 0 {
		return all
	}
	there := make(map[uint32]bool, len(all))
	children := make(map[uint32][]int)
	var roots []int
	for i := range all {
		parent, has := parents[all[i].ordinal]
		for has && !there[parent] { // a version that was replaced
			parent, has = parents[parent]
		}
		if has {
			children[parent] = append(children[parent], i)
		} else {
			roots = append(roots, i)
		}
		there[all[i].ordinal] = true
	}
	sorted := make([]place, 0, len(all))
	var visit func(of []int)
	visit = func(of []int) {
		for _, i := range of {
			sorted = append(sorted, all[i])
			visit(children[all[i].ordinal])
		}
	}
	visit(roots)
	return sorted
}

// relocations map addresses of a raw segment to addresses of the sealed segment, sorted by from and
// without overlaps. Requests share the same bytes in both segments, so that sealing need not look
// for shared bytes again.
type relocations []relocation

// relocation says that size bytes at the address from of the raw segment are at the address to of
// the sealed segment.
type relocation struct{ from, size, to uint64 }

// piece is a part of a request, at an address in the raw segment.
type piece struct {
	relocation
	isSealed bool // the sealed segment has its bytes
}

// after returns the index of the first relocation after an address.
func (all relocations) after(address uint64) int {
	i, found := slices.BinarySearchFunc(all, address, func(r relocation, a uint64) int { return cmp.Compare(r.from, a) })
	if found {
		i++
	}
	return i
}

// appendPieces cuts size bytes of the raw segment where relocations begin and end, and appends the
// pieces.
func (all relocations) appendPieces(pieces []piece, from, size uint64) []piece {
	for size > 0 {
		i := all.after(from)
		p := piece{relocation: relocation{from: from, size: size}}
		if i > 0 && from-all[i-1].from < all[i-1].size {
			before := all[i-1]
			p.isSealed, p.to = true, before.to+from-before.from
			p.size = min(size, before.from+before.size-from)
		} else if i < len(all) {
			p.size = min(size, all[i].from-from)
		}
		pieces = append(pieces, p)
		from, size = from+p.size, size-p.size
	}
	return pieces
}

// add adds r without the bytes that all has already: only those up to the next relocation.
func (all relocations) add(r relocation) relocations {
	i := all.after(r.from)
	if i > 0 {
		if before := all[i-1]; r.from-before.from < before.size {
			known := min(r.size, before.from+before.size-r.from)
			r = relocation{r.from + known, r.size - known, r.to + known}
		}
	}
	if i < len(all) {
		r.size = min(r.size, max(all[i].from, r.from)-r.from)
	}
	if r.size == 0 {
		return all
	}
	return slices.Insert(all, i, r)
}

// rawRequest is a request that shares bytes with others in its raw segment.
type rawRequest struct {
	extents []byte
	own     []byte
	at      uint64                 // the address of own
	request func() ([]byte, error) // assembles and checks the complete request
}

// relocate appends a request to the frame of a block, without the bytes that the sealed segment has.
func (w *sealedWriter) relocate(raw []byte, block int, r *rawRequest) ([]byte, error) {
	x, err := readExtents(r.extents)
	if err != nil {
		return nil, err
	}
	w.pieces = w.pieces[:0]
	at, end := r.at, r.at+uint64(len(r.own))
	for len(x.rest) > 0 {
		e, err := x.next()
		if err != nil || e.literal > end-at {
			return nil, errDamaged
		}
		w.pieces = w.moved.appendPieces(w.pieces, at, e.literal)
		w.pieces = w.moved.appendPieces(w.pieces, e.at, e.shared)
		at += e.literal
	}
	w.extents = w.extents[:0]
	literal, foreign := uint64(0), false // bytes of an entry that is not sealed, or not yet
	for _, p := range w.pieces {
		if p.isSealed {
			w.extents.share(p.to, p.size)
			continue
		}
		w.extents.own(p.size)
		literal += p.size
		foreign = foreign || p.from < r.at || p.from >= end
	}
	bytes := r.own
	if foreign {
		if bytes, err = r.request(); err != nil {
			return nil, err
		}
	}
	raw = appendShared(raw, w.extents, x.sum, x.size, literal)
	position := uint64(0) // in the request
	for _, p := range w.pieces {
		if !p.isSealed {
			start := p.from - r.at
			if foreign {
				start = position
			}
			p.to = uint64(block)<<32 | uint64(len(raw))
			raw = append(raw, bytes[start:start+p.size]...)
			w.moved = w.moved.add(p.relocation)
		}
		position += p.size
	}
	return raw, nil
}
