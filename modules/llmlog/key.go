package llmlog

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/plugins"
)

// keyFields are the header fields in which the libraries of vendors send a key.
var keyFields = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}

// authenticate returns the key of the call, nil if there is none.
func (h *Handler) authenticate(r *http.Request, c *control.Controls) (*access.Key, *plugins.Error) {
	if h.Credentials != "" {
		return h.keyOfCaller(r, c)
	}
	field := h.removeKeys(r)
	switch {
	case field != "" && !c.Keyed:
		return nil, plugins.Rejected(http.StatusUnauthorized, "misplaced_api_key",
			"%s has a key of Weir, which this proxy does not send to the provider. Send it as Service-Auth, beside a key of the provider, or call the gateway at /v1 with it.", field)
	case field != "":
		c.Warn(field, "a key of Weir, removed")
	case !c.Keyed:
		if h.RequireKey {
			return nil, access.Missing("Service-Auth")
		}
		return nil, nil
	}
	key, err := h.checker.Check(r, c.Secret, access.ScopeLog)
	if err == nil && !key.MayCall(h.Provider, "") { // the model is not known before the call passes
		err = access.NotAllowed("models through this proxy")
	}
	return key, err
}

// removeKeys removes keys of Weir from where keys of providers stand, so that no provider gets them.
// field is the last of these places, "" if there is none.
func (h *Handler) removeKeys(r *http.Request) (field string) {
	keys := h.checker.Keys
	for _, name := range keyFields {
		for _, value := range r.Header[name] {
			if keys.Knows(r.Context(), control.Bearer(value)) {
				r.Header.Del(name)
				field = name
				break
			}
		}
	}
	if r.URL.RawQuery == "" {
		return field
	}
	if query := r.URL.Query(); query.Has("key") && keys.Knows(r.Context(), query.Get("key")) { // as for Gemini
		query.Del("key")
		r.URL.RawQuery, field = query.Encode(), "key"
	}
	return field
}

// keyOfCaller returns the key of a call that Weir pays for. The libraries of vendors send
// the key of Weir where they send that of the vendor.
func (h *Handler) keyOfCaller(r *http.Request, c *control.Controls) (*access.Key, *plugins.Error) {
	if c.Keyed {
		return h.checker.Check(r, c.Secret, access.ScopeGateway)
	}
	if key := r.URL.Query().Get("key"); key != "" && r.Header.Get("X-Goog-Api-Key") == "" {
		r.Header.Set("X-Goog-Api-Key", key)
	}
	return h.checker.Admit(r, access.ScopeGateway, keyFields...)
}

// watchKey ends a WebSocket whose key has ended, by cancel. ctx ends with the WebSocket.
func (h *Handler) watchKey(ctx context.Context, key *access.Key, cancel func()) {
	again := time.NewTicker(access.RecheckInterval)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if errors.Is(h.site.App.Authenticator().Recheck(ctx, key), access.ErrUnknownKey) {
				cancel()
				return
			}
		}
	}
}
