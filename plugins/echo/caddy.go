package echo

import "github.com/caddyserver/caddy/v2"

func init() {
	caddy.RegisterModule(new(Provider))
}

// CaddyModule returns the Caddy module information.
func (*Provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.providers.echo",
		New: func() caddy.Module { return NewProvider() },
	}
}

var _ caddy.Module = (*Provider)(nil)
