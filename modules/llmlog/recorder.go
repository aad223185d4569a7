package llmlog

import (
	"context"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// recorder is the part of a journal that an exchange needs.
type recorder interface {
	Append(r *storage.Record, c *storage.Content) error
	Claim(ctx context.Context, id uuid.UUID) bool
	Release(id uuid.UUID)
}

// opener gets hold of a recorder for one exchange, which cancel cuts off. Its
// store stays open until release, whatever becomes of the configuration.
type opener func(cancel context.CancelFunc) (rec recorder, release func(), err error)

func openStore(store *llmapp.Store, cancel context.CancelFunc) (recorder, func(), error) {
	release := store.HoldExchange(cancel)
	j, err := store.Journal()
	if err != nil {
		release()
		return nil, nil, err
	}
	return j, release, nil
}

// Interface guard
var _ recorder = (*journal.Journal)(nil)
