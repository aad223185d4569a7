//go:build unix && !aix && !solaris

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// errTaken is the error for a lock that another process has.
const errTaken = unix.EWOULDBLOCK

// lockFile locks a file, or fails at once.
func lockFile(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	return unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
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
