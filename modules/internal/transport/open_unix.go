//go:build unix

package transport

import (
	"errors"
	"syscall"
)

// canTellClosed reports whether open knows.
const canTellClosed = true

// open reports whether the provider has neither closed the connection nor sent what nobody
// asked for.
func (c *conn) open() bool {
	if c.socket == nil {
		return false
	}
	quiet := false
	err := c.socket.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}
