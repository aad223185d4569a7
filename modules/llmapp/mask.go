package llmapp

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/mask"
)

// MaskOption parses `mask` of a Caddyfile.
func MaskOption(to *[]*mask.Rule) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		rule := new(mask.Rule)
		if err := directive.Texts(&rule.Kinds)(d); err != nil {
			return err
		}
		set := directive.Options{
			"as":       directive.Choice(&rule.As, mask.AsMask, mask.Pseudonym),
			"on_match": directive.Choice(&rule.OnMatch, mask.Store, mask.Refuse),
			"pattern":  directive.Texts(&rule.Patterns),
			"words":    directive.Texts(&rule.Words),
		}
		line := d.Token()
		if err := set.Parse(d, "mask"); err != nil {
			return err
		}
		if _, err := mask.New([]*mask.Rule{rule}); err != nil {
			return fmt.Errorf("%w, at %s:%d", err, line.File, line.Line)
		}
		*to = append(*to, rule)
		return nil
	}
}
