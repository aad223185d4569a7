//go:build !unix || aix || solaris

package journal

import (
	"os"
	"path/filepath"
)

// lock is without effect where there is no flock.
func lock(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
}

func lockShared(string) (unlock func(), err error) { return func() {}, nil }

// SyncDir is without effect here.
func SyncDir(string) error { return nil }

func mapPage(f *os.File) ([]byte, error) {
	page := make([]byte, counterSize)
	_, err := f.ReadAt(page, 0)
	return page, err
}

func unmapPage([]byte) {}

// save writes the page, which costs an exchange a system call.
func (t *exchangeCounter) save() {
	if _, err := t.file.WriteAt(t.page, 0); err != nil {
		t.page = nil
	}
}
