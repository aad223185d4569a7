//go:build unix

package transport

import (
	"errors"
	"os"
	"syscall"
	"time"
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
	return err == nil && quiet && (!c.to.tls || c.decrypted())
}

// decrypted reports whether the layer of TLS has no bytes that were read before.
func (c *conn) decrypted() bool {
	_ = c.SetReadDeadline(time.Unix(1, 0)) // what is read comes from memory
	_, err := c.Conn.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}
