// Package recording owns the life of a record from the beginning of its exchange
// to the end: its id, its versions in the journal, its price, and how it is
// reported. Whatever makes records uses it: the proxy, the gateway and the
// receiver of traces.
package recording

import (
	"context"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// Recorder is the part of a journal that an exchange needs.
type Recorder interface {
	// Begin counts an exchange, which lives until Abandon.
	Begin(r *storage.Record)
	// Append writes a version of the record. One whose EndState is
	// storage.Interrupted is followed by another one as long as the process lives.
	Append(r *storage.Record, c *storage.Content) error
	// Abandon ends an exchange. It is lost if nothing was appended.
	Abandon(r *storage.Record)
	// Claim reserves an id that the client of an organisation chose until Release,
	// and is false if it is taken.
	Claim(ctx context.Context, org string, id uuid.UUID) bool
	Release(id uuid.UUID)
	// Known tells whether an organisation has a record of that id. It is an error if
	// the backend cannot tell at once.
	Known(ctx context.Context, org string, id uuid.UUID) (bool, error)
	// Response returns the newest record of a provider's id of a response or a batch.
	Response(ctx context.Context, org, responseID string) (*storage.Record, error)
}

// Opener gets hold of a recorder for one exchange, which cancel cuts off. Its
// store stays open until release, whatever becomes of the configuration.
type Opener func(cancel context.CancelFunc) (rec Recorder, release func(), err error)

// Open returns the opener of a store.
func Open(store *llmapp.Store) Opener {
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

func (discardRecorder) Begin(*storage.Record)                          {}
func (discardRecorder) Abandon(*storage.Record)                        {}
func (discardRecorder) Append(*storage.Record, *storage.Content) error { return nil }
func (discardRecorder) Claim(context.Context, string, uuid.UUID) bool  { return true }
func (discardRecorder) Release(uuid.UUID)                              {}
func (discardRecorder) Known(context.Context, string, uuid.UUID) (bool, error) {
	return false, nil
}
func (discardRecorder) Response(context.Context, string, string) (*storage.Record, error) {
	return nil, storage.ErrNotFound
}

// identify is the id that the client chose, if it can have it, which it must
// then release; or else a new one.
func identify(ctx context.Context, rec Recorder, org string, c *control.Controls) (id uuid.UUID, claimed bool) {
	if c.ID != "" {
		id, err := uuid.Parse(c.ID)
		switch {
		case err != nil || len(c.ID) != len(uuid.Nil.String()) || id == uuid.Nil:
			c.Warn("Service-Request-Id", "replaced, it is no UUID")
		case !rec.Claim(ctx, org, id):
			c.Warn("Service-Request-Id", "replaced, it was used before")
		default:
			return id, true
		}
	}
	return uuid.Must(uuid.NewV7()), false // fails without randomness alone
}

// Interface guards
var (
	_ Recorder = (*journal.Journal)(nil)
	_ Recorder = discardRecorder{}
)
