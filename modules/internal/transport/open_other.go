//go:build !unix

package transport

// canTellClosed reports whether open knows.
const canTellClosed = false

func (*conn) open() bool { return false }
