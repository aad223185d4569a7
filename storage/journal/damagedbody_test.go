package journal

import (
	"context"
	"testing"

	"github.com/weirhq/weir/storage"
)

// bodyKeeper is a backend that keeps bodies: it reads those of each batch, twice.
type bodyKeeper struct {
	backend
	storage.ContentKeeper
	contents storage.Contents
}

func (b *bodyKeeper) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	b.contents = h.Contents
	return b.backend.Open(ctx, h)
}

func (b *bodyKeeper) Write(ctx context.Context, batch *storage.Batch) error {
	for range 2 {
		for _, r := range batch.Records {
			if _, err := b.contents.Content(ctx, r); err != nil {
				return err
			}
		}
	}
	return b.backend.Write(ctx, batch)
}

// A body that is damaged before a backend that keeps bodies has it counts as lost, once.
func TestADamagedBodyIsCountedOnItsWayToTheBackend(t *testing.T) {
	b := &bodyKeeper{}
	unblock := b.block()
	defer unblock()
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir})
	for n := range 3 {
		appendSample(t, j, n)
	}
	abandon(j)
	path := files(t, dir, rawSuffix)[0]
	flip(t, path, frames(t, path)[1]-10) // in the body of the first
	j = open(t, b, Options{Dir: dir})    // whose process ends after it has read the bodies
	eventually(t, "the body is counted", func() bool { return len(j.Integrity().Losses) > 0 })
	abandon(j)
	unblock()
	for range 2 {
		j = open(t, b, Options{Dir: dir})
		flush(t, j)
		wantLostContent(t, j, 1)
		abandon(j)
	}
}
