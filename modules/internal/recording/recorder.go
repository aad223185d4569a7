package recording

import (
	"context"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// Recorder is the part of a journal that an exchange needs.
type Recorder interface {
	// Begin counts an exchange, which lives until Abandon.
	Begin(r *storage.Record)
	// Append writes a version of the record. One whose EndState is
	// storage.Interrupted is followed by another one as long as the process lives.
	Append(r *storage.Record, k *storage.Kept) error
	// Abandon ends an exchange. It is lost if nothing was appended.
	Abandon(r *storage.Record)
	// Claim reserves the key of a record whose id a client chose, until Release. It
	// is false if the organisation has used the id.
	Claim(ctx context.Context, key storage.RecordKey) bool
	Release(key storage.RecordKey)
	// Known reports whether there is such a record. It fails if the backend cannot
	// tell at once.
	Known(ctx context.Context, key storage.RecordKey) (bool, error)
	// Response returns the newest record of a provider's id of a response or a batch.
	Response(ctx context.Context, org, responseID string) (*storage.Record, error)
}

// Opener gets hold of a recorder for one exchange, which cancel cuts off. Its
// store stays open until release, whatever becomes of the configuration.
type Opener func(cancel context.CancelFunc) (rec Recorder, release func(), err error)

// Open returns the opener of a store.
func Open(store *stores.Store) Opener {
	return func(cancel context.CancelFunc) (Recorder, func(), error) {
		release := store.HoldExchange(cancel)
		j, err := store.Journal()
		if err != nil {
			release()
			return nil, nil, err
		}
		return j, release, nil
	}
}

// discardRecorder replaces a store that does not open: traffic goes on.
type discardRecorder struct{}

func (discardRecorder) Begin(*storage.Record)                         {}
func (discardRecorder) Abandon(*storage.Record)                       {}
func (discardRecorder) Append(*storage.Record, *storage.Kept) error   { return nil }
func (discardRecorder) Claim(context.Context, storage.RecordKey) bool { return true }
func (discardRecorder) Release(storage.RecordKey)                     {}
func (discardRecorder) Known(context.Context, storage.RecordKey) (bool, error) {
	return false, nil
}

func (discardRecorder) Response(context.Context, string, string) (*storage.Record, error) {
	return nil, storage.ErrNotFound
}

// Interface guards
var (
	_ Recorder = (*journal.Journal)(nil)
	_ Recorder = discardRecorder{}
)
