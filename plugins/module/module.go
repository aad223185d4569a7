// Package module makes Caddy modules of the providers of models. The contract of
// a provider, package translate, does not depend on Caddy.
package module

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Info describes the module "llm.providers.<name>", whose new instances are zero
// values of P.
func Info[P any, M interface {
	*P
	caddy.Module
}](name string) caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  caddy.ModuleID("llm.providers." + name),
		New: func() caddy.Module { return M(new(P)) },
	}
}

// Options reads the block of a provider, in which each option has one value, into
// the variables in options. An unknown option and one that is set twice are
// errors.
func Options(d *caddyfile.Dispenser, options map[string]*string) error {
	d.Next()
	name := d.Val()
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		value, known := options[d.Val()]
		switch {
		case !known:
			return d.Errf("the provider %s has no option '%s'", name, d.Val())
		case *value != "":
			return d.Errf("%s is set twice", d.Val())
		case !d.AllArgs(value):
			return d.ArgErr()
		}
	}
	return nil
}
