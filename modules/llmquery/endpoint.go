package llmquery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// endpoint is one method on one path.
type endpoint struct {
	method string
	scope  string
	serve  func(*call) error
}

// endpoints are all of them, by their http.ServeMux pattern.
var endpoints = map[string]endpoint{
	"/v1/request/query-clickhouse": {http.MethodPost, llmapp.ScopeQuery, queryRequestsBulk},
	"/v1/request/query":            {http.MethodPost, llmapp.ScopeQuery, queryRequests},
	"/v1/request/{id}":             {http.MethodGet, llmapp.ScopeQuery, getRequest},
}

// maxBody bounds the body of a query (decisions: 413 over 1 MiB).
const maxBody = 1 << 20

// call is one authorised call of an endpoint.
type call struct {
	ctx     context.Context
	w       http.ResponseWriter
	r       *http.Request
	org     string
	journal *journal.Journal
}

// problem is an answer other than success.
type problem struct {
	status  int
	message string
	header  http.Header
}

func (p *problem) Error() string { return p.message }

func badRequest(format string, args ...any) error {
	return &problem{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// endpointHandler does for every endpoint what all have in common.
type endpointHandler struct {
	*Handler
	endpoint
}

func (h endpointHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.answer(w, r); err != nil {
		h.fail(w, r, err)
	}
}

func (h endpointHandler) answer(w http.ResponseWriter, r *http.Request) error {
	if r.Method != h.method {
		return &problem{
			status:  http.StatusMethodNotAllowed,
			message: fmt.Sprintf("%s takes %s, not %s", r.URL.Path, h.method, r.Method),
			header:  http.Header{"Allow": {h.method}},
		}
	}
	org, err := h.authorise(r)
	if err != nil {
		return err
	}
	release := h.store.Hold()
	defer release()
	j, err := h.store.Journal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(h.Timeout))
	defer cancel()
	return h.serve(&call{ctx: ctx, w: w, r: r, org: org, journal: j})
}

// authorise returns the organisation whose records the caller may see.
func (h endpointHandler) authorise(r *http.Request) (org string, err error) {
	header := r.Header.Get("Authorization")
	if header == "" && h.AllowPublic {
		return llmapp.DefaultName, nil
	}
	unauthorized := func(message string) error {
		return &problem{http.StatusUnauthorized, message, http.Header{"Www-Authenticate": {`Bearer realm="weir"`}}}
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", unauthorized("an API key is required: send Authorization: Bearer <API key>")
	}
	key, ok := h.app.Authenticate(secret)
	if !ok || key.Store() != h.Store {
		return "", unauthorized("the API key is not known here")
	}
	if !key.Allows(h.scope) {
		return "", &problem{status: http.StatusForbidden, message: fmt.Sprintf("the API key lacks the scope %q", h.scope)}
	}
	return key.Org(), nil
}

// fail answers a failed call, telling internals to nobody but the log.
func (h endpointHandler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p *problem
	var filter *storage.FilterError
	switch {
	case errors.As(err, &p):
	case errors.As(err, &filter):
		p = &problem{status: http.StatusBadRequest, message: filter.Error()}
	case errors.Is(err, storage.ErrNotFound):
		p = &problem{status: http.StatusNotFound, message: err.Error()}
	case r.Context().Err() != nil:
		return // nobody is there to answer
	case errors.Is(err, context.DeadlineExceeded):
		p = &problem{status: http.StatusGatewayTimeout, message: fmt.Sprintf("the query took longer than %s; narrow its filter", time.Duration(h.Timeout))}
	default:
		reference := uuid.NewString()
		h.logger.Error("query failed", zap.String("path", r.URL.Path), zap.String("reference", reference), zap.Error(err))
		p = &problem{status: http.StatusInternalServerError, message: "the query failed; the log has the reason under reference " + reference}
	}
	for name, values := range p.header {
		w.Header()[name] = values
	}
	writeError(w, p.status, p.message)
}

// body reads the body of a call.
func (c *call) body() (*body, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &problem{status: http.StatusRequestEntityTooLarge, message: "the body is longer than 1 MiB"}
	}
	if err != nil {
		return nil, badRequest("the body broke off")
	}
	return parseBody(raw)
}

// warn adds a line to the Service-Warnings of the answer.
func (c *call) warn(format string, args ...any) {
	c.w.Header().Add("Service-Warnings", fmt.Sprintf(format, args...))
}
