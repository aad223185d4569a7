package cohere

import "github.com/caddyserver/caddy/v2"

func init() {
	caddy.RegisterModule(Provider{})
}

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.providers.cohere",
		New: func() caddy.Module { return new(Provider) },
	}
}

var _ caddy.Module = (*Provider)(nil)
