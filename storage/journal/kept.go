package journal

import (
	"context"

	"github.com/weirhq/weir/storage"
)

// keptContents reads content from a backend that keeps it, and from the journal while
// the backend has not taken the record.
type keptContents struct {
	journal *Journal
	keeper  storage.ContentKeeper
}

func (k keptContents) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	if k.journal.Pending(r.Org, r.ID) {
		return k.journal.Content(ctx, r)
	}
	return k.keeper.Content(ctx, r)
}

func (k keptContents) Reader(parts storage.ContentPart) storage.ContentReader {
	return &keptReader{k, k.keeper.Reader(parts), k.journal.Reader(parts)}
}

// keptReader is the reader of keptContents.
type keptReader struct {
	keptContents
	kept, pending storage.ContentReader
}

func (r *keptReader) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	if r.journal.Pending(rec.Org, rec.ID) {
		return r.pending.Content(ctx, rec)
	}
	return r.kept.Content(ctx, rec)
}

// Prefetch implements storage.Prefetcher.
func (r *keptReader) Prefetch(records []*storage.Record) {
	if p, ok := r.kept.(storage.Prefetcher); ok {
		p.Prefetch(records)
	}
}

func (r *keptReader) Close() {
	r.kept.Close()
	r.pending.Close()
}
