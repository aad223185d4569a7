//go:build !linux

package stores

import "errors"

// FreeDisk is known on Linux alone.
func (*Store) FreeDisk() (free, size uint64, err error) { return 0, 0, errors.ErrUnsupported }
