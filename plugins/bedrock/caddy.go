package bedrock

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/plugins/module"
)

func init() {
	caddy.RegisterModule(new(Provider))
}

// CaddyModule returns the Caddy module information.
func (*Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("bedrock") }

// Provision finds the region and the credentials. An access key that is set but
// turns out empty is an error, for AWS's own would take its place.
func (b *Provider) Provision(ctx caddy.Context) error {
	repl, id := caddy.NewReplacer(), b.AccessKeyID
	for _, field := range []*string{&b.Region, &b.AccessKeyID, &b.SecretAccessKey, &b.SessionToken, &b.Role} {
		*field = repl.ReplaceAll(*field, "")
	}
	if id != "" && b.AccessKeyID == "" {
		return fmt.Errorf("access_key_id: %s is empty", id)
	}
	return b.configure(ctx)
}

// UnmarshalCaddyfile sets up the provider from Caddyfile tokens. Syntax:
//
//	bedrock {
//		region            <region>
//		access_key_id     <id>
//		secret_access_key <secret>
//		session_token     <token>
//		role              <arn>
//	}
func (b *Provider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return module.Options(d, map[string]*string{
		"region":            &b.Region,
		"access_key_id":     &b.AccessKeyID,
		"secret_access_key": &b.SecretAccessKey,
		"session_token":     &b.SessionToken,
		"role":              &b.Role,
	})
}

var (
	_ caddy.Module          = (*Provider)(nil)
	_ caddy.Provisioner     = (*Provider)(nil)
	_ caddyfile.Unmarshaler = (*Provider)(nil)
)
