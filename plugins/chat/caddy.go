package chat

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() {
	for i := range vendors {
		switch v := &vendors[i]; v.name {
		case "openai": // whose module speaks Responses first
		case "azure":
			caddy.RegisterModule(&Azure{Provider: Provider{v}})
		default:
			caddy.RegisterModule(&Provider{v})
		}
	}
}

// CaddyModule returns the Caddy module information.
func (p *Provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  caddy.ModuleID("llm.providers." + p.vendor.name),
		New: func() caddy.Module { return &Provider{p.vendor} },
	}
}

// CaddyModule returns the Caddy module information.
func (z *Azure) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.providers.azure",
		New: func() caddy.Module { return &Azure{Provider: Provider{z.vendor}} },
	}
}

// UnmarshalCaddyfile sets up the provider from Caddyfile tokens. Syntax:
//
//	azure {
//		api_version <version>
//	}
func (z *Azure) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the provider's name
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		switch d.Val() {
		case "api_version":
			if !d.AllArgs(&z.APIVersion) {
				return d.ArgErr()
			}
		default:
			return d.Errf("the provider azure has no option '%s'", d.Val())
		}
	}
	return nil
}

var (
	_ caddy.Module          = (*Provider)(nil)
	_ caddy.Module          = (*Azure)(nil)
	_ caddyfile.Unmarshaler = (*Azure)(nil)
)
