package storagetest

import (
	"bytes"
	"context"
	"maps"
	"math"

	"github.com/weirhq/weir/storage"
)

// Contents is content in memory. A reference that it does not have is content
// which has been deleted.
type Contents map[storage.ContentRef]*storage.Content

// Content looks the reference up.
func (c Contents) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	return c[r.Content], ctx.Err()
}

// Reader looks references up.
func (c Contents) Reader(parts storage.ContentPart) storage.ContentReader {
	return &contentReader{content: c.Content, parts: parts}
}

// Of is the content of a record, nil if the record has no content.
func (c Contents) Of(r *storage.Record) *storage.Content { return c[r.Content] }

var _ storage.Contents = Contents(nil)

// contentReader gives no more than it was asked for, and destroys at each call
// what it gave before, so that nobody can do without the contract.
type contentReader struct {
	content func(context.Context, *storage.Record) (*storage.Content, error)
	parts   storage.ContentPart
	given   storage.Content
}

func (r *contentReader) Content(ctx context.Context, rec *storage.Record) (*storage.Content, error) {
	r.Close()
	c, err := r.content(ctx, rec)
	if c == nil || err != nil {
		return nil, err
	}
	if r.parts&storage.RequestPart != 0 {
		r.given.Request = storage.Body{Type: c.Request.Type, Data: bytes.Clone(c.Request.Data)}
		r.given.Inputs, r.given.Media = maps.Clone(c.Inputs), c.Media
	}
	if r.parts&storage.ResponsePart != 0 {
		r.given.Response = storage.Body{Type: c.Response.Type, Data: bytes.Clone(c.Response.Data)}
	}
	return &r.given, nil
}

func (r *contentReader) Close() {
	for _, data := range [][]byte{r.given.Request.Data, r.given.Response.Data} {
		for i := range data {
			data[i] = '?'
		}
	}
	clear(r.given.Inputs)
	r.given = storage.Content{}
}

// Kept returns what a journal takes of the whole content of a record, nil for nil.
func Kept(r *storage.Record, c *storage.Content) *storage.Kept {
	if c == nil {
		return nil
	}
	return storage.Keep(r, *c, math.MaxInt64)
}
