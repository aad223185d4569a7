package llmlog

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_log [<matcher>] [<provider>] {
//		store <name>
//		org <name>
//		require_key
//		max_body <size>
//		omit request|response...
//		stream_usage on|off
//		errors pass
//		country_header <field>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		h.Provider = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := h.unmarshalOption(d); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) unmarshalOption(d *caddyfile.Dispenser) error {
	switch option := d.Val(); option {
	case "store":
		return argument(d, &h.Store)
	case "org":
		return argument(d, &h.Org)
	case "country_header":
		return argument(d, &h.CountryHeader)
	case "require_key":
		if d.NextArg() {
			return d.ArgErr()
		}
		h.RequireKey = true
	case "max_body":
		var size string
		if err := argument(d, &size); err != nil {
			return err
		}
		n, err := humanize.ParseBytes(size)
		if err != nil || n == 0 || n > 1<<40 {
			return d.Errf("max_body %s: want a size like 8MiB", size)
		}
		h.MaxBody = int64(n)
	case "omit":
		sides := d.RemainingArgs()
		if len(sides) == 0 {
			return d.ArgErr()
		}
		for _, side := range sides {
			if side != "request" && side != "response" {
				return d.Errf("omit %s: want request or response", side)
			}
		}
		h.Omit = append(h.Omit, sides...)
	case "stream_usage":
		var state string
		if err := argument(d, &state); err != nil {
			return err
		}
		if state != "on" && state != "off" {
			return d.Errf("stream_usage %s: want on or off", state)
		}
		h.StreamUsage = state == "on"
	case "errors":
		if err := argument(d, &h.Errors); err != nil {
			return err
		}
		if h.Errors != errorsPass {
			return d.Errf("errors %s: want %s", h.Errors, errorsPass)
		}
	default:
		return d.Errf("unrecognized subdirective %s", option)
	}
	return nil
}

// argument reads the one argument of an option.
func argument(d *caddyfile.Dispenser, to *string) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	*to = d.Val()
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}
