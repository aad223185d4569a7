package lineage

import (
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// How long providers keep what nobody asks for again. Where a request does not mark what to keep, it may
// be gone sooner, and is gone "always within one hour"
// (https://platform.openai.com/docs/guides/prompt-caching).
const (
	MarkedLife   = 5 * time.Minute
	UnmarkedLife = time.Hour
)

// Warm returns the target whose provider's cache has the beginning of the call, and how many
// tokens it has of it; zeros if there is none, or if the provider has forgotten it at that time.
// A call that failed has warmed nothing: then it is the call before that one.
func (l *Link) Warm(at storage.Timestamp) (target uint64, tokens int64) {
	if l == nil {
		return 0, 0
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	return l.index.warm(l.index.get(l.prefix), at)
}

// Warm is Link.Warm for a call that the index does not remember.
func (x *Index) Warm(r *storage.Record, o *observe.Outline, previous uuid.UUID, at storage.Timestamp) (target uint64, tokens int64) {
	outline := *o
	outline.Tasks = nil // a sub-agent takes them
	q := newQuery(r, &outline)
	q.previous = previous
	x.mu.Lock()
	defer x.mu.Unlock()
	parent, _ := x.find(q)
	if !beginsAs(parent, featuresOf(o)) {
		return 0, 0
	}
	return x.warm(parent, at)
}

// beginsAs reports whether a call and one that follows it have the same tools and instructions,
// which stand before the messages.
func beginsAs(before *call, f features) bool {
	return before != nil && before.features.tools == f.tools && before.features.instructions == f.instructions
}

// warm is Link.Warm for the call that sent what another begins with, nil if there is none.
func (x *Index) warm(before *call, at storage.Timestamp) (target uint64, tokens int64) {
	if before != nil && before.input == unknown {
		before = x.get(before.before)
	}
	if before == nil || !before.answer.arrived || before.input == unknown {
		return 0, 0
	}
	if at-before.created > before.features.life() {
		return 0, 0
	}
	return before.target, before.input
}

// Life is how long a provider keeps what a request makes it cache.
func Life(o *observe.Outline) time.Duration {
	f := featuresOf(o)
	return time.Duration(f.life()) * time.Millisecond
}

// life is that of what is cached, in milliseconds.
func (f *features) life() storage.Timestamp {
	if f.marked {
		return f.cacheLife
	}
	return max(f.cacheLife, storage.Timestamp(UnmarkedLife.Milliseconds()))
}
