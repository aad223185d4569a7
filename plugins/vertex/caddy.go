package vertex

import (
	"cmp"
	"errors"
	"net/url"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() {
	caddy.RegisterModule(Provider{})
}

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.providers.vertex",
		New: func() caddy.Module { return new(Provider) },
	}
}

// Provision sets up the project and the location.
func (v *Provider) Provision(caddy.Context) error {
	repl := caddy.NewReplacer()
	v.Project = url.PathEscape(cmp.Or(repl.ReplaceAll(v.Project, ""), os.Getenv("GOOGLE_CLOUD_PROJECT")))
	v.Location = url.PathEscape(cmp.Or(repl.ReplaceAll(v.Location, ""), os.Getenv("GOOGLE_CLOUD_LOCATION"), "global"))
	return nil
}

// Validate makes sure that there is a project.
func (v *Provider) Validate() error {
	if v.Project == "" {
		return errors.New("set the project that pays, here or in GOOGLE_CLOUD_PROJECT")
	}
	return nil
}

// UnmarshalCaddyfile sets up the provider from Caddyfile tokens. Syntax:
//
//	vertex {
//		project  <id>
//		location <region>
//	}
func (v *Provider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the provider's name
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		option := map[string]*string{"project": &v.Project, "location": &v.Location}[d.Val()]
		if option == nil {
			return d.Errf("the provider vertex has no option '%s'", d.Val())
		}
		if *option != "" {
			return d.Errf("%s is set twice", d.Val())
		}
		if !d.AllArgs(option) {
			return d.ArgErr()
		}
	}
	return nil
}

var (
	_ caddy.Module          = (*Provider)(nil)
	_ caddy.Provisioner     = (*Provider)(nil)
	_ caddy.Validator       = (*Provider)(nil)
	_ caddyfile.Unmarshaler = (*Provider)(nil)
)
