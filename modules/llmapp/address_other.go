//go:build !linux

package llmapp

import "github.com/caddyserver/caddy/v2"

// claimed is empty where there are no abstract Unix sockets.
type claimed struct{}

func (claimed) claimSites(caddy.Context) error { return nil }

func (claimed) release() {}

// ClaimAddress does nothing where there are no abstract Unix sockets.
func ClaimAddress(string) error { return nil }
