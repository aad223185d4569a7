package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// keepEvery is how often the keeper looks at what has become old.
const keepEvery = time.Minute

// keep seals segments and deletes what has outlived its retention.
func (j *Journal) keep(ctx context.Context) {
	defer close(j.kept)
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			j.blocks.rest()
		case <-j.tidy:
		}
		j.keepHouse(ctx)
	}
}

// keepHouse deletes before it seals: deleting needs no room.
func (j *Journal) keepHouse(ctx context.Context) {
	j.mu.Lock()
	o := j.options
	j.mu.Unlock()
	j.retire(&o)
	j.expire(&o)
	for _, s := range j.taken() {
		if err := j.seal(ctx, s); err != nil && ctx.Err() == nil {
			o.Logger.Error("a segment cannot be sealed: it stays as it is until it can", zap.String("file", s.path), zap.Error(err))
		}
	}
	j.prune(ctx, &o)
}

// retire closes the active segment when it is old, if nothing is appended that
// would.
func (j *Journal) retire(o *Options) {
	j.turn.Lock()
	defer j.turn.Unlock()
	if s := j.active; s != nil && s.entries > 0 && o.now().Sub(s.opened) >= o.age() {
		j.close(s)
	}
}

// expire deletes the segments whose newest record is older than content is
// kept.
func (j *Journal) expire(o *Options) {
	retention := o.contentRetention()
	if retention <= 0 {
		return
	}
	cutoff := storage.Millis(o.now().Add(-retention))
	for _, number := range j.blocks.expired(cutoff) {
		if err := j.blocks.remove(number, j.path(number, sealedSuffix)); err != nil {
			o.Logger.Error("content that has outlived its retention cannot be deleted", zap.Error(err))
		}
	}
	for _, s := range j.taken() {
		if s.newest >= cutoff {
			continue
		}
		if err := j.drop(s); err != nil {
			o.Logger.Error("content that has outlived its retention cannot be deleted", zap.Error(err))
		}
	}
}

// prune deletes the records that have outlived their retention, in steps
// between which batches can be written.
func (j *Journal) prune(ctx context.Context, o *Options) {
	if o.Retention <= 0 {
		return
	}
	cutoff := storage.Millis(o.now().Add(-o.Retention))
	for more := true; more && ctx.Err() == nil; {
		j.writer.Lock()
		var err error
		more, err = j.backend.Prune(ctx, cutoff)
		j.writer.Unlock()
		if err != nil {
			if ctx.Err() == nil {
				o.Logger.Error("records that have outlived their retention cannot be deleted", zap.Error(err))
			}
			return
		}
	}
}

// taken lists the raw segments that the backend has taken whole.
func (j *Journal) taken() []*segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	i, _ := j.find(j.position.Segment)
	return slices.Clone(j.raw[:i])
}

// drop removes a raw segment, which those who read it may go on to do.
func (j *Journal) drop(s *segment) error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.raw = slices.DeleteFunc(j.raw, func(r *segment) bool { return r == s })
	j.unref(s)
	return nil
}

// seal rewrites a segment into blocks of its content. At any point the raw file
// is there, or the sealed one is complete.
func (j *Journal) seal(ctx context.Context, s *segment) error {
	path := j.path(s.number, sealedSuffix)
	size, err := j.writeSealed(ctx, s, path+temporarySuffix)
	if err != nil {
		os.Remove(path + temporarySuffix)
		return err
	}
	if size > 0 {
		if err := os.Rename(path+temporarySuffix, path); err != nil {
			return err
		}
		if err := syncDir(j.dir); err != nil {
			return err
		}
		j.blocks.add(s.number, sealed{size, s.newest})
	}
	return j.drop(s)
}

// writeSealed writes the sealed form of a segment. Without content there is no
// file, and size is 0.
func (j *Journal) writeSealed(ctx context.Context, s *segment, path string) (size int64, err error) {
	current, err := s.current()
	if err != nil || len(current) == 0 {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w, err := newSealedWriter(f)
	if err != nil {
		return 0, err
	}
	var damaged int64
	for sc := s.scanner(0, scanWindow); ; {
		e, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		if _, found := slices.BinarySearch(current, e.ordinal); !found {
			continue
		}
		c, err := s.stored(&e)
		if errors.Is(err, errDamaged) {
			damaged++
			continue
		}
		if err == nil {
			err = w.add(e.ordinal, c)
		}
		if err != nil {
			return 0, fmt.Errorf("entry %d: %w", e.ordinal, err)
		}
	}
	if err := w.finish(s.newest); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if damaged > 0 {
		j.mu.Lock()
		j.lose(storage.LostCorrupt, damaged, storage.Millis(j.options.now()))
		j.mu.Unlock()
	}
	return info.Size(), nil
}

// current lists the ordinals whose content is that of the last version of a
// record within the segment, in order.
func (s *segment) current() ([]uint32, error) {
	current := map[uuid.UUID]uint32{}
	for sc := s.scanner(0, scanWindow); ; {
		e, err := sc.next()
		if errors.Is(err, io.EOF) {
			return slices.Sorted(maps.Values(current)), nil
		}
		if err != nil {
			return nil, err
		}
		var r record
		if e.kind != kindRecord || referenceWire.parse(e.metadata, &r) != nil {
			continue
		}
		switch {
		case e.length > 0:
			current[r.ID] = e.ordinal
		case r.Content.Segment == s.number:
			current[r.ID] = r.Content.Ordinal
		default: // no content, or that of another segment
			delete(current, r.ID)
		}
	}
}

// referenceWire reads no more of a record than its id and its content's place.
var referenceWire = message[record]{1: recordWire[1], 70: recordWire[70], 71: recordWire[71]}
