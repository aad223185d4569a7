package llmgateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// request is one request of a client. Every way into the gateway begins with it: it
// authenticates and identifies the caller, and reads the body within the memory that
// requests may take.
type request struct {
	h        *Handler
	w        http.ResponseWriter
	r        *http.Request
	ctx      context.Context // ends when the client leaves, or when the store closes
	dialect  plugins.Dialect // the client's dialect
	controls *control.Controls
	key      *access.Key    // of the caller
	limit    *llmapp.Budget // the limit that the caller set to its own calls; nil without a limit
	received intake.Body    // release gives its memory back
}

// admit authenticates the caller, and takes the control headers out of the request. The record
// gets the caller, and what the headers say.
func (q *request) admit(record *storage.Record) *plugins.Error {
	q.controls = control.Read(q.r.Header, q.h.site.App.Headers(), record)
	key, e := q.h.checker().Admit(q.r, access.ScopeGateway, keyFields(q.dialect)...)
	if e != nil {
		return e
	}
	if q.controls.Refused != nil {
		return q.controls.Refused
	}
	control.ReadEdge(q.r, "", record)
	key.Stamp(record)
	q.h.site.Stamp(record, key)
	q.key = key
	q.limit, e = money.CallerLimit(record.Org, q.controls.RateLimitPolicy)
	return e
}

// keyFields are the header fields in which clients of a dialect send their key: Authorization,
// and the field of Anthropic's or Azure's libraries.
func keyFields(d plugins.Dialect) []string {
	if isAnthropic(d) {
		return []string{"Authorization", "X-Api-Key"}
	}
	return []string{"Authorization", "Api-Key"}
}

// isAnthropic reports whether a dialect has Anthropic's headers and errors.
func isAnthropic(d plugins.Dialect) bool { return d == plugins.Messages || d == plugins.CountTokens }

// read reads a body of at most limit bytes, once there is memory for it.
func (q *request) read(limit int64) (err error) {
	q.received, err = q.intake(limit).Read(q.w, q.r)
	return err
}

// recheck returns the error of a request whose key has ended since it was admitted, else nil.
func (q *request) recheck(ctx context.Context) *plugins.Error {
	if err := q.h.site.App.Authenticator().Recheck(ctx, q.key); errors.Is(err, access.ErrUnknownKey) {
		return access.Ended()
	}
	return nil
}
