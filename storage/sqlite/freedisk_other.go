//go:build !linux

package sqlite

import "math"

// freeDisk is known on Linux alone.
func freeDisk(string) int64 { return math.MaxInt64 }
