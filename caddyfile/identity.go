package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/llmapp"
)

// parseIdentity reads whom an issuer's tokens admit. parseApp has the syntax.
func parseIdentity(to *[]*llmapp.Identity) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) != 2 || args[0] != "jwt" {
			return d.Err("identity takes jwt and the URL of an issuer, as in `identity jwt https://login.example.com`")
		}
		i := &llmapp.Identity{Issuer: args[1]}
		set := directive.Options{
			"audience":      directive.Texts(&i.Audiences),
			"require":       func(d *caddyfile.Dispenser) error { return parseRequire(d, i) },
			"org":           directive.Text(&i.OrgClaim),
			"user":          directive.Text(&i.UserClaim),
			"project":       directive.Text(&i.ProjectClaim),
			"scopes":        directive.Texts(&i.Scopes),
			"members":       directive.Flag(&i.Members),
			"trust_email":   directive.Flag(&i.TrustEmail),
			"client_id":     directive.Text(&i.ClientID),
			"client_scopes": directive.Texts(&i.ClientScopes),
			"role":          func(d *caddyfile.Dispenser) error { return parseRole(d, i) },
		}
		if err := set.Parse(d, "identity"); err != nil {
			return err
		}
		if err := i.Check(); err != nil {
			return d.WrapErr(err)
		}
		*to = append(*to, i)
		return nil
	}
}

func parseRequire(d *caddyfile.Dispenser, i *llmapp.Identity) error {
	args := d.RemainingArgs()
	if len(args) < 2 {
		return d.Err("require takes a claim and the values that are accepted, as in `require repository_owner acme`")
	}
	if i.Require[args[0]] != nil {
		return d.Errf("require %s is given twice: put all of its values into one line", args[0])
	}
	if i.Require == nil {
		i.Require = make(map[string][]string)
	}
	i.Require[args[0]] = args[1:]
	return nil
}

func parseRole(d *caddyfile.Dispenser, i *llmapp.Identity) error {
	args := d.RemainingArgs()
	if len(args) < 3 {
		return d.Err("role takes a claim, its value, and the scopes that it gives, as in `role groups llm-admins query write`")
	}
	i.Roles = append(i.Roles, llmapp.Role{Claim: args[0], Value: args[1], Scopes: args[2:]})
	return nil
}
