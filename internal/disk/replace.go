// Package disk replaces files as a whole, and tells how much room there is.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file, in place of the one that has the name. Readers find the old text or the new
// one, also after a power cut.
func Replace(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // which fails if all went well
	if _, err = f.Write(text); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync() // else a power cut after the rename may leave an empty file
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
