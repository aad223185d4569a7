package journal

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// versions are the versions of records that the backend does not have yet, and what is known
// of the records. The mutex of the journal guards them.
type versions struct {
	// pending is where the newest version of each record stands.
	pending map[storage.RecordKey]storage.Position
	// spanKeys are the span keys of the records in pending, and spans the records by these.
	spanKeys map[storage.RecordKey][]string
	spans    map[spanKey][]storage.RecordKey
	// claims are keys of records that will be appended.
	claims map[storage.RecordKey]struct{}
	// live are the exchanges with a version from before their end. released is true if
	// a live exchange has ended without another version.
	live     map[storage.RecordKey]struct{}
	released bool
	held     heldEntries
	// heldCount counts the entries in held.
	heldCount int
	// recovered are the entries that an earlier process held back.
	recovered map[storage.Position]bool
}

func newVersions() versions {
	return versions{
		pending:  map[storage.RecordKey]storage.Position{},
		spanKeys: map[storage.RecordKey][]string{}, spans: map[spanKey][]storage.RecordKey{},
		claims: map[storage.RecordKey]struct{}{},
		live:   map[storage.RecordKey]struct{}{}, held: heldEntries{}, recovered: map[storage.Position]bool{},
	}
}

// appended enters a version of a record.
func (v *versions) appended(d *draft) {
	v.pending[d.key] = d.place
	v.addSpans(d.key, d.spanKeys)
	if d.interrupted {
		v.live[d.key] = struct{}{}
	} else {
		delete(v.live, d.key)
	}
}

// spanKey is a span key of an organisation.
type spanKey struct{ org, key string }

// addSpans enters the span keys of a record that waits.
func (v *versions) addSpans(key storage.RecordKey, spanKeys []string) {
	for _, k := range spanKeys {
		at := spanKey{key.Org, k}
		if !slices.Contains(v.spans[at], key) {
			v.spans[at] = append(v.spans[at], key)
			v.spanKeys[key] = append(v.spanKeys[key], k)
		}
	}
}

// forgetSpans removes the span keys of a record that the backend has.
func (v *versions) forgetSpans(key storage.RecordKey) {
	for _, k := range v.spanKeys[key] {
		at := spanKey{key.Org, k}
		if v.spans[at] = slices.DeleteFunc(v.spans[at], func(other storage.RecordKey) bool { return other == key }); len(v.spans[at]) == 0 {
			delete(v.spans, at)
		}
	}
	delete(v.spanKeys, key)
}

// abandon ends an exchange, and reports whether this releases the held entries of the exchange.
func (v *versions) abandon(key storage.RecordKey) bool {
	if _, lives := v.live[key]; !lives {
		return false
	}
	delete(v.live, key)
	v.released = true
	return true
}

// waits reports whether the backend lacks a version of a record.
func (v *versions) waits(key storage.RecordKey) bool {
	_, pending := v.pending[key]
	h := v.held[key]
	return pending || h != nil && h.record != nil
}

// remaining returns a copy of what is held of an exchange that an earlier process left without
// an end, nil if nothing is.
func (v *versions) remaining(key storage.RecordKey) *storage.Record {
	h := v.held[key]
	if _, lives := v.live[key]; lives || h == nil || h.record == nil {
		return nil
	}
	return new(*h.record)
}

// claim reserves a key, unless it is in use.
func (v *versions) claim(key storage.RecordKey) bool {
	if _, claimed := v.claims[key]; claimed || v.waits(key) {
		return false
	}
	v.claims[key] = struct{}{}
	return true
}

// passed forgets what the backend has now: the versions of keys before the position end. gap
// means that there were entries of unknown records.
func (v *versions) passed(keys []storage.RecordKey, end storage.Position, gap bool) {
	for _, key := range keys {
		if last, waits := v.pending[key]; waits && last.Before(end) {
			delete(v.pending, key)
			v.forgetSpans(key)
		}
	}
	if gap {
		maps.DeleteFunc(v.pending, func(key storage.RecordKey, last storage.Position) bool {
			if last.Before(end) {
				v.forgetSpans(key)
			}
			return last.Before(end)
		})
	}
	if len(keys) >= batchEntries && len(v.pending) == 0 {
		v.pending = map[storage.RecordKey]storage.Position{} // a map keeps the room that a backlog needed
	}
}

// forget drops held entries that are delivered.
func (v *versions) forget(released []storage.RecordKey) {
	for _, key := range released {
		delete(v.held, key)
	}
	if len(released) > 0 {
		v.heldCount = len(v.held.positions())
	}
}

// recount follows changes of held by a start.
func (v *versions) recount() {
	v.heldCount = len(v.held.positions())
	v.released = v.heldCount > 0
}

// heldEntries are the entries that the drain has read and the backend shall not have yet:
// versions of records from before the end of their exchanges, and annotations on these
// records. Held entries stay in their raw segments, and the checkpoint has their positions,
// so that they reach the backend after a crash.
type heldEntries map[storage.RecordKey]*heldRecord

// heldRecord is the last version of a record, with its annotations. record is nil when a
// later version is on its way to the backend.
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

// segments are the segments that held entries stand in.
func (h heldEntries) segments() map[uint64]bool {
	segments := make(map[uint64]bool)
	for _, p := range h.positions() {
		segments[p.Segment] = true
	}
	return segments
}

// hold keeps a version of a record back while its exchange lives, and drops it if
// there is a later one.
func (v *versions) hold(r *storage.Record, at storage.Position) bool {
	if r.EndState != storage.Interrupted {
		return false
	}
	key := r.Key()
	if last, waits := v.pending[key]; waits && at.Before(last) {
		return true
	}
	if _, lives := v.live[key]; !lives || v.heldCount >= maxHeld {
		return false
	}
	h := v.held.getOrAdd(key)
	if h.record == nil {
		v.heldCount++
	}
	h.record, h.at = r, at
	return true
}

// getOrAdd returns the entries that are held of a record. If there are none, it adds an empty heldRecord.
func (h heldEntries) getOrAdd(key storage.RecordKey) *heldRecord {
	r := h[key]
	if r == nil {
		r = new(heldRecord)
		h[key] = r
	}
	return r
}

// holdAnnotation keeps an annotation on a record that is held.
func (v *versions) holdAnnotation(a *storage.Annotation, at storage.Position) bool {
	h := v.held[a.Key()]
	if h == nil || h.record == nil || v.heldCount >= maxHeld {
		return false
	}
	v.heldCount++
	h.annotations = append(h.annotations, heldAnnotation{a, at})
	return true
}

// supersede takes the annotations that are held of a record into the batch that has the
// version at a later position.
func (v *versions) supersede(d *batch, key storage.RecordKey, at storage.Position) {
	h := v.held[key]
	if h == nil || at.Before(h.at) { // an earlier process has read the version before
		return
	}
	h.record = nil
	d.release(key, h)
}

func (d *batch) release(key storage.RecordKey, h *heldRecord) {
	if h.record != nil {
		d.Records = append(d.Records, h.record)
	}
	for _, a := range h.annotations {
		d.Annotations = append(d.Annotations, a.Annotation)
	}
	d.released = append(d.released, key)
}

// releaseHeld makes a batch of what is held of exchanges that live no more. The
// batch has nothing else, and an ID of its own: after a crash there may be more to
// release, and a batch that comes again must be as it was.
func (v *versions) releaseHeld(d *batch, limits *storage.Limits) {
	if !v.released {
		return
	}
	v.released = false
	for key, h := range v.held {
		if _, lives := v.live[key]; lives {
			continue
		}
		if last, waits := v.pending[key]; waits && (h.record == nil || h.at.Before(last)) {
			continue // the later one takes it along
		}
		if n := len(d.Records) + len(d.Annotations); n > 0 && n+1+len(h.annotations) > limits.Entries {
			v.released = true
			break
		}
		d.release(key, h)
	}
	d.full = len(d.released) > 0
	d.ID = "held-" + uuid.NewString()
}

// restore holds an entry again.
func (v *versions) restore(s *segment, e *entry) {
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
		h := v.held.getOrAdd(r.Key())
		h.record, h.at = r, at
	case kindAnnotation:
		a := new(storage.Annotation)
		if annotationWire.parse(e.metadata, a) == nil {
			h := v.held.getOrAdd(a.Key())
			h.annotations = append(h.annotations, heldAnnotation{a, at})
		}
	}
}

// passHeld lets a version of a record pass that the backend was past before the journal
// knew: a final one it has, with what was held; an earlier one may have been held back.
func (v *versions) passHeld(s *segment, at storage.Position, e *entry, r *record) {
	switch {
	case r.EndState != storage.Interrupted:
		if h := v.held[r.Key()]; h != nil && h.at.Before(at) {
			delete(v.held, r.Key())
		}
	case !v.recovered[at]:
		v.restore(s, e)
	}
}
