package llmgateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/streamusage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// jsonType is the media type of JSON.
const jsonType = "application/json"

// client is what an attempt sends to the client.
type client struct {
	call  *call
	x     *recording.Exchange // of the attempt
	w     http.ResponseWriter
	begun bool                // it has the header
	wrote time.Time           // when it was last sent something
	err   error               // of writing
	usage *streamusage.Filter // takes out the usage that the gateway asked for, nil unless the gateway did
	copy  answerCopy          // of the answer, for the record
	// events counts those of a translated stream, in this round of tools.
	events     int64
	warnings   []string // about what is sent to the provider
	repeatable []byte   // the answer as the client has it, nil if Weir's cache cannot give it again
}

// answerCopy is a copy of an answer that passes.
type answerCopy struct {
	capture.Copy
	contentType string
}

// write sends whole events at once, unless the client has left.
func (c *client) write(events []byte) {
	if c.err != nil {
		return
	}
	c.wrote = time.Now()
	if _, c.err = c.w.Write(events); c.err == nil {
		if err := http.NewResponseController(c.w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			c.err = err // a writer that cannot flush still has a client
		}
	}
}

// passMost reads body to its end, and writes all but the last piece, which waits for the
// record. take gets each piece when it comes. complete is false if the body or the client broke
// off.
func (c *client) passMost(body io.Reader, take, write func(p []byte)) (last []byte, complete bool) {
	read, next := make([]byte, minRead), make([]byte, minRead)
	for c.err == nil {
		n, err := body.Read(next)
		if n > 0 {
			if len(last) > 0 {
				write(last)
			}
			last, read, next = next[:n], next, read
			take(last)
		}
		if err != nil {
			return last, errors.Is(err, io.EOF)
		}
	}
	return last, false
}

// keepAlive calls ping if the client was sent nothing for pingInterval, and
// returns when that may be so again.
func (c *client) keepAlive(ping func()) time.Duration {
	if silence := time.Since(c.wrote); silence < pingInterval {
		return pingInterval - silence
	}
	ping()
	return pingInterval
}

// writeHeader sends the header of an answer.
func (c *client) writeHeader(upstream http.Header) {
	c.setHeaders(upstream)
	c.w.WriteHeader(http.StatusOK)
}

// setHeaders passes the provider's ids of the request, and sets the header of warnings.
func (c *client) setHeaders(upstream http.Header) {
	c.begun = true
	apierror.NotCached(c.w.Header())
	for _, name := range [...]string{"X-Request-Id", "Request-Id"} {
		if id := upstream.Get(name); id != "" {
			c.w.Header().Set(name, id)
		}
	}
	c.call.warn(c.warnings)
}

// writeEvents sends whole events of a stream, and its header before the first.
func (c *client) writeEvents(events []byte, upstream http.Header) {
	if !c.begun {
		header := c.w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-cache")
		c.writeHeader(upstream)
	}
	c.write(events)
}

// writeObject answers one JSON object, or text. Its record is committed before.
func (c *client) writeObject(body []byte, contentType string, upstream http.Header) {
	c.x.Record.ResponseBytes = int64(len(body))
	c.keepResponse(body, contentType)
	c.x.Commit(storage.Complete)
	header := c.w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.setCostHeaders("")
	c.writeHeader(upstream)
	_, c.err = c.w.Write(body)
	c.repeatable = body
}

// setCostHeaders sets headers with the tokens and the cost as far as they are known, if the
// client asked for them. Behind a stream they are trailers, of that prefix.
func (c *client) setCostHeaders(prefix string) {
	if !c.call.controls.Cost {
		return
	}
	header, r := c.w.Header(), &c.x.Record
	if r.Cost.Valid {
		header.Set(prefix+"Service-Cost", string(r.Cost.AppendJSON(nil)))
	}
	for name, tokens := range map[string]plugins.Count{"Service-Prompt-Tokens": r.Usage.Input, "Service-Completion-Tokens": r.Usage.Output} {
		if tokens.Valid {
			header.Set(prefix+name, string(tokens.AppendJSON(nil)))
		}
	}
}

// writeMedia sends a piece of an answer, and the header before the first piece.
func (c *client) writeMedia(p []byte, resp *http.Response) {
	if !c.begun {
		header := c.w.Header()
		header["Content-Type"] = resp.Header["Content-Type"]
		if length := resp.Header["Content-Length"]; length != nil && resp.ContentLength >= 0 {
			header["Content-Length"] = length
		}
		c.setCostHeaders("")
		c.writeHeader(resp.Header)
	}
	c.write(p)
}

// keepCopy keeps the copy of what has passed for the record.
func (c *client) keepCopy() {
	c.x.Kept.Response(&c.x.Record, storage.Body{Type: c.copy.contentType, Data: c.copy.Bytes()}, int64(c.call.h.MaxBody), c.copy.Truncated())
}

// keepResponse keeps an answer for the record.
func (c *client) keepResponse(body []byte, contentType string) {
	c.x.Kept.Response(&c.x.Record, storage.Body{Type: contentType, Data: body}, int64(c.call.h.MaxBody), false)
}

// buffer holds events on their way to a client.
type buffer struct{ data []byte }

// keepSize bounds what an idle buffer holds, in bytes.
const keepSize = 256 << 10

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// free lets others use the buffer.
func (b *buffer) free() {
	if cap(b.data) > keepSize {
		return
	}
	b.data = b.data[:0]
	buffers.Put(b)
}
