package llmquery

import (
	"context"

	"github.com/weirhq/weir/modules/llmapp"
)

// Page asks for a page of a stream, for the key "key".
func Page(ctx context.Context, app *llmapp.App) error {
	c := &call{Handler: &Handler{app: app}, ctx: ctx, key: "key"}
	_, err := c.page(nil)
	return err
}

// Scopes are the scopes that the endpoints want, by method and path.
func Scopes() map[string]string {
	scopes := make(map[string]string)
	for path, methods := range endpoints {
		for method, e := range methods {
			scopes[method+" "+path] = e.scope
		}
	}
	return scopes
}
