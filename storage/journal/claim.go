package journal

import (
	"context"
	"errors"
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
