//go:build !linux

package llmapp

import "github.com/caddyserver/caddy/v2"

// addressClaims is empty where there are no abstract Unix sockets.
type addressClaims struct{}

func (addressClaims) claimSites(caddy.Context) error { return nil }

func (addressClaims) release() {}

// ClaimAddress does nothing where there are no abstract Unix sockets.
func ClaimAddress(string) error { return nil }
