package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// maxPieces is the kernel's UIO_MAXIOV.
const maxPieces = 1024

func (f osFile) write(pieces [][]byte, off int64) error {
	for len(pieces) > 0 {
		n, err := unix.Pwritev(int(f.Fd()), pieces[:min(len(pieces), maxPieces)], off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "pwritev", Path: f.Name(), Err: err}
		}
		off += int64(n)
		for ; len(pieces) > 0 && n >= len(pieces[0]); pieces = pieces[1:] {
			n -= len(pieces[0])
		}
		if n > 0 { // a short write: the rest is tried, to learn why
			pieces[0] = pieces[0][n:]
		}
	}
	return nil
}

func (f osFile) sync() error {
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}
