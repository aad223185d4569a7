package storagetest

import (
	"context"

	"github.com/weirhq/weir/storage"
)

// Contents is content in memory. A reference that it does not have is content
// which has been deleted.
type Contents map[storage.ContentRef]*storage.Content

// Content looks the reference up.
func (c Contents) Content(ctx context.Context, ref storage.ContentRef) (*storage.Content, error) {
	return c[ref], ctx.Err()
}

// Of is the content of a record, nil if there is none.
func (c Contents) Of(r *storage.Record) *storage.Content { return c[r.Content] }

var _ storage.Contents = Contents(nil)
