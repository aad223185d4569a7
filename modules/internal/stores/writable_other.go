//go:build !unix

package stores

// writable finds nothing where access is no matter of users and modes.
func writable(string) error { return nil }
