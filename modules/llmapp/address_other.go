//go:build !linux

package llmapp

// claimAddresses does nothing where there are no abstract Unix sockets.
func (*App) claimAddresses() error { return nil }

func (*App) releaseAddresses() {}

// ClaimAddress does nothing where there are no abstract Unix sockets.
func ClaimAddress(string) error { return nil }
