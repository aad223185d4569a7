package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/llmapp"
)

// parseBill parses the bill of a provider. Syntax:
//
//	bill <name> [<provider>] {
//		admin_key <placeholder>
//		files     <paths...>
//		url       <url>
//		key       <id> [<label>]
//		model     <name> <model>
//	}
func parseBill(to *[]*llmapp.Bill) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) != 1 && len(args) != 2 {
			return d.Err("bill takes a provider, or a name and a provider, as in `bill openai` or `bill eu openai`")
		}
		b := &llmapp.Bill{Name: args[0], Provider: args[len(args)-1]}
		*to = append(*to, b)
		return directive.Options{
			"admin_key": directive.Text(&b.AdminKey),
			"files":     directive.Texts(&b.Files),
			"url":       directive.Text(&b.URL),
			"key":       parsePair(&b.Keys, 1, "key takes the provider's id of a key or project, and the label of the provider that has it if there are several, as in `key key_8f2 eu`"),
			"model":     parsePair(&b.Models, 2, "model takes a name of the bill and the model that it stands for, as in `model \"Claude 4 Sonnet\" anthropic.claude-sonnet-4`"),
		}.Parse(d, "bill")
	}
}

// parsePair reads a name and its value, which may be missing if least is 1.
func parsePair(to *map[string]string, least int, usage string) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) < least || len(args) > 2 {
			return d.Err(usage)
		}
		if *to == nil {
			*to = make(map[string]string)
		}
		(*to)[args[0]] = append(args, "")[1]
		return nil
	}
}
