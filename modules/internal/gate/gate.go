// Package gate checks API keys. Every handler uses it, so that a key has the same rights
// at each of them.
package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/identity"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
)

// Gate admits the keys of one store.
type Gate struct {
	App   *llmapp.App
	Store string // its name
}

// Admit returns the key in the first of the header fields that is there. An error
// is 401 for a key that is missing or unknown, 503 for a token whose issuer does not answer, 403 for one of another store
// (wrong_region) or without the scope (insufficient_scope).
func (g Gate) Admit(r *http.Request, scope string, fields ...string) (*llmapp.Key, *plugins.Error) {
	if key, ok := r.Context().Value(keyInContext{}).(*llmapp.Key); ok {
		return g.allow(key, scope)
	}
	for _, field := range fields {
		if value := r.Header.Get(field); value != "" {
			return g.Check(r.Context(), control.Bearer(value), scope)
		}
	}
	return nil, Missing(fields[0])
}

type keyInContext struct{}

// WithKey returns r for a caller who acts with key without sending it, such as a
// browser with a session. Admit takes it in place of a header.
func WithKey(r *http.Request, key *llmapp.Key) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), keyInContext{}, key))
}

// Check is Admit for a key that was sent in another way.
func (g Gate) Check(ctx context.Context, secret, scope string) (*llmapp.Key, *plugins.Error) {
	key, err := g.App.Authenticate(ctx, secret)
	switch {
	case err == nil:
		return g.allow(key, scope)
	case errors.Is(err, llmapp.ErrUnknownKey):
		return nil, denied(http.StatusUnauthorized, "invalid_api_key", "The API key is not known.")
	case errors.Is(err, llmapp.ErrKeysUnavailable):
		e := denied(http.StatusServiceUnavailable, "keys_unavailable", "The keys of the gateway cannot be read now.")
		e.Type, e.RetryAfter = "server_error", identityRetryAfter
		return nil, e
	case errors.Is(err, identity.ErrUnavailable):
		e := denied(http.StatusServiceUnavailable, "identity_unavailable", "The token cannot be verified now: its issuer does not answer.")
		e.Type, e.RetryAfter = "server_error", identityRetryAfter
		return nil, e
	}
	return nil, denied(http.StatusUnauthorized, "invalid_token", "The token is not accepted: "+err.Error()+".")
}

// identityRetryAfter is when a call should come back whose issuer does not answer.
const identityRetryAfter = 5 * time.Second

// allow returns the key if it belongs to the store and has the scope.
func (g Gate) allow(key *llmapp.Key, scope string) (*llmapp.Key, *plugins.Error) {
	switch {
	case key.Store() != g.Store:
		return nil, WrongRegion("key")
	case !key.Allows(scope):
		if scope == llmapp.ScopeMetrics {
			scope = llmapp.ScopeQuery // which most callers want
		}
		return nil, denied(http.StatusForbidden, "insufficient_scope", fmt.Sprintf("The API key lacks the scope %q.", scope))
	}
	return key, nil
}

// Missing is the error for a call without a key in the header field.
func Missing(field string) *plugins.Error {
	return denied(http.StatusUnauthorized, "missing_api_key", "An API key is required: send the header "+field+": Bearer YOUR_API_KEY.")
}

// WrongRegion is the error for a key, or an organisation, whose records live in
// another store than the one of this address.
func WrongRegion(what string) *plugins.Error {
	return denied(http.StatusForbidden, "wrong_region", "The "+what+" belongs to another region than this address.")
}

func denied(status int, code, message string) *plugins.Error {
	return &plugins.Error{Status: status, Type: "invalid_request_error", Code: code, Message: message}
}
