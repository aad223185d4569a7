package journal

import (
	"context"

	"github.com/weirhq/weir/storage"
)

// backendContents reads content from a backend that keeps content itself, and from the journal while the
// backend does not have the record.
type backendContents struct {
	journal *Journal
	keeper  storage.ContentKeeper
}

func (k backendContents) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	if k.journal.Pending(r.Key()) {
		return segmentContents{k.journal}.Content(ctx, r)
	}
	if k.journal.Erased(r.Key()) > 0 {
		return nil, nil
	}
	return k.keeper.Content(ctx, r)
}

func (k backendContents) Reader(parts storage.ContentPart) storage.ContentReader {
	return &backendReader{k, k.keeper.Reader(parts), segmentContents{k.journal}.Reader(parts)}
}

// backendReader is the reader of backendContents.
type backendReader struct {
	backendContents
	stored, pending storage.ContentReader // of the backend and of the journal
}

func (r *backendReader) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	if r.journal.Pending(rec.Key()) {
		return r.pending.Content(ctx, rec)
	}
	if r.journal.Erased(rec.Key()) > 0 {
		return nil, nil
	}
	return r.stored.Content(ctx, rec)
}

// Prefetch implements storage.Prefetcher.
func (r *backendReader) Prefetch(records []*storage.Record) {
	if p, ok := r.stored.(storage.Prefetcher); ok {
		p.Prefetch(records)
	}
}

func (r *backendReader) Close() {
	r.stored.Close()
	r.pending.Close()
}
