//go:build !linux

package llmapp

import "errors"

// Room is known on Linux alone.
func (*Store) Room() (free, size uint64, err error) { return 0, 0, errors.ErrUnsupported }
