package llmquery

import (
	"encoding/json"
	"net/http"

	"github.com/weirhq/weir/storage"
)

// flushSize is how much of an answer is kept back, so that most failures can
// still be answered as such.
const flushSize = 1 << 20

// answer writes the answer of a call piece by piece: a page may carry more
// bodies than should stand in memory at once.
type answer struct {
	*call
	contents storage.ContentReader
	buf      []byte
	started  bool
	err      error // of the first write that failed: the client left
}

func newAnswer(c *call) *answer {
	return &answer{call: c, contents: c.journal.Contents().Reader(storage.WholeContent), buf: make([]byte, 0, 16<<10)}
}

func (a *answer) close() { a.contents.Close() }

func (a *answer) raw(json string) { a.buf = append(a.buf, json...) }

func (a *answer) record(r *storage.Record, inputs bool) error {
	content, err := a.contents.Content(a.ctx, r)
	if err != nil {
		return err
	}
	if a.buf, err = appendRecord(a.buf, r, content, inputs); err != nil {
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
		a.w.Header().Set("Content-Type", "application/json")
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
	return err
}

// envelope is what every answer is in: data, or an error.
type envelope struct {
	Data  any     `json:"data"`
	Error *string `json:"error"`
}

func (e envelope) write(w http.ResponseWriter, status int) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // it fails when the client left
	return nil
}
