package journal

import (
	"maps"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// heldEntries are those that the drain has read and the backend shall not have yet:
// versions of records from before the end of their exchanges, and annotations on
// these. They stay in their raw segments, and the checkpoint knows their places, so that
// they reach the backend after a crash.
type heldEntries map[uuid.UUID]*heldRecord

// heldRecord is the last version of a record, nil when a later one is on its way to
// the backend.
type heldRecord struct {
	record      *storage.Record
	place       storage.Position
	annotations []heldAnnotation
}

type heldAnnotation struct {
	*storage.Annotation
	place storage.Position
}

// maxHeld bounds the entries that are held. More are given to the backend at once,
// where they are seen as interrupted.
const maxHeld = 8 << 10

func (h heldEntries) places() []storage.Position {
	var places []storage.Position
	for _, r := range h {
		if r.record != nil {
			places = append(places, r.place)
		}
		for _, a := range r.annotations {
			places = append(places, a.place)
		}
	}
	return places
}

// segments are those that held entries stand in.
func (h heldEntries) segments() map[uint64]bool {
	segments := make(map[uint64]bool)
	for _, p := range h.places() {
		segments[p.Segment] = true
	}
	return segments
}

// hold keeps a version of a record back while its exchange lives, and drops it if
// there is a later one. It needs the mutex.
func (j *Journal) hold(r *storage.Record, place storage.Position) bool {
	if r.EndState != storage.Interrupted {
		return false
	}
	if p, waits := j.pending[r.ID]; waits && place.Before(p.last) {
		return true
	}
	if _, lives := j.live[r.ID]; !lives || len(j.held) >= maxHeld {
		return false
	}
	h := j.held[r.ID]
	if h == nil {
		h = new(heldRecord)
		j.held[r.ID] = h
	}
	h.record, h.place = r, place
	return true
}

// holdAnnotation keeps an annotation on a record that is held. It needs the mutex.
func (j *Journal) holdAnnotation(a *storage.Annotation, place storage.Position) bool {
	h := j.held[a.RequestID]
	if h == nil || h.record == nil || len(h.annotations) >= maxHeld {
		return false
	}
	h.annotations = append(h.annotations, heldAnnotation{a, place})
	return true
}

// supersede takes what is held of a record into a batch with a later version. It
// needs the mutex.
func (j *Journal) supersede(d *delivery, id uuid.UUID) {
	h := j.held[id]
	if h == nil {
		return
	}
	h.record = nil
	for _, a := range h.annotations {
		d.Annotations = append(d.Annotations, a.Annotation)
	}
	d.released = append(d.released, id)
}

// releaseHeld takes into a batch what is held of exchanges that live no more. It needs
// the mutex.
func (j *Journal) releaseHeld(d *delivery) {
	j.released = false
	for id, h := range j.held {
		if _, lives := j.live[id]; lives {
			continue
		}
		if p, waits := j.pending[id]; waits && h.record != nil && h.place.Before(p.last) {
			continue // the later one takes it along
		}
		for _, a := range h.annotations {
			d.Annotations = append(d.Annotations, a.Annotation)
		}
		if h.record != nil {
			d.at[id] = len(d.Records)
			d.Records = append(d.Records, h.record)
		}
		d.released = append(d.released, id)
	}
}

// restoreHeld reads what an earlier process held.
func (j *Journal) restoreHeld(places []storage.Position) {
	slices.SortFunc(places, func(a, b storage.Position) int {
		switch {
		case a.Before(b):
			return -1
		case b.Before(a):
			return 1
		}
		return 0
	})
	var annotations []heldAnnotation
	for _, place := range places {
		i, found := j.find(place.Segment)
		if !found {
			continue
		}
		s := j.raw[i]
		e, err := s.scanner(place.Ordinal, headWindow).seek(place.Ordinal)
		if err != nil || e.ordinal != place.Ordinal {
			j.options.Logger.Error("an entry of the journal that was held back cannot be read", zap.String("file", s.path), zap.Uint32("ordinal", place.Ordinal), zap.Error(err))
			continue
		}
		j.recovered[place] = true
		switch e.kind {
		case kindRecord:
			r := new(storage.Record)
			if recordWire.parse(e.metadata, r) == nil {
				r.Number, r.Version = 0, place
				if e.length > 0 {
					r.Content = storage.ContentRef(place)
				}
				if e.media {
					if c, err := s.content(&e); err == nil {
						r.Assets = assetsOf(c)
					}
				}
				j.held[r.ID] = &heldRecord{record: r, place: place}
			}
		case kindAnnotation:
			a := new(storage.Annotation)
			if annotationWire.parse(e.metadata, a) == nil {
				annotations = append(annotations, heldAnnotation{a, place})
			}
		}
	}
	for _, a := range annotations {
		if h := j.held[a.RequestID]; h != nil {
			h.annotations = append(h.annotations, a)
		} else { // its record is with the backend, or on its way
			j.held[uuid.New()] = &heldRecord{annotations: []heldAnnotation{a}}
		}
	}
	j.released = len(j.held) > 0
}

// isHeld needs the mutex.
func (j *Journal) isHeld(org string, id uuid.UUID) bool {
	h := j.held[id]
	return h != nil && h.record != nil && h.record.Org == org
}

// letGo forgets what a batch has taken along. It needs the mutex.
func (j *Journal) letGo(d *delivery) {
	for _, id := range d.released {
		delete(j.held, id)
	}
	if len(d.released) > 0 {
		maps.DeleteFunc(j.recovered, func(p storage.Position, _ bool) bool { return p.Before(d.End) })
	}
}
