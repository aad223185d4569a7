package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// sealer rewrites segments, one after the other, in memory that it keeps.
type sealer struct {
	w         sealedWriter
	assembler transcript.Assembler
	raw       []byte  // the content of an entry
	content   content // consists of raw
}

// seal rewrites a segment into blocks of its content. At any point the raw file
// is there, or the sealed one is complete.
func (j *Journal) seal(ctx context.Context, z *sealer, s *segment) error {
	path := j.path(s.number, sealedSuffix)
	size, damaged, err := z.write(ctx, s, path+temporarySuffix)
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
	if err := j.drop(s); err != nil || damaged == 0 {
		return err
	}
	// Not before: what fails is done again, and finds the same damage.
	j.mu.Lock()
	defer j.mu.Unlock()
	now := storage.Millis(j.options.now())
	j.lose(storage.Loss{Reason: storage.LostCorrupt, Count: damaged, From: now, To: now})
	return nil
}

// write writes the sealed form of a segment, without the entries whose content
// is damaged. Without content there is no file, and size is 0.
func (z *sealer) write(ctx context.Context, s *segment, path string) (size, damaged int64, err error) {
	current, err := s.current()
	if err != nil || len(current) == 0 {
		return 0, 0, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	z.w.reset(f)
	for i := range current {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		e := &current[i]
		err := z.add(s, e)
		if errors.Is(err, errDamaged) {
			damaged++
		} else if err != nil {
			return 0, 0, fmt.Errorf("entry %d: %w", e.ordinal, err)
		}
	}
	if err := z.w.finish(s.newest); err != nil {
		return 0, 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), damaged, nil
}

// add writes the content of an entry in stored form.
func (z *sealer) add(s *segment, e *place) error {
	z.raw = slices.Grow(z.raw[:0], int(e.length))[:e.length]
	z.content = content{}
	c := &z.content
	if err := s.readContent(z.raw, e.at, e.sum, c); err != nil {
		return err
	}
	c.Response.Data, c.Response.Type = z.assembler.Stored(observe.Transcript(e.dialect), c.Response.Type, c.Response.Data)
	return z.w.add(e.ordinal, c)
}

// place is where the content of a record stands, and what it is.
type place struct {
	id      uuid.UUID
	dialect plugins.Dialect
	ordinal uint32
	sum     uint32
	at      int64
	length  int64
}

// current lists what has the content of the last version of a record within the
// segment, in the order of the ordinals.
func (s *segment) current() ([]place, error) {
	var all []place
	last := make(map[uuid.UUID]uint32)
	var r record
	for sc := s.scanner(0, scanWindow); ; {
		e, err := sc.next()
		if errors.Is(err, io.EOF) {
			return slices.DeleteFunc(all, func(p place) bool {
				ordinal, kept := last[p.id]
				return !kept || ordinal != p.ordinal
			}), nil
		}
		if err != nil {
			return nil, err
		}
		r = record{}
		if e.kind != kindRecord || referenceWire.parse(e.metadata, &r) != nil {
			continue
		}
		switch {
		case e.length > 0:
			last[r.ID] = e.ordinal
			all = append(all, place{r.ID, r.Dialect, e.ordinal, e.sum, e.content(), e.length})
		case r.Content.Segment == s.number:
			last[r.ID] = r.Content.Ordinal
		default: // no content, or that of another segment
			delete(last, r.ID)
		}
	}
}

// referenceWire reads no more of a record than its id, its dialect and its
// content's place.
var referenceWire = message[record]{1: recordWire[1], 11: recordWire[11], 70: recordWire[70], 71: recordWire[71]}
