package journal

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// rewriter writes sealed segments anew without some of their content, one after the other, in
// memory that it keeps.
type rewriter struct {
	// erased are the erased records. Default: none.
	erased *erasedRecords
	// removed counts the records that were removed from the last segment with all that is known of
	// them: a database cannot lose them.
	removed recordCount

	from    contentReader
	to      sealedWriter
	content content // of an entry, consists of the frames of from
	record  []byte  // of the entry
}

// rewrite takes the content of entries out of a sealed segment. Text that other entries share
// stays, within these. At any point the file is the old one or the new one, and the list knows
// both: a reader that has the old file open opens the new one. rewrite needs the turn of maintenance.
func (a *archive) rewrite(ctx context.Context, w *rewriter, number uint64, erased func(ordinal uint32) bool) error {
	was, there := a.segment(number)
	if !there || was.Size == 0 {
		return nil
	}
	path := segmentPath(a.dir, number, sealedSuffix)
	next, damaged, err := w.write(ctx, path, erased)
	removed := was.Entries - next.Entries - damaged
	if err != nil || removed == 0 { // nothing of the segment is erased, or it cannot be read
		if gone := os.Remove(path + temporarySuffix); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	}
	next.Newest, next.RawEntries, next.Again, next.Erased = was.Newest, was.RawEntries, was.Again, was.Erased+removed
	next.recordCount = was.recordCount.without(w.removed)
	if err := a.replace(number, was, &next); err != nil {
		return err
	}
	if err := a.removeGrams(number); err != nil {
		return err
	}
	if next.Size > 0 {
		err = Rename(path+temporarySuffix, path)
	} else {
		err = errors.Join(os.Remove(path), os.Remove(path+temporarySuffix))
	}
	a.rewrites.Add(1)
	if err != nil {
		return err
	}
	if err := SyncDir(a.dir); err != nil {
		return err
	}
	a.mu.Lock()
	a.segments[number] = next
	lost := max(damaged-was.Lost, 0)
	a.countLost(lost, a.options.now())
	a.unsaved = true
	a.mu.Unlock()
	if lost > 0 {
		a.contentLost(lost, zap.String("file", path))
	}
	return a.saveList()
}

// replace has the list say what the file of a segment is about to be, so that a process that
// is killed between the two files counts neither as damaged.
func (a *archive) replace(number uint64, was sealed, next *sealed) error {
	was.Next = next
	a.mu.Lock()
	a.segments[number] = was
	a.unsaved = true
	a.mu.Unlock()
	return a.saveList()
}

// settle ends what a killed process began: the file of a segment is the new one, or still the
// old one.
func (a *archive) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for number, s := range a.segments {
		if s.Next == nil {
			continue
		}
		index, size := (*sealedIndex)(nil), int64(0)
		if f, n, err := openSealed(segmentPath(a.dir, number, sealedSuffix)); err == nil {
			index, err = readIndex(f, n)
			size = n
			f.Close()
			if err != nil {
				index = nil
			}
		}
		next := *s.Next
		s.Next = nil
		if size == next.Size && (index == nil && size == 0 || index != nil && index.entries() == next.Entries) {
			s = next
		}
		a.segments[number] = s
		a.unsaved = true
	}
}

// write writes what is left of a segment beside it. damaged counts the entries that cannot be
// read, which are left out.
func (w *rewriter) write(ctx context.Context, path string, erased func(ordinal uint32) bool) (next sealed, damaged int64, err error) {
	if err := w.from.openFile(path); err != nil {
		return next, 0, err
	}
	defer w.from.Close()
	f, err := os.OpenFile(path+temporarySuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return next, 0, err
	}
	defer f.Close()
	w.to.reset(f)
	w.removed = recordCount{}
	for block, ordinals := range w.ordinals() {
		if err := ctx.Err(); err != nil {
			return next, 0, err
		}
		for _, ordinal := range ordinals {
			if erased(ordinal) {
				if key, n, _ := w.recordOf(block, ordinal); w.erased.scope(key) == storage.EraseRecord {
					w.removed.add(n)
				}
				continue
			}
			switch err := w.add(block, ordinal); {
			case errors.Is(err, errDamaged):
				damaged++
			case err != nil:
				return next, 0, err
			default:
				next.Entries++
			}
		}
	}
	if next.Entries == 0 {
		return next, damaged, nil
	}
	if err := w.to.finish(w.from.index.newest); err != nil {
		return next, 0, err
	}
	if err := f.Sync(); err != nil {
		return next, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return next, 0, err
	}
	next.Size, next.Index = info.Size(), w.to.sum
	return next, damaged, nil
}

// recordOf returns the key of the record of an entry, and what the entry stands for. It is false if
// the segment does not say whose the entry is.
func (w *rewriter) recordOf(block int, ordinal uint32) (key storage.RecordKey, n recordCount, known bool) {
	w.from.reads++
	f, err := w.from.frame(block, recordFrame)
	if err != nil {
		return key, n, false
	}
	var sealed sealedRecord
	var r record
	if sealedRecordWire.parse(f.find(ordinal), &sealed) != nil || identityWire.parse(sealed.Metadata, &r) != nil {
		return key, n, false
	}
	return r.Key(), sealed.recordCount, len(sealed.Metadata) > 0
}

// erasedEntries lists the entries of erased records in a sealed segment: those of all versions.
// unidentified counts the entries that do not say whose they are.
func (w *rewriter) erasedEntries(path string) (found []uint32, unidentified int64, err error) {
	if err := w.from.openFile(path); err != nil {
		return nil, 0, err
	}
	defer w.from.Close()
	for block, ordinals := range w.from.index.ordinals() {
		for _, ordinal := range ordinals {
			key, _, known := w.recordOf(block, ordinal)
			switch {
			case !known:
				unidentified++
			case w.erased.scope(key) > 0:
				found = append(found, ordinal)
			}
		}
	}
	return found, unidentified, nil
}

// ordinals lists the entries of each block in the order in which their requests stand there:
// a request shares bytes with requests before it.
func (w *rewriter) ordinals() [][]uint32 {
	all := w.from.index.ordinals()
	for block, of := range all {
		w.from.reads++
		f, err := w.from.frame(block, requestFrame)
		if err != nil {
			continue // each of its entries is damaged
		}
		start := make(map[uint32]uint32, len(f.stands))
		for _, p := range f.stands {
			start[p.ordinal] = p.start
		}
		slices.SortStableFunc(of, func(a, b uint32) int { return cmp.Compare(start[a], start[b]) })
	}
	return all
}

// add writes the content of an entry.
func (w *rewriter) add(block int, ordinal uint32) error {
	w.content = content{}
	w.from.reads++
	var shared *rawRequest
	for i := range parts {
		f, err := w.from.frame(block, i)
		if err != nil {
			return err
		}
		bytes := f.find(ordinal)
		if bytes == nil {
			continue
		}
		if err := contentWire.parse(bytes, &w.content); err != nil {
			return err
		}
		if i != requestFrame {
			continue
		}
		var l layout
		if err := layoutWire.parse(bytes, &l); err != nil {
			return err
		}
		if l.extents == nil {
			continue
		}
		own := w.content.Request.Data
		at, _ := slices.BinarySearchFunc(f.stands, ordinal, func(p item, o uint32) int { return cmp.Compare(p.ordinal, o) })
		shared = &rawRequest{
			extents: l.extents,
			own:     own,
			at:      uint64(block)<<32 | uint64(f.stands[at].end) - uint64(len(own)),
			request: func() (request []byte, err error) {
				w.from.request, err = assemble(w.from.request[:0], l.extents, own, w.from.shared)
				return w.from.request, err
			},
		}
	}
	// A record that cannot be read is left out: a later loss of the database counts it.
	w.record = w.record[:0]
	if f, err := w.from.frame(block, recordFrame); err == nil {
		w.record = append(w.record, f.find(ordinal)...)
	}
	return w.to.add(ordinal, &w.content, shared, w.record)
}
