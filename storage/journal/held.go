package journal

import (
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// heldEntries are those that the drain has read and the backend shall not have yet:
// versions of records from before the end of their exchanges, and annotations on
// these. They stay in their raw segments, and the checkpoint has their positions, so
// that they reach the backend after a crash.
type heldEntries map[uuid.UUID]*heldRecord

// heldRecord is the last version of a record, nil when a later one is on its way to
// the backend.
type heldRecord struct {
	record      *storage.Record
	at          storage.Position
	annotations []heldAnnotation
}

type heldAnnotation struct {
	*storage.Annotation
	at storage.Position
}

// maxHeld bounds the entries that are held, since the checkpoint has room for so many.
// More are given to the backend at once, where they are seen as interrupted.
const maxHeld = 4 << 10

func (h heldEntries) positions() []storage.Position {
	var all []storage.Position
	for _, r := range h {
		if r.record != nil {
			all = append(all, r.at)
		}
		for _, a := range r.annotations {
			all = append(all, a.at)
		}
	}
	return all
}

// segments are those that held entries stand in.
func (h heldEntries) segments() map[uint64]bool {
	segments := make(map[uint64]bool)
	for _, p := range h.positions() {
		segments[p.Segment] = true
	}
	return segments
}

// hold keeps a version of a record back while its exchange lives, and drops it if
// there is a later one. It needs the mutex.
func (j *Journal) hold(r *storage.Record, at storage.Position) bool {
	if r.EndState != storage.Interrupted {
		return false
	}
	if p, waits := j.pending[r.ID]; waits && at.Before(p.last) {
		return true
	}
	if _, lives := j.live[r.ID]; !lives || j.heldCount >= maxHeld {
		return false
	}
	h := j.held.of(r.ID)
	if h.record == nil {
		j.heldCount++
	}
	h.record, h.at = r, at
	return true
}

// of returns what is held of a record, for more.
func (h heldEntries) of(id uuid.UUID) *heldRecord {
	r := h[id]
	if r == nil {
		r = new(heldRecord)
		h[id] = r
	}
	return r
}

// holdAnnotation keeps an annotation on a record that is held. It needs the mutex.
func (j *Journal) holdAnnotation(a *storage.Annotation, at storage.Position) bool {
	h := j.held[a.RequestID]
	if h == nil || h.record == nil || j.heldCount >= maxHeld {
		return false
	}
	j.heldCount++
	h.annotations = append(h.annotations, heldAnnotation{a, at})
	return true
}

// supersede takes the annotations that are held of a record into the batch that has a
// later version. It needs the mutex.
func (j *Journal) supersede(d *delivery, id uuid.UUID) {
	h := j.held[id]
	if h == nil {
		return
	}
	h.record = nil
	d.release(id, h)
}

func (d *delivery) release(id uuid.UUID, h *heldRecord) {
	if h.record != nil {
		d.Records = append(d.Records, h.record)
	}
	for _, a := range h.annotations {
		d.Annotations = append(d.Annotations, a.Annotation)
	}
	d.released = append(d.released, id)
}

// releaseHeld makes a batch of what is held of exchanges that live no more. The
// batch has nothing else, and an ID of its own: after a crash there may be more to
// release, and a batch that comes again must be as it was. It needs the mutex.
func (j *Journal) releaseHeld(d *delivery, limits *storage.Limits) {
	if !j.released {
		return
	}
	j.released = false
	for id, h := range j.held {
		if _, lives := j.live[id]; lives {
			continue
		}
		if p, waits := j.pending[id]; waits && (h.record == nil || h.at.Before(p.last)) {
			continue // the later one takes it along
		}
		if n := len(d.Records) + len(d.Annotations); n > 0 && n+1+len(h.annotations) > limits.Entries {
			j.released = true
			break
		}
		d.release(id, h)
	}
	d.full = len(d.released) > 0
	d.ID = "held-" + uuid.NewString()
}

// restoreHeld reads what an earlier process held, in the order of the journal.
func (j *Journal) restoreHeld(held []storage.Position) {
	slices.SortFunc(held, storage.Position.Compare)
	for _, at := range held {
		i, found := j.find(at.Segment)
		if !found {
			continue
		}
		s := j.raw[i]
		e, err := s.scanner(at.Ordinal, headWindow).seek(at.Ordinal)
		if err != nil || e.ordinal != at.Ordinal {
			j.options.Logger.Error("an entry of the journal that was held back cannot be read", zap.String("file", s.path), zap.Uint32("ordinal", at.Ordinal), zap.Error(err))
			continue
		}
		j.recovered[at] = true
		j.restore(s, &e)
	}
	j.heldCount = len(j.held.positions())
	j.released = j.heldCount > 0
}

// restore holds an entry again.
func (j *Journal) restore(s *segment, e *entry) {
	at := storage.Position{Segment: s.number, Ordinal: e.ordinal}
	switch e.kind {
	case kindRecord:
		r := new(storage.Record)
		if recordWire.parse(e.metadata, r) != nil {
			return
		}
		r.Number, r.Version = 0, at
		if e.length > 0 {
			r.Content = storage.ContentRef(at)
		}
		if e.media {
			if c, err := s.content(e); err == nil {
				r.Assets = assetsOf(c)
			}
		}
		h := j.held.of(r.ID)
		h.record, h.at = r, at
	case kindAnnotation:
		a := new(storage.Annotation)
		if annotationWire.parse(e.metadata, a) == nil {
			h := j.held.of(a.RequestID)
			h.annotations = append(h.annotations, heldAnnotation{a, at})
		}
	}
}

// passHeld lets a version of a record pass that the backend was past before the journal
// knew: a final one it has, with what was held; an earlier one may have been held back.
func (j *Journal) passHeld(s *segment, at storage.Position, e *entry, r *record) {
	switch {
	case r.EndState != storage.Interrupted:
		delete(j.held, r.ID)
	case !j.recovered[at]:
		j.restore(s, e)
	}
}

// isHeld needs the mutex.
func (j *Journal) isHeld(org string, id uuid.UUID) bool {
	h := j.held[id]
	return h != nil && h.record != nil && h.record.Org == org
}

// forgetHeld forgets what a batch has taken along. It needs the mutex.
func (j *Journal) forgetHeld(d *delivery) {
	for _, id := range d.released {
		delete(j.held, id)
	}
	if len(d.released) > 0 {
		j.heldCount = len(j.held.positions())
	}
}
