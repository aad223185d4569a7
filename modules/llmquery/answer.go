package llmquery

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// flushSize is how much of an answer is kept back, so that most failures can
// still be answered as such.
const flushSize = 1 << 20

// answer writes the answer of a call piece by piece: a page may carry more
// bodies than should stand in memory at once.
type answer struct {
	*call
	contents    storage.ContentReader
	contentType string
	buf         []byte
	started     bool
	err         error // of the first write that failed: the client left
}

func newAnswer(c *call) *answer {
	return &answer{
		call: c, contents: c.journal.Contents().Reader(storage.WholeContent), contentType: "application/json", buf: make([]byte, 0, 16<<10),
	}
}

func (a *answer) close() { a.contents.Close() }

func (a *answer) raw(json string) { a.buf = append(a.buf, json...) }

// shape says what of a record's content an answer shows, and by which prices what it
// was charged for, nil for none.
type shape struct {
	content, inputs bool
	charges         *catalog.Catalog
}

// expect says which records come next.
func (a *answer) expect(records []*storage.Record, s shape) {
	if p, ok := a.contents.(storage.Prefetcher); ok && (s.content || s.inputs) {
		p.Prefetch(records)
	}
}

func (a *answer) record(r *storage.Record, s shape) (err error) {
	var content *storage.Content
	if s.content || s.inputs {
		if content, err = a.contents.Content(a.ctx, r); err != nil {
			return err
		}
	}
	if a.buf, err = appendRecord(a.buf, r, content, s); err != nil {
		return err
	}
	if len(a.buf) > flushSize {
		a.flush()
	}
	return a.err
}

func (a *answer) flush() {
	if !a.started {
		a.started = true
		a.w.Header().Set("Content-Type", a.contentType)
	}
	if a.err == nil {
		_, a.err = a.w.Write(a.buf)
	}
	a.buf = a.buf[:0]
}

// abandon gives up an answer: as an error while nothing has been sent, else by
// breaking the connection, so that nobody takes half a page for a whole one.
func (a *answer) abandon(err error) error {
	if a.started {
		panic(http.ErrAbortHandler)
	}
	a.w.Header().Del("Content-Disposition")
	return err
}

// pageEnvelope is what pages are in. Next is the cursor behind the last row, nil on
// the last page.
type pageEnvelope struct {
	apierror.Envelope
	Next *string `json:"next"`
}

// next is the cursor behind the last row of a page that may have another behind it.
func next[K ~string, T any](page []T, limit int, cursor func(*T) *storage.Cursor[K]) *string {
	if limit == 0 || len(page) < limit {
		return nil
	}
	return new(cursor(&page[len(page)-1]).String())
}
