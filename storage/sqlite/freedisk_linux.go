package sqlite

import "golang.org/x/sys/unix"

// freeDisk is how many bytes this user may still write to the disk of a file.
func freeDisk(path string) int64 {
	var disk unix.Statfs_t
	if unix.Statfs(path, &disk) != nil {
		return 0
	}
	return int64(disk.Bavail) * disk.Bsize
}
