package access

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirhq/weir/modules/internal/access/identity"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/journal"
)

// Checker admits the keys of one store.
type Checker struct {
	Keys  *Authenticator
	Store string // its name
}

// Admit returns the key in the first of the header fields that is there. An error
// is 401 for a key that is missing or unknown, 503 for a token whose issuer does not answer,
// 403 for a key of another store (wrong_region) or without the scope (insufficient_scope).
func (c Checker) Admit(r *http.Request, scope string, fields ...string) (*Key, *plugins.Error) {
	if key, ok := r.Context().Value(keyInContext{}).(*Key); ok {
		return c.allow(key, scope)
	}
	for _, field := range fields {
		if value := r.Header.Get(field); value != "" {
			return c.Check(r, control.Bearer(value), scope)
		}
	}
	return nil, Missing(fields[0])
}

type keyInContext struct{}

// WithKey returns r for a caller who acts with key without sending it, such as a
// browser with a session. Admit takes it in place of a header.
func WithKey(r *http.Request, key *Key) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), keyInContext{}, key))
}

// Check is Admit for a key that was sent in another way.
func (c Checker) Check(r *http.Request, secret, scope string) (*Key, *plugins.Error) {
	key, err := c.Keys.Authenticate(r.Context(), secret)
	switch {
	case err == nil:
		return c.allow(key, scope)
	case errors.Is(err, ErrUnknownKey):
		return nil, plugins.Rejected(http.StatusUnauthorized, "invalid_api_key", "The API key is not known, has expired, or is disabled.")
	case errors.Is(err, ErrKeysUnavailable):
		return nil, plugins.Unavailable("keys_unavailable", retryAfter, "The keys of the gateway cannot be read now."+journal.Advice(err))
	case errors.Is(err, identity.ErrUnavailable):
		return nil, plugins.Unavailable("identity_unavailable", retryAfter, "The token cannot be verified now: its issuer does not answer.")
	}
	if expired, ok := errors.AsType[*ExpiredError](err); ok {
		remedy := "get a new one from its issuer"
		if expired.Renewable {
			remedy = "run `weir login " + paths.Site(r) + "`, or get a new one from its issuer"
		}
		return nil, plugins.Rejected(http.StatusUnauthorized, "invalid_token", "The token is not accepted, because %v: %s.", err, remedy)
	}
	return nil, plugins.Rejected(http.StatusUnauthorized, "invalid_token", "The token is not accepted: %v.", err)
}

// retryAfter is when a call should come back whose key cannot be checked now.
const retryAfter = 5 * time.Second

// allow returns the key if it belongs to the store and has the scope.
func (c Checker) allow(key *Key, scope string) (*Key, *plugins.Error) {
	switch {
	case key.Store() != c.Store:
		return nil, WrongRegion("key")
	case !key.Allows(scope):
		if scope == ScopeMetrics {
			scope = ScopeQuery // which most callers want
		}
		return nil, plugins.Rejected(http.StatusForbidden, "insufficient_scope", "The API key lacks the scope %q.", scope)
	}
	return key, nil
}

// Missing is the error for a call without a key in the header field.
func Missing(field string) *plugins.Error {
	return plugins.Rejected(http.StatusUnauthorized, "missing_api_key", "An API key is required: send the header %s: Bearer YOUR_API_KEY.", field)
}

// WrongRegion is the error for a key, or an organisation, whose records live in
// another store than the one of this address.
func WrongRegion(what string) *plugins.Error {
	return plugins.Rejected(http.StatusForbidden, "wrong_region", "The %s belongs to another region than this address.", what)
}

// Ended is the error for a key or a token that has ended since its call, or its WebSocket, began.
func Ended() *plugins.Error {
	return plugins.Rejected(http.StatusUnauthorized, "invalid_api_key", "The API key, or the token, has ended: connect again with a new one.")
}

// NotAllowed is the error for a key that may not call a model or a provider.
func NotAllowed(name string) *plugins.Error {
	return plugins.Rejected(http.StatusForbidden, "model_not_allowed", "The API key may not call %s. GET /v1/key tells what it may call.", name)
}
