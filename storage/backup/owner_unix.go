//go:build unix

package backup

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// changeOwner gives the files of root, who restores them, to the owner of a directory, who
// runs Weir.
func changeOwner(owner, root string) error {
	info, err := os.Stat(owner)
	if err != nil {
		return err
	}
	of, known := info.Sys().(*syscall.Stat_t)
	if !known || os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(of.Uid), int(of.Gid))
	})
}
