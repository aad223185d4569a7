package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/storage"
)

// Pending reports whether there is a record that was appended and is not in the backend
// yet.
func (j *Journal) Pending(key storage.RecordKey) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.versions.waits(key)
}

// Request returns a record, or storage.ErrNotFound. A record that the backend does not
// take is read from the journal.
func (j *Journal) Request(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	if j.Erased(key) == storage.EraseRecord {
		return nil, storage.ErrNotFound
	}
	j.mu.Lock()
	last, waits := j.versions.pending[key]
	remaining := j.versions.remaining(key)
	failing := j.delivery.err != nil
	j.mu.Unlock()
	switch {
	case waits:
	case remaining != nil:
		return remaining, nil
	default:
		return j.backend.Request(ctx, key)
	}
	err := storage.ErrUnavailable
	if !failing {
		err = j.flushSoon(ctx)
	}
	switch {
	case err == nil:
		return j.backend.Request(ctx, key)
	case ctx.Err() != nil:
		return nil, err
	}
	r, err := j.readPending(last)
	if errors.Is(err, storage.ErrNotFound) && !j.Pending(key) { // the backend has it by now
		return j.backend.Request(ctx, key)
	}
	return r, err
}

// Response returns the newest record of a provider's id of a response or a batch, or
// storage.ErrNotFound. A backend that is no ResponseFinder finds no record. A record
// is not found once its identity is erased, though the backend may have it for a while.
func (j *Journal) Response(ctx context.Context, org, responseID string) (*storage.Record, error) {
	finder, ok := j.backend.(storage.ResponseFinder)
	if !ok {
		return nil, storage.ErrNotFound
	}
	if err := j.flushSoon(ctx); err != nil {
		return nil, errors.Join(storage.ErrUnavailable, err)
	}
	r, err := finder.Response(ctx, org, responseID)
	if err != nil {
		return nil, err
	}
	if scope := j.Erased(r.Key()); scope == storage.EraseIdentity || scope == storage.EraseRecord {
		return nil, storage.ErrNotFound
	}
	return r, nil
}

// Spans returns the keys of the records that have one of the span keys, by the span key: of
// those that were appended, and of those in the backend. A backend that is no SpanFinder finds
// none.
func (j *Journal) Spans(ctx context.Context, org string, keys []storage.SpanKey) (map[string][]storage.RecordKey, error) {
	// What waits comes first: it may reach the backend meanwhile.
	found := make(map[string][]storage.RecordKey)
	j.mu.Lock()
	for _, k := range keys {
		if waiting := j.versions.spans[spanKey{org, k.Key}]; len(waiting) > 0 {
			found[k.Key] = slices.Clone(waiting)
		}
	}
	j.mu.Unlock()
	finder, ok := j.backend.(storage.SpanFinder)
	if !ok {
		return found, nil
	}
	stored, err := finder.Spans(ctx, org, keys)
	for key, records := range stored {
		for _, r := range records {
			if !slices.Contains(found[key], r) {
				found[key] = append(found[key], r)
			}
		}
	}
	return found, err
}

// Conversation returns the backend's conversation, with all changes that were appended.
func (j *Journal) Conversation(ctx context.Context, org, id string, page storage.ItemPage) (*storage.Conversation, error) {
	if err := j.flushSoon(ctx); err != nil {
		return nil, errors.Join(storage.ErrUnavailable, err)
	}
	return j.backend.Conversation(ctx, org, id, page)
}

// Shared reports whether other nodes read the same store. Such a store keeps content itself.
func (j *Journal) Shared() bool {
	_, keeps := j.backend.(storage.ContentKeeper)
	return keeps
}

// readPending reads a record from its raw segment.
func (j *Journal) readPending(place storage.Position) (*storage.Record, error) {
	j.mu.Lock()
	s := j.log.acquire(place.Segment)
	if s == nil {
		j.mu.Unlock()
		return nil, storage.ErrNotFound
	}
	sc := s.scanner(place.Ordinal, headWindow)
	j.mu.Unlock()
	defer j.log.release(s)
	e, err := sc.seek(place.Ordinal)
	if err != nil {
		return nil, fmt.Errorf("reading entry %d of %s: %w", place.Ordinal, s.path, err)
	}
	r := new(storage.Record)
	if e.ordinal != place.Ordinal || recordWire.parse(e.metadata, r) != nil {
		return nil, storage.ErrNotFound
	}
	j.mu.Lock()
	_, lives := j.versions.live[r.Key()]
	j.mu.Unlock()
	if lives {
		return nil, storage.ErrNotFound
	}
	r.Number = 0
	if e.length > 0 {
		r.Content = storage.ContentRef(place)
	}
	return r, nil
}
