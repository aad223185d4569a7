package gemini

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() {
	caddy.RegisterModule(Provider{})
}

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.providers.gemini",
		New: func() caddy.Module { return new(Provider) },
	}
}

// UnmarshalCaddyfile sets up the provider from Caddyfile tokens. It has no
// options of its own. Syntax:
//
//	gemini
func (*Provider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the provider's name
	if d.NextArg() {
		return d.ArgErr()
	}
	if d.NextBlock(0) {
		return d.Errf("the provider gemini has no option '%s'", d.Val())
	}
	return nil
}

var (
	_ caddy.Module          = (*Provider)(nil)
	_ caddyfile.Unmarshaler = (*Provider)(nil)
)
