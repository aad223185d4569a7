package llmapp

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/masking"
)

// provisionMask reads what is masked of whom.
func (a *App) provisionMask() (err error) {
	secret := func(org string) ([]byte, error) {
		store, err := a.StoreOf(org)
		if err != nil {
			return nil, err
		}
		return a.Secret(store)
	}
	if a.maskers, err = masking.New(a.Mask, secret, a.bounded); err != nil {
		return a.At(err, "mask")
	}
	maskKeys := func(keys []*access.Key) error {
		for _, key := range keys {
			if err := key.ProvisionMask(); err != nil {
				return a.At(err, "key")
			}
			a.maskers.AddKey(key.Masker())
		}
		return nil
	}
	if err := maskKeys(a.Keys); err != nil {
		return err
	}
	for name, org := range sorted(a.Organisations) {
		if err := a.maskers.AddOrganisation(name, org.Mask); err != nil {
			return a.At(fmt.Errorf("org %s: %w", name, err), "org "+name, "mask")
		}
		if err := maskKeys(org.Keys); err != nil {
			return fmt.Errorf("org %s: %w", name, err)
		}
	}
	return nil
}

// Maskers returns what masks the records of organisations.
func (a *App) Maskers() *masking.Maskers { return a.maskers }

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
