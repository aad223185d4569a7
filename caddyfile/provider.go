package caddyfile

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
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
//		tags      <attributes...>
//		transport <name> {
//			...
//		}
//		<the kind's own subdirectives>
//	}
func parseProvider(to *[]*llmapp.Provider, own bool) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		line, args := d.Token(), d.RemainingArgs()
		if len(args) == 0 || len(args) > 2 {
			return d.Err("provider takes a label, and a kind if the label is none, as in `provider lab vllm`")
		}
		p := &llmapp.Provider{Label: args[0]}
		if slices.ContainsFunc(*to, func(other *llmapp.Provider) bool { return other.Label == p.Label }) {
			return d.Errf("provider %s is given twice; give one of them a label of its own, as in `provider second openai`", p.Label)
		}
		kind := args[len(args)-1]
		id := "llm.providers." + kind
		inherits := own && len(args) == 1
		if !isModule(id) && !inherits {
			return d.Errf("provider %s: '%s' is no kind of provider; the kinds are %s", p.Label, kind, strings.Join(modules("llm.providers"), ", "))
		}
		set := directive.Options{
			"base_url":  directive.Text(&p.BaseURL),
			"api_key":   directive.Text(&p.APIKey),
			"models":    directive.Texts(&p.Models),
			"tags":      directive.Texts(&p.Tags),
			"transport": func(d *caddyfile.Dispenser) error { return parseTransport(d, p) },
		}
		module, err := parseModule(d, set, "provider "+p.Label, line, []string{kind}, id)
		switch {
		case err != nil:
			return err
		case module != nil:
			p.APIRaw = caddyconfig.JSONModuleObject(module, "kind", kind, nil)
		case !inherits:
			p.APIRaw = caddyconfig.JSON(map[string]string{"kind": kind}, nil)
		}
		if err := p.Check(); err != nil {
			at := caddyfile.NewDispenser([]caddyfile.Token{line})
			at.Next()
			return at.Errf("provider %s: %v", p.Label, err)
		}
		*to = append(*to, p)
		return nil
	}
}

func parseTransport(d *caddyfile.Dispenser, p *llmapp.Provider) error {
	if p.TransportRaw != nil {
		return d.Err("transport is given twice")
	}
	if !d.NextArg() {
		return d.Err("transport takes the name of one, as in `transport http`")
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
