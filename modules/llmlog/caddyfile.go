package llmlog

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/llmapp"
)

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_log [<matcher>] [<provider>] {
//		store <name>
//		org <name>
//		require_key
//		credentials platform
//		max_body <size>
//		omit request|response...
//		mask <kinds...> {
//			...
//		}
//		stream_usage on|off
//		errors pass
//		cache [<max_age>]
//		country_header <field>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		h.Provider = d.Val()
	}
	if d.NextArg() {
		return d.Errf("llm_log takes one provider, not '%s' too", d.Val())
	}
	return h.Options().Parse(d, "llm_log")
}

// Options are the handler's, which llm_proxy takes in its own block.
func (h *Handler) Options() directive.Options {
	return directive.Options{
		"store":          directive.Text(&h.Store),
		"org":            directive.Text(&h.Org),
		"require_key":    directive.Flag(&h.RequireKey),
		"credentials":    directive.Choice(&h.Credentials, credentialsPlatform),
		"max_body":       directive.Bytes(&h.MaxBody),
		"mask":           llmapp.MaskOption(&h.Mask),
		"omit":           directive.Choices(&h.Omit, "request", "response"),
		"stream_usage":   directive.Switch(&h.StreamUsage),
		"errors":         directive.Choice(&h.Errors, errorsPass),
		"cache":          cache.Option(&h.Cache),
		"country_header": directive.Text(&h.CountryHeader),
	}
}
