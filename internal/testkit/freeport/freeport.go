// Package freeport finds free addresses on which servers of tests can listen.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// The system takes the ports of outgoing connections from 32768 on
// (ip_local_port_range): one of those could be in use before the server listens.
const (
	first = 12_000
	end   = 32_768
)

// given has the ports that tests of this process were given: one whose server is down for a
// moment, because a test has killed it, is still that test's.
var given sync.Map

// Address is an address of this machine at which nobody listens. No two calls return the same.
func Address(t testing.TB) string {
	t.Helper()
	for t.Context().Err() == nil {
		port := first + rand.IntN(end-first)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("the test has ended before an address was free")
	return ""
}

// Port is the port of an Address.
func Port(t testing.TB) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(Address(t))
	return port
}
