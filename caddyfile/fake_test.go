package caddyfile_test

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
)

func init() {
	caddy.RegisterModule(new(fakeProvider))
	caddy.RegisterModule(optionless{})
	caddy.RegisterModule(new(fakeShared))
}

// fakeProvider is a kind of provider with a setting of its own.
type fakeProvider struct {
	Region string `json:"region,omitempty"`
}

func (*fakeProvider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.fake", New: func() caddy.Module { return new(fakeProvider) }}
}

func (p *fakeProvider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume kind
	for d.NextBlock(0) {
		if d.Val() != "region" {
			return d.Errf("unrecognized fake option '%s'", d.Val())
		}
		if !d.AllArgs(&p.Region) {
			return d.ArgErr()
		}
	}
	return nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*fakeProvider)(nil)

// optionless is a kind of provider without settings of its own.
type optionless struct{}

func (optionless) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.optionless", New: func() caddy.Module { return new(optionless) }}
}

// fakeShared shares nothing, at an address.
type fakeShared struct {
	URL       string `json:"url,omitempty"`
	Allowance string `json:"allowance,omitempty"`
}

func (*fakeShared) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.shared.fake", New: func() caddy.Module { return new(fakeShared) }}
}

func (s *fakeShared) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&s.URL) {
		return d.ArgErr()
	}
	return directive.Options{"allowance": directive.Text(&s.Allowance)}.Parse(d, "fake")
}
