package llmquery

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// appendRecord appends a record with its bodies. The bodies are unchanged; if the record must be
// one line, line breaks between their values become blanks.
func appendRecord(b []byte, r *storage.Record, content *storage.Content, s shape) (_ []byte, err error) {
	if content == nil {
		content = new(storage.Content)
	}
	b = append(b, '{')
	columns := shown
	if s.columns != nil {
		columns = s.columns
	}
	for i, c := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c.key...)
		if b, err = appendValue(b, c.Column, r); err != nil {
			return b, err
		}
	}
	if s.content {
		begin := len(b)
		b = appendBody(append(b, `,"request_body":`...), content.Request)
		b = appendBody(append(b, `,"response_body":`...), content.Response)
		if s.oneLine {
			joinLines(b[begin:])
		}
	}
	if s.inputs {
		if b, err = appendJSON(append(b, `,"inputs":`...), orEmpty(content.Inputs)); err != nil {
			return b, err
		}
	}
	if s.preview != nil {
		if b, err = appendJSON(append(b, `,"preview":`...), newPreview(r, content, s.preview)); err != nil {
			return b, err
		}
	}
	if s.charges != nil {
		if b, err = appendJSON(append(b, `,"cost_details":`...), charges(s.charges, r)); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// appendBody appends a body: JSON as JSON, other text as a string, and anything
// else in base64.
func appendBody(b []byte, body storage.Body) []byte {
	switch {
	case body.Data == nil:
		return append(b, "null"...)
	case !utf8.Valid(body.Data):
		b = append(b, `{"content_type":`...)
		b = appendString(b, body.Type)
		b = append(b, `,"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, body.Data)
		return append(b, `"}`...)
	case json.Valid(body.Data):
		return append(b, body.Data...)
	default:
		return appendString(b, string(body.Data))
	}
}

// joinLines makes one line of JSON, whose strings have no line breaks.
func joinLines(text []byte) {
	for i, c := range text {
		if c == '\n' || c == '\r' {
			text[i] = ' '
		}
	}
}

// appendString appends a JSON string. Most texts need no escapes.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || strings.IndexByte(`"\<>&`, c) >= 0 {
			text, _ := json.Marshal(s) // a string always marshals
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// shownColumn is a column of answers.
type shownColumn struct {
	*storage.Column
	key string // with the colon
}

// shown are the columns of answers.
var shown = func() (columns []shownColumn) {
	for _, c := range storage.Schema {
		if name := c.Shown(); name != "" {
			columns = append(columns, shownColumn{c, `"` + name + `":`})
		}
	}
	return columns
}()

// appendValue appends a value of a record. An unknown value is null, unless it is required.
func appendValue(b []byte, c *storage.Column, r *storage.Record) ([]byte, error) {
	switch v := c.At(r).(type) {
	case *string:
		if *v == "" && !c.Required {
			break
		}
		return appendString(b, *v), nil
	case *plugins.Count:
		return v.AppendJSON(b), nil
	case *plugins.Duration:
		return v.AppendJSON(b), nil
	case *plugins.Cost:
		return v.AppendJSON(b), nil
	case *bool:
		return strconv.AppendBool(b, *v), nil
	case *uuid.UUID:
		if *v == uuid.Nil && !c.Required {
			break
		}
		return appendString(b, v.String()), nil
	case *storage.Timestamp:
		if *v == 0 && !c.Required {
			break
		}
		return appendString(b, v.String()), nil
	case *storage.EndState:
		return appendString(b, v.String()), nil
	case *int:
		if *v == 0 {
			break
		}
		return strconv.AppendInt(b, int64(*v), 10), nil
	case *int64:
		return strconv.AppendInt(b, *v, 10), nil
	case *storage.JSONText:
		if *v == "" {
			break
		}
		return appendJSON(b, json.RawMessage(*v))
	case *map[string]string:
		return appendJSON(b, orEmpty(*v))
	case *map[string]float64:
		return appendJSON(b, orEmpty(*v))
	case *[]string:
		return appendJSON(b, append([]string{}, *v...))
	}
	return append(b, "null"...), nil
}

func appendJSON(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(b, text...), err
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// flushSize is how much of an answer is kept back, in bytes, so that most failures can still be
// answered with an error.
const flushSize = 1 << 20

// answer writes the answer of a call piece by piece: a page may carry more
// bodies than should stand in memory at once.
type answer struct {
	call        *call
	shape       shape
	contents    storage.ContentReader // nil unless the shape needs content
	reader      storage.ContentReader // contents, as soon as the audit log says who reads them
	contentType string
	buf         []byte
	started     bool
	err         error // of the first write that failed: the client left
}

func newAnswer(c *call, s shape) *answer {
	a := &answer{call: c, shape: s, contentType: "application/json", buf: make([]byte, 0, 16<<10)}
	if s.readsContent() {
		a.contents = c.contents(storage.WholeContent)
	}
	return a
}

func (a *answer) close() {
	if a.contents != nil {
		a.contents.Close()
	}
}

func (a *answer) append(json string) { a.buf = append(a.buf, json...) }

// shape says which parts of a record an answer shows. charges has the prices for the parts of the
// cost, nil to leave them out.
type shape struct {
	content, inputs bool
	preview         storage.Filter // chose the record; nil for no preview
	charges         *catalog.Catalog
	// oneLine: the record is a line, or a part of a line.
	oneLine bool
	// columns are the values of a record, nil for all.
	columns []shownColumn
	// exportOf is the filter of an export, nil for other answers.
	exportOf storage.Filter
}

// readsContent reports whether the shape needs the bodies.
func (s *shape) readsContent() bool { return s.content || s.inputs || s.preview != nil }

// expect says which records come next. A record that nobody expects has no content.
func (a *answer) expect(records ...*storage.Record) error {
	if a.contents == nil {
		return nil
	}
	if err := a.call.auditReads(records, &a.shape); err != nil {
		return err
	}
	a.reader = a.contents
	if p, ok := a.reader.(storage.Prefetcher); ok {
		p.Prefetch(records)
	}
	return nil
}

func (a *answer) record(r *storage.Record) (err error) {
	var content *storage.Content
	if a.reader != nil {
		if content, err = a.reader.Content(a.call.ctx, r); err != nil {
			return err
		}
	}
	if a.buf, err = appendRecord(a.buf, r, content, a.shape); err != nil {
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
		a.call.w.Header().Set("Content-Type", a.contentType)
	}
	if a.err == nil {
		_, a.err = a.call.w.Write(a.buf)
	}
	a.buf = a.buf[:0]
}

// abandon gives up an answer. If nothing was sent, the client gets the error. Else the connection
// breaks, so that nobody takes half a page for a whole one.
func (a *answer) abandon(err error) error {
	if a.started {
		panic(http.ErrAbortHandler)
	}
	a.call.w.Header().Del("Content-Disposition")
	return err
}

// pageEnvelope holds a page. Next is the cursor after the last row, nil on the last page.
type pageEnvelope struct {
	apierror.Envelope
	Next *string `json:"next"`
}

// cutPage returns the first limit rows, and the cursor after the last of them, which is nil on
// the last page. A query asks for limit+1 rows, to see whether another page follows.
func cutPage[K ~string, T any](rows []T, limit int, cursor func(*T) *storage.Cursor[K]) (page []T, next *string) {
	if limit == 0 || len(rows) <= limit {
		return rows[:min(limit, len(rows))], nil
	}
	return rows[:limit], new(cursor(&rows[limit-1]).String())
}
