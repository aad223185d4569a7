// Package acme lets Weir call the models of Acme, a vendor that does not exist:
// it shows what a provider looks like that lives in a repository of its own.
package acme

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/translate"
)

func init() {
	caddy.RegisterModule(Provider{})
}

// Provider speaks Acme's API: text, functions and custom tools, in streams and
// objects.
type Provider struct {
	// Project is the one in Acme's account that calls are charged to. Default:
	// the account's own.
	Project string `json:"project,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.providers.acme",
		New: func() caddy.Module { return new(Provider) },
	}
}

// UnmarshalCaddyfile sets up the provider from what its block has beside the
// options of every provider. Syntax:
//
//	acme {
//		project <name>
//	}
func (p *Provider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the kind
	for d.NextBlock(0) {
		switch d.Val() {
		case "project":
			if !d.AllArgs(&p.Project) {
				return d.ArgErr()
			}
		default:
			return d.Errf("the provider acme has no option '%s'", d.Val())
		}
	}
	return nil
}

// Prepare implements translate.Provider.
func (p Provider) Prepare(ctx context.Context, r *translate.Request, t translate.Target) (*http.Request, error) {
	body, err := newRequest(r, t.Model)
	if err != nil {
		return nil, err
	}
	req, err := t.Post(ctx, "/generate", "Acme-Key", body)
	if err == nil && p.Project != "" {
		req.Header.Set("Acme-Project", p.Project)
	}
	return req, err
}

// Interface guards
var (
	_ llmapp.API            = (*Provider)(nil)
	_ caddyfile.Unmarshaler = (*Provider)(nil)
)
