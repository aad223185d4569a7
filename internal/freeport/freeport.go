// Package freeport finds free addresses on which servers of tests can listen.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The system takes the ports of outgoing connections from 32768 on
// (ip_local_port_range): one of those could be in use before the server listens.
const (
	first = 12_000
	end   = 32_768
)

// Address is an address of this machine at which nobody listens.
func Address(t testing.TB) string {
	t.Helper()
	for {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(end-first))))
		if err == nil {
			listener.Close()
			return listener.Addr().String()
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// Port is the port of an Address.
func Port(t testing.TB) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(Address(t))
	return port
}
