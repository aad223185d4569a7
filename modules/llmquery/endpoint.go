package llmquery

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// endpoint is what one method on one path does.
type endpoint struct {
	scope string
	serve func(*call) error
	*reading
	// about is what GET /openapi.json says of the endpoint.
	about about
}

// reading is how much an endpoint reads, nil if nothing.
type reading struct {
	// turns returns what admits the calls.
	turns func(llmapp.Turns) *admission.Turns
	// long: a call can take long, and runs behind traffic.
	long bool
}

var (
	manyRecords = &reading{turns: func(t llmapp.Turns) *admission.Turns { return t.Queries }, long: true}
	oneRecord   = &reading{turns: func(t llmapp.Turns) *admission.Turns { return t.Annotations }}
	aStream     = &reading{turns: func(t llmapp.Turns) *admission.Turns { return t.Streams }, long: true}
	aTrial      = &reading{turns: func(t llmapp.Turns) *admission.Turns { return t.Trials }, long: true}
)

// scopeNone is the scope of endpoints that need no key.
const scopeNone = ""

// maxBody bounds the body of a query, in bytes. maxAnnotation bounds the body of an annotation,
// which has room for all scores of a request. A longer body is answered with 413.
const (
	maxBody       = 1 << 20
	maxAnnotation = 256 << 10
)

// call is one authorised call of an endpoint.
type call struct {
	*Handler
	ctx     context.Context
	w       http.ResponseWriter
	r       *http.Request
	sent    []byte // the body
	org     string
	caller  *access.Key // nil for the public
	key     string      // the caller's hash, "" for the public
	content bool        // the caller may read content
	journal *journal.Journal
}

func badRequest(format string, args ...any) error { return plugins.Invalid("", format, args...) }

// pathHandler serves the endpoints of a path.
type pathHandler struct {
	*Handler
	methods map[string]endpoint
}

func (h pathHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.answer(w, r); err != nil {
		h.fail(w, r, err)
	}
}

func (h pathHandler) answer(w http.ResponseWriter, r *http.Request) error {
	e, ok := h.methods[r.Method]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(h.methods)), ", ")
		w.Header().Set("Allow", allowed)
		return &plugins.Error{Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s takes %s, not %s", r.URL.Path, allowed, r.Method)}
	}
	c := &call{Handler: h.Handler, w: w, r: r}
	if err := c.authorise(e.scope); err != nil {
		return err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		if r.URL.RawQuery != "" { // an option that is ignored gives an answer that looks right and is not
			return badRequest("%s takes its options in the body, not in the URL", r.URL.Path)
		}
		limit := int64(maxBody)
		if e.scope == access.ScopeWrite {
			limit = maxAnnotation
		}
		// The body is read before the turn comes, so that no slow sender keeps others waiting.
		received, err := intake.Reader{Memory: h.app.Memory(c.owner()), Limit: limit}.Read(w, r)
		defer received.Release()
		if err != nil {
			return err
		}
		if err := received.Weigh(r.Context(), received.Bytes); err != nil {
			return err
		}
		c.sent = received.Bytes
	}
	if e.reading != nil {
		over, ok := e.turns(h.app.Turns()).Take(r.Context(), c.key)
		if !ok {
			return &plugins.Error{
				Status: http.StatusTooManyRequests, RetryAfter: retryAfter,
				Message: "too many queries of this API key, or in all, are waiting; ask fewer at a time",
			}
		}
		defer over()
	}
	release := h.store.Hold()
	defer release()
	j, err := h.store.Journal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(h.Timeout))
	defer cancel()
	// The store opens in the background: a query that comes with the start waits.
	if err := j.Connected(ctx); ctx.Err() != nil {
		return err
	}
	c.ctx, c.journal = ctx, j
	if e.reading == nil || !e.long {
		return e.serve(c)
	}
	lowpriority.Run(func() { err = e.serve(c) })
	return err
}

// authorise finds the organisation whose records the caller may see, and whether with their
// content.
func (c *call) authorise(scope string) error {
	if scope == scopeNone {
		return nil
	}
	if c.AllowPublic && scope == access.ScopeMetrics && c.r.Header.Get("Authorization") == "" {
		c.org, c.content = stores.DefaultName, true
		return nil
	}
	key, refused := c.checker.Admit(c.r, scope, "Authorization")
	if refused != nil {
		refused.Message = refused.Code + ": " + refused.Message
		return refused
	}
	c.caller, c.org, c.key, c.content = key, key.Org(), key.Hash(), key.Allows(access.ScopeQuery)
	return nil
}

// owner returns whose memory the body of the request takes: that of the caller's organisation, ""
// without a key.
func (c *call) owner() string {
	if c.key == "" {
		return ""
	}
	return c.org
}

// retryAfter is when a client should ask again that came at a bad time.
const retryAfter = 5 * time.Second

// fail answers a failed call. Internals go to the log, not to the client.
func (h pathHandler) fail(w http.ResponseWriter, r *http.Request, err error) {
	refused, ok := errors.AsType[*plugins.Error](err)
	var wrong *storage.FilterError
	switch {
	case ok:
	case errors.As(err, &wrong):
		refused = &plugins.Error{Status: http.StatusBadRequest, Message: wrong.Error()}
	case errors.Is(err, storage.ErrTooManyGroups):
		refused = &plugins.Error{Status: http.StatusBadRequest, Message: storage.ErrTooManyGroups.Error()}
	case errors.Is(err, storage.ErrNotFound):
		refused = &plugins.Error{Status: http.StatusNotFound, Message: err.Error()}
	case r.Context().Err() != nil:
		return // nobody is there to answer
	case errors.Is(err, storage.ErrUnavailable), journal.Advice(err) != "":
		h.logger.Error("a query finds the store unavailable", zap.String("path", r.URL.Path), zap.Error(err))
		refused = &plugins.Error{Status: http.StatusServiceUnavailable, Message: "the store cannot be reached; try again later." + journal.Advice(err), RetryAfter: retryAfter}
	case errors.Is(err, context.DeadlineExceeded):
		refused = &plugins.Error{Status: http.StatusGatewayTimeout, Message: fmt.Sprintf("the query took longer than %s; narrow its filter", time.Duration(h.Timeout))}
	default:
		reference := uuid.NewString()
		h.logger.Error("query failed", zap.String("path", r.URL.Path), zap.String("reference", reference), zap.Error(err))
		refused = &plugins.Error{Status: http.StatusInternalServerError, Message: "the query failed; the log has the reason under reference " + reference}
	}
	apierror.SetHeader(w.Header(), refused)
	_ = apierror.Envelope{Error: &refused.Message}.Write(w, refused.Status) // a string always marshals
}

// ask answers the query that read makes of the body.
func ask[Q storage.Question[A], A any](c *call, read func(*body) Q) error {
	_, data, err := query(c, read)
	if err != nil {
		return err
	}
	return c.answer(apierror.Envelope{Data: data})
}

// answer writes an answer about many records. A client whose If-None-Match names the answer gets
// 304 instead, as for a GET: questions change nothing.
func (c *call) answer(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256(text))
	c.w.Header().Set("ETag", tag)
	if c.r.Header.Get("If-None-Match") == tag {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	apierror.WriteText(c.w, http.StatusOK, text)
	return nil
}

// query makes a query of the body, and answers both.
func query[Q storage.Question[A], A any](c *call, read func(*body) Q) (q Q, data A, err error) {
	b, err := c.body()
	if err != nil {
		return q, data, err
	}
	q = read(b)
	if err := b.finish(); err != nil {
		return q, data, err
	}
	data, err = q.Answer(c.ctx, c.journal.Backend())
	return q, data, err
}

// filter reads a field that holds a filter. Without it, everything matches. groups are the groups
// whose leaves the endpoint takes.
func (b *body) filter(field string, groups ...storage.Group) storage.Filter {
	f, err := b.call.parseFilter(b.json(field), field, groups...)
	if err != nil && *b.err == nil {
		*b.err = err
	}
	return f
}

// parseFilter reads a filter that is called name.
func (c *call) parseFilter(raw []byte, name string, groups ...storage.Group) (storage.Filter, error) {
	f, err := c.readFilter(raw, groups...)
	if errors.Is(err, errContent) {
		return nil, err
	}
	if err != nil {
		// The parser calls it filter, whatever it is called here.
		return nil, badRequest("%s%s", name, strings.TrimPrefix(err.Error(), "filter"))
	}
	for group := range storage.Groups(f) {
		if !slices.Contains(groups, group) {
			return nil, badRequest("%s: leaves of %s are not taken here, only those of %s", name, group, groups)
		}
	}
	return f, nil
}

// Routes implements paths.Router.
func (*Handler) Routes() (all []paths.Route) {
	for path, methods := range endpoints {
		for method := range methods {
			all = append(all, paths.Route{Method: method, Path: path})
		}
	}
	return all
}

// ServeHTTP answers the query endpoints and passes other paths on.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if strings.HasSuffix(r.URL.EscapedPath(), "/") { // some clients add one
		stripped, url := *r, *r.URL
		url.Path, url.RawPath = strings.TrimSuffix(url.Path, "/"), strings.TrimSuffix(url.RawPath, "/")
		stripped.URL = &url
		if _, pattern := h.mux.Handler(&stripped); pattern != "" {
			r = &stripped
		}
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		paths.Offer(r.Context(), slices.Collect(maps.Keys(endpoints)))
		return next.ServeHTTP(w, r)
	}
	h.mux.ServeHTTP(w, r)
	return nil
}
