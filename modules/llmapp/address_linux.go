package llmapp

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"syscall"

	"github.com/caddyserver/caddy/v2"
)

// claims are the addresses that this process serves, counted over all
// configurations: one that reloads has the address of the one before.
var claims = caddy.NewUsagePool()

// addressClaims are the addresses, host:port, that a configuration serves.
type addressClaims []string

// claimSites makes sure that no other Weir serves an address of the sites.
// Caddy listens with SO_REUSEPORT, with which the kernel spreads the connections of
// one address over all processes that ask for it, without an error. A claim is an
// abstract Unix socket: only one process can bind a name, it is gone with the
// process, and it is seen as far as the address is, which is the network namespace.
func (c *addressClaims) claimSites(ctx caddy.Context) error {
	servers, err := httpServers(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		for _, listen := range servers[name].Listen {
			address, err := caddy.ParseNetworkAddress(listen)
			if err != nil {
				return fmt.Errorf("server %s: %w", name, err)
			}
			if address.IsUnixNetwork() || address.IsFdNetwork() || address.StartPort == 0 {
				continue // each process has one of its own
			}
			for _, one := range address.Expand() {
				address := one.JoinHostPort(0)
				if err := ClaimAddress(address); err != nil {
					return err
				}
				*c = append(*c, address)
			}
		}
	}
	return nil
}

// ClaimAddress makes sure that no other Weir serves an address, host:port, until the end
// of this process.
func ClaimAddress(address string) error {
	_, _, err := claims.LoadOrNew(address, func() (caddy.Destructor, error) {
		socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "@weir/" + address})
		return claim{socket}, err
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("another Weir serves %s; stop it, or listen on another address", address)
	}
	if err != nil {
		return fmt.Errorf("claiming %s: %w", address, err)
	}
	return nil
}

// release gives the addresses up.
func (c *addressClaims) release() {
	for _, address := range *c {
		_, _ = claims.Delete(address) // nothing depends on the close
	}
	*c = nil
}

// claim is closed with the last configuration that has its address.
type claim struct{ *net.UnixConn }

// Destruct gives the address up.
func (c claim) Destruct() error { return c.Close() }
