package stores

import "golang.org/x/sys/unix"

// FreeDisk returns how many bytes this user may still write to the disk of the store, and
// how many the disk has.
func (s *Store) FreeDisk() (free, size uint64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.Dir(), &disk); err != nil {
		return 0, 0, err
	}
	return disk.Bavail * uint64(disk.Bsize), disk.Blocks * uint64(disk.Bsize), nil
}
