package vertex

import (
	"cmp"
	"errors"
	"net/url"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/plugins/module"
)

func init() {
	caddy.RegisterModule(Provider{})
}

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("vertex") }

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
	return module.Options(d, map[string]*string{"project": &v.Project, "location": &v.Location})
}

var (
	_ caddy.Module          = (*Provider)(nil)
	_ caddy.Provisioner     = (*Provider)(nil)
	_ caddy.Validator       = (*Provider)(nil)
	_ caddyfile.Unmarshaler = (*Provider)(nil)
)
