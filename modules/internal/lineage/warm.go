package lineage

import (
	"time"

	"github.com/weirhq/weir/storage"
)

// leastKept is how long providers that need no marks keep what nobody asks for again, at most:
// "always within one hour" (https://platform.openai.com/docs/guides/prompt-caching).
const leastKept = time.Hour

// Warm returns the target whose provider's cache has the beginning of the call, and how many
// tokens it has of it; zeros if there is none, or if the provider has forgotten it at that time.
// A call that failed has warmed nothing: then it is the call before that one.
func (l *Link) Warm(at storage.Timestamp) (target uint64, tokens int64) {
	if l == nil {
		return 0, 0
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	before := l.index.get(l.prefix)
	if before != nil && before.input == unknown {
		before = l.index.get(before.before)
	}
	if before == nil || !before.answer.came || before.input == unknown {
		return 0, 0
	}
	life := before.features.cacheLife
	if !before.features.marked {
		life = max(life, storage.Timestamp(leastKept.Milliseconds()))
	}
	if at-before.created > life {
		return 0, 0
	}
	return before.target, before.input
}
