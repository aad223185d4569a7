package llmadmin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage/control"
)

// AdminKeyRequest is the body of a POST to /llm/keys/admin.
type AdminKeyRequest struct {
	// Org is the organisation that the key administers. Default: `default`.
	Org string `json:"org"`
	// First creates the key only if no key administers the organisation; if one does, the answer is empty.
	First bool `json:"first"`
}

// AdminKey is the answer. Only this answer has the secret: the store keeps its hash.
type AdminKey struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// allScopes are those of whoever administers alone: keys with fewer are for others.
var allScopes = []string{access.ScopeAdmin, access.ScopeQuery, access.ScopeWrite, access.ScopeGateway, access.ScopeLog}

// createAdminKey creates a key with all scopes. Who reaches the admin endpoint can load any
// configuration, and so needs no key for this: it is how the first administrator gets one, and
// whoever has lost theirs.
func createAdminKey(w http.ResponseWriter, r *http.Request) error {
	var request AdminKeyRequest
	app, err := readJSON(w, r, &request)
	if err != nil {
		return err
	}
	name := cmp.Or(request.Org, stores.DefaultName)
	if app.Organisation(name) == nil {
		return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("no organisation %q is configured", name)}
	}
	store, err := app.StoreOf(name)
	if err != nil {
		return err
	}
	defer store.Hold()()
	log, err := store.Control()
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: fmt.Errorf("store %s: %w", store.Name(), err)}
	}
	org := &control.Organisation{Log: log, Name: name, By: control.Actor{Key: "admin endpoint", Address: r.RemoteAddr}}
	if request.First {
		administered, err := isAdministered(r.Context(), app, org)
		if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
		}
		if administered {
			return apierror.WriteJSON(w, http.StatusOK, AdminKey{})
		}
	}
	k, secret, err := org.CreateKey(r.Context(), control.Settings{Name: "administrator", Scopes: allScopes})
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
	}
	return apierror.WriteJSON(w, http.StatusOK, AdminKey{ID: k.ID, Name: k.Name, Secret: secret})
}

// isAdministered reports whether a key administers the organisation.
func isAdministered(ctx context.Context, app *llmapp.App, org *control.Organisation) (bool, error) {
	if slices.ContainsFunc(app.Organisation(org.Name).Keys, func(k *access.Key) bool { return k.Allows(access.ScopeAdmin) }) {
		return true, nil
	}
	created, err := control.All[control.Key](ctx, org, control.Page{List: control.OfScope(access.ScopeAdmin), Limit: 1})
	return len(created) > 0, err
}
