package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// lock keeps a second process out of the directory for as long as the file is
// open.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, true); err != nil {
		f.Close()
		if errors.Is(err, errTaken) {
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
	if err := lockFile(f, false); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is in use by another process: stop it, or make a backup and check that: %w", dir, err)
	}
	return func() { f.Close() }, nil
}
