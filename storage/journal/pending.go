package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/storage"
)

// claimTimeout bounds how long an exchange waits for a backend that knows whether
// its id was used before.
const claimTimeout = 250 * time.Millisecond

// Claim reserves the key of a record if a client chose the id. It returns false when the key
// is claimed, pending, known to the backend or erased, and when the backend cannot tell at
// once.
func (j *Journal) Claim(ctx context.Context, key storage.RecordKey) bool {
	if j.Erased(key) > 0 {
		return false
	}
	j.mu.Lock()
	claimed := j.versions.claim(key)
	j.mu.Unlock()
	if !claimed {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	_ = j.Connected(ctx) // it may still be opening; the request tells if it failed
	if _, err := j.backend.Request(ctx, key); !errors.Is(err, storage.ErrNotFound) {
		j.Release(key)
		return false
	}
	return true
}

// Known reports whether there is such a record. It fails if the backend cannot tell at
// once.
func (j *Journal) Known(ctx context.Context, key storage.RecordKey) (bool, error) {
	if j.Pending(key) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	_, err := j.backend.Request(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Release gives up a claim, once the record was appended or will not be.
func (j *Journal) Release(key storage.RecordKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.versions.claims, key)
}

// Pending reports whether there is a record that was appended and is not in the backend
// yet.
func (j *Journal) Pending(key storage.RecordKey) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.versions.waits(key)
}

// drainTimeout bounds how long a read of one record waits for the drain.
const drainTimeout = time.Second

// Request answers a record, or storage.ErrNotFound. A record that the backend does not
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

// Response answers the newest record of a provider's id of a response or a batch, or
// storage.ErrNotFound. A backend that is no ResponseFinder finds no record.
func (j *Journal) Response(ctx context.Context, org, responseID string) (*storage.Record, error) {
	finder, ok := j.backend.(storage.ResponseFinder)
	if !ok {
		return nil, storage.ErrNotFound
	}
	if err := j.flushSoon(ctx); err != nil {
		return nil, errors.Join(storage.ErrUnavailable, err)
	}
	return finder.Response(ctx, org, responseID)
}

// Spans answers the keys of the records that have one of the span keys, by the span key: of
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

// flushSoon is Flush for as long as a read of one record waits for the drain.
func (j *Journal) flushSoon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	return j.Flush(ctx)
}

// Flush waits until everything appended before the call is in the backend.
func (j *Journal) Flush(ctx context.Context) error {
	j.mu.Lock()
	var target storage.Position
	if n := len(j.log.unsealed); n > 0 {
		target = storage.Position{Segment: j.log.unsealed[n-1].number, Ordinal: j.log.unsealed[n-1].entries}
	}
	for j.delivery.position.Before(target) {
		progress := j.delivery.progress
		j.mu.Unlock()
		signal(j.delivery.wake) // the drain need not rest
		select {
		case <-progress:
		case <-j.delivery.ended:
			return errClosed
		case <-ctx.Done():
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.delivery.err != nil {
				return errors.Join(ctx.Err(), storage.ErrUnavailable, j.delivery.err)
			}
			return ctx.Err()
		}
		j.mu.Lock()
	}
	j.mu.Unlock()
	return nil
}
