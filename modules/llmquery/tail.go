package llmquery

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

const (
	// tailRate bounds the requests that a client is sent in a second.
	tailRate = 200
	// tailRetry is when a client connects again after its stream has ended, as when the
	// configuration is reloaded.
	tailRetry = 500 * time.Millisecond
	// tailHeartbeat keeps proxies from closing a connection that is silent.
	tailHeartbeat = 15 * time.Second
)

// tailRequests sends requests as they are recorded, as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func tailRequests(c *call) error {
	values := c.r.URL.Query()
	for name := range values {
		if name != "filter" {
			return badRequest("%s", storage.Unknown("parameter", name, []string{"filter"}))
		}
	}
	filter, err := c.parseFilter([]byte(values.Get("filter")), "filter", storage.RequestResponse)
	if err != nil {
		return err
	}
	ids, err := c.newEventIDs()
	if err != nil {
		return err
	}
	after := ids.parse(c.r.Header.Get("Last-Event-ID"))
	c.ctx = c.r.Context() // no timeout: it lasts as long as its client
	follower, complete := c.journal.Follow(after)
	t := &tail{
		call: c, ids: ids, seen: after, follower: follower, matcher: storage.NewMatcher(filter, storage.NewCancelCheck(c.ctx.Err)),
		contents: c.contents(storage.ContentParts(filter)),
	}
	defer t.contents.Close()
	header := c.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	t.buf = fmt.Appendf(t.buf, ": requests as they are recorded\nretry: %d\n\n", tailRetry.Milliseconds())
	if !complete {
		t.skipped("null")
	}
	return t.run(c.stopping(c.r))
}

// tail is what one client follows.
type tail struct {
	call     *call
	ids      eventIDs
	follower interface {
		Next() (records []*storage.Record, missed int, more <-chan struct{})
	}
	matcher  *storage.Matcher
	contents storage.ContentReader
	buf      []byte
	// second is when the last count of sent began.
	second time.Time
	sent   int
	// seen is the position of the last record that was read.
	seen storage.Position
}

// run sends events until the client leaves or the server stops.
func (t *tail) run(stopping <-chan struct{}) error {
	heartbeat := time.NewTicker(tailHeartbeat)
	defer heartbeat.Stop()
	out := http.NewResponseController(t.call.w)
	for {
		records, missed, more := t.follower.Next()
		if missed > 0 {
			t.skipped("null") // they may be other organisations'
		}
		if err := t.events(records); err != nil { // the client comes again
			t.call.logger.Error("requests cannot be followed", zap.Error(err))
			return nil
		}
		if len(t.buf) > 0 {
			_, err := t.call.w.Write(t.buf)
			if flushed := out.Flush(); err != nil || flushed != nil {
				return nil
			}
			t.buf = t.buf[:0]
		}
		select {
		case <-more:
		case <-heartbeat.C:
			t.buf = fmt.Appendf(append(t.buf, ":\n"...), "id: %s\n\n", t.ids.format(t.seen))
		case <-stopping:
			return nil
		case <-t.call.ctx.Done():
			return nil
		}
	}
}

// events appends an event for each record that matches.
func (t *tail) events(records []*storage.Record) error {
	skipped := 0
	for _, r := range records {
		t.seen = r.Version
		var failed error
		matches := r.Org == t.call.org && t.matcher.Match(r, func() (content *storage.Content) {
			content, failed = t.contents.Content(t.call.ctx, r)
			return content
		})
		switch {
		case failed != nil:
			return failed
		case !matches:
			continue
		}
		if now := time.Now(); now.Sub(t.second) >= time.Second {
			t.second, t.sent = now, 0
		}
		if t.sent++; t.sent > tailRate {
			skipped++
			continue
		}
		t.buf = fmt.Appendf(t.buf, "id: %s\ndata: ", t.ids.format(r.Version))
		var err error
		if t.buf, err = appendRecord(t.buf, r, nil, shape{}); err != nil {
			return err
		}
		t.buf = append(t.buf, "\n\n"...)
	}
	if skipped > 0 {
		t.skipped(strconv.Itoa(skipped))
	}
	return nil
}

// skipped appends that requests were left out.
func (t *tail) skipped(count string) {
	t.buf = append(t.buf, "event: skipped\ndata: {\"count\":"+count+"}\n\n"...)
}

// eventIDs makes ids of events from positions in the journal. The positions stay unknown to
// clients: they count what all organisations record.
type eventIDs struct{ cipher.Block }

// newEventIDs returns the ids of the caller's organisation.
func (c *call) newEventIDs() (eventIDs, error) {
	secret, err := c.app.Secret(c.store)
	if err != nil {
		return eventIDs{}, err
	}
	key := sha256.Sum256(append(append([]byte("tail\x00"), secret...), "\x00"+c.org...))
	block, err := aes.NewCipher(key[:])
	return eventIDs{block}, err
}

// format returns the id of the event of a record, whose position others cannot read from it.
func (e eventIDs) format(p storage.Position) string {
	var id [aes.BlockSize]byte // ends with zeros, by which parse knows it
	binary.BigEndian.PutUint64(id[:], p.Segment)
	binary.BigEndian.PutUint32(id[8:], p.Ordinal)
	e.Encrypt(id[:], id[:])
	return hex.EncodeToString(id[:])
}

// parse reads the position of a record from the id of its event. An id from another node, or
// from before the secret changed, is as unknown as a record that is gone.
func (e eventIDs) parse(text string) storage.Position {
	if text == "" {
		return storage.Position{}
	}
	id, err := hex.DecodeString(text)
	if err == nil && len(id) == aes.BlockSize {
		e.Decrypt(id, id)
		if binary.BigEndian.Uint32(id[12:]) == 0 {
			return storage.Position{Segment: binary.BigEndian.Uint64(id), Ordinal: binary.BigEndian.Uint32(id[8:])}
		}
	}
	return storage.Position{Segment: math.MaxUint64}
}

// stopping returns a channel that is closed when the server of a request begins to shut down:
// the server waits for requests to end.
func (h *Handler) stopping(r *http.Request) <-chan struct{} {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		if _, known := h.servers.LoadOrStore(server, struct{}{}); !known {
			server.RegisterOnShutdown(h.stop)
		}
	}
	return h.stopped.Done()
}
