//go:build unix

package stores

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// writable tells why a directory could not be made, or written to, nil if it could. It
// touches nothing.
func writable(dir string) error {
	at := dir
	info, err := os.Stat(at)
	for (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: at, Err: syscall.ENOTDIR}
	}
	if err == nil {
		err = unix.Access(at, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written by the user %d: %w; name another path, or give this user the directory", at, os.Geteuid(), err)
	}
	return nil
}
