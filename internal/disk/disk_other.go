//go:build !linux

package disk

import "errors"

// Space is known on Linux alone: elsewhere the error is errors.ErrUnsupported.
func Space(string) (free, size uint64, err error) { return 0, 0, errors.ErrUnsupported }
