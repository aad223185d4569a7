package llmquery

import (
	"context"
	"net/http"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// All content of records is read here: for answers by contents, for filters by readFilter,
// for orders by order. A caller with the scope `metrics` alone reads none.

// errContent refuses a question whose answer would tell of content.
var errContent = &plugins.Error{
	Status:  http.StatusForbidden,
	Message: "insufficient_scope: The API key lacks the scope \"query\", and may not ask for the content of requests.",
}

// contents returns a reader of the content of records. Without the right to read, the
// reader returns no content, and a header of the answer says so.
func (c *call) contents(parts storage.ContentPart) storage.ContentReader {
	if c.content {
		return c.journal.Contents().Reader(parts)
	}
	if parts != 0 {
		c.w.Header().Set("Service-Warnings", `content: left out, the API key lacks the scope "query"`)
	}
	return noContent{}
}

// noContent is the content of all records for those who may not read it.
type noContent struct{}

func (noContent) Content(context.Context, *storage.Record) (*storage.Content, error) {
	return new(storage.Content), nil
}

func (noContent) Close() {}

// readFilter reads a filter that takes no more work than a query may, and asks for nothing
// that the caller may not read.
func (c *call) readFilter(raw []byte, groups ...storage.Group) (storage.Filter, error) {
	f, err := storage.ParseFilter(raw, groups...)
	switch {
	case err != nil:
		return nil, err
	case !c.content && storage.ContentParts(f) != 0:
		return nil, errContent
	}
	return f, storage.CheckFilterWork(f)
}

// order reads an order of requests that tells nothing that the caller may not read.
func (c *call) order(raw []byte) (sort []storage.Sort, random bool, err error) {
	sort, random, err = storage.ParseSort(raw)
	if err == nil && !c.content && (&storage.RequestQuery{Sort: sort}).SortsByContent() {
		err = errContent
	}
	return sort, random, err
}
