package columnar

import (
	"math"

	"github.com/weirhq/weir/storage"
)

// A request's key holds its CreatedAt above a sequence number, so that requests of
// one time lie together and no index on the time is needed.
const (
	sequenceBits = 20
	// Sequence has the bits of a key that number the requests of one time.
	Sequence = 1<<sequenceBits - 1
)

// FirstKey is the least key of the time t.
func FirstKey(t storage.Timestamp) int64 {
	const last = math.MaxInt64 >> sequenceBits // in the year 2248
	return int64(min(max(t, -last), last)) << sequenceBits
}

// LastKey is the largest key of the time t.
func LastKey(t storage.Timestamp) int64 {
	if t >= storage.Always.To {
		return math.MaxInt64
	}
	return FirstKey(t+1) - 1
}

// CreatedAt is the time of a key.
func CreatedAt(key int64) storage.Timestamp { return storage.Timestamp(key >> sequenceBits) }
