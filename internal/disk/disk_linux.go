package disk

import "golang.org/x/sys/unix"

// Space returns how many bytes this user may still write to the disk that a file or directory is on,
// and how many the disk has. On systems other than Linux the error is errors.ErrUnsupported.
func Space(path string) (free, size uint64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(path, &disk); err != nil {
		return 0, 0, err
	}
	return disk.Bavail * uint64(disk.Bsize), disk.Blocks * uint64(disk.Bsize), nil
}
