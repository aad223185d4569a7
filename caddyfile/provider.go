package caddyfile

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/modules/llmapp"
)

// parseProvider parses a provider. What its block has beyond the options of
// every provider is its kind's, which reads it as if it stood in a block of its
// own. An organisation's provider may leave its kind open: it inherits it then.
// Syntax:
//
//	provider <label> [<kind>] {
//		base_url  <url>
//		api_key   <secret>
//		models    <models...>
//		transport <name> {
//			...
//		}
//		<the kind's own subdirectives>
//	}
func parseProvider(d *caddyfile.Dispenser, own bool) (*llmapp.Provider, error) {
	line := d.Token()
	p := new(llmapp.Provider)
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return nil, d.ArgErr()
	}
	p.Label = args[0]
	kind := args[len(args)-1]
	inherits := own && len(args) == 1

	var guest []caddyfile.Token
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "base_url":
			if !d.AllArgs(&p.BaseURL) {
				return nil, d.ArgErr()
			}
		case "api_key":
			if !d.AllArgs(&p.APIKey) {
				return nil, d.ArgErr()
			}
		case "models":
			models := d.RemainingArgs()
			if len(models) == 0 {
				return nil, d.ArgErr()
			}
			p.Models = append(p.Models, models...)
		case "transport":
			if err := parseTransport(d, p); err != nil {
				return nil, err
			}
		default:
			guest = append(guest, d.NextSegment()...)
		}
	}
	if inherits && guest == nil {
		return p, nil
	}

	module, err := caddy.GetModule("llm.providers." + kind)
	if err != nil {
		return nil, d.Errf("unknown kind of provider '%s'", kind)
	}
	if guest == nil {
		p.APIRaw = caddyconfig.JSON(map[string]string{"kind": kind}, nil)
		return p, nil
	}
	if _, ok := module.New().(caddyfile.Unmarshaler); !ok {
		unknown := caddyfile.NewDispenser(guest)
		unknown.Next()
		return nil, unknown.Errf("the provider %s has no option '%s'", kind, unknown.Val())
	}
	dispenser := segment(line, []string{kind}, guest)
	dispenser.Next()
	guestModule, err := caddyfile.UnmarshalModule(dispenser, string(module.ID))
	if err != nil {
		return nil, err
	}
	p.APIRaw = caddyconfig.JSONModuleObject(guestModule, "kind", kind, nil)
	return p, nil
}

func parseTransport(d *caddyfile.Dispenser, p *llmapp.Provider) error {
	if p.TransportRaw != nil {
		return d.Err("transport is configured already")
	}
	if !d.NextArg() {
		return d.ArgErr()
	}
	name := d.Val()
	module, err := caddyfile.UnmarshalModule(d, "http.reverse_proxy.transport."+name)
	if err != nil {
		return err
	}
	if _, ok := module.(http.RoundTripper); !ok {
		return d.Errf("module %s is no transport", name)
	}
	p.TransportRaw = caddyconfig.JSONModuleObject(module, "protocol", name, nil)
	return nil
}

// parseAlias parses a name and the models that it stands for.
func parseAlias(d *caddyfile.Dispenser, app *llmapp.App) error {
	args := d.RemainingArgs()
	if len(args) < 2 {
		return d.ArgErr()
	}
	if _, ok := app.Aliases[args[0]]; ok {
		return d.Errf("alias %s is configured already", args[0])
	}
	if app.Aliases == nil {
		app.Aliases = make(map[string][]string)
	}
	app.Aliases[args[0]] = args[1:]
	return nil
}
