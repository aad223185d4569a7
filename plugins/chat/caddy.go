package chat

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/plugins/module"
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
	return module.Options(d, map[string]*string{"api_version": &z.APIVersion})
}

var (
	_ caddy.Module          = (*Provider)(nil)
	_ caddy.Module          = (*Azure)(nil)
	_ caddyfile.Unmarshaler = (*Azure)(nil)
)
