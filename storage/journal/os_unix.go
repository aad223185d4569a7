//go:build unix && !aix && !solaris

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock keeps a second process out of the directory for as long as the file is
// open.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is in use by another process: stop it, or give this one a store of its own", dir)
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return f, nil
}

// lockShared keeps a process that would change the directory out until unlock is called.
func lockShared(dir string) (unlock func(), err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) { // nobody has it, as in a backup
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is in use by another process: stop it, or make a backup and check that: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// OpenFile opens a file that may be removed, renamed or replaced while it is open.
func OpenFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// Rename renames a file, or replaces one that may be open.
func Rename(from, to string) error { return os.Rename(from, to) }

// SyncDir makes the names in a directory survive a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func mapPage(f *os.File) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, counterSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapPage(page []byte) { _ = unix.Munmap(page) } // fails for what is no mapping alone

// save does nothing: the kernel has what was written to the page.
func (*exchangeCounter) save() {}
