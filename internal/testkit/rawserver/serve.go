// Package rawserver serves connections in tests, for servers that say what Go's HTTP server refuses to.
package rawserver

import (
	"net"
	"sync"
	"testing"
)

// Serve gives each connection to do, which has it until do returns. It returns the address of the
// server, host and port. The test ends when the server has stopped and no connection is left.
func Serve(t testing.TB, do func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		open.Wait()
	})
	open.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				do(c)
			})
		}
	})
	return listener.Addr().String()
}
