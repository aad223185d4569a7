package compat

import (
	"bytes"
	"encoding/binary"
)

// Each of these gives the length of the first event in b, at most all of b.

func cutNothing(b []byte) int { return len(b) }

func cutLine(b []byte) int { return after(b, "\n") }

// cutSSE ends an event at its blank line.
func cutSSE(b []byte) int { return min(after(b, "\n\n"), after(b, "\r\n\r\n")) }

// cutMessage reads the length that an AWS event stream message begins with.
func cutMessage(b []byte) int {
	if len(b) < 4 {
		return len(b)
	}
	return min(max(int(binary.BigEndian.Uint32(b)), 4), len(b))
}

func after(b []byte, end string) int {
	if i := bytes.Index(b, []byte(end)); i >= 0 {
		return i + len(end)
	}
	return len(b)
}
