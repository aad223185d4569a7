package llmapp

import (
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// httpServers returns the servers of the app http by their names, none if it is not configured.
func httpServers(ctx caddy.Context) (map[string]*caddyhttp.Server, error) {
	loaded, err := ctx.AppIfConfigured("http")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return loaded.(*caddyhttp.App).Servers, nil
}
