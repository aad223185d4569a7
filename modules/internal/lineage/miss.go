package lineage

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// The reasons why a provider's cache did not serve what the turn before had sent, in
// the order in which they are looked for: each of them alone is enough.
const (
	belowMinimum  = "below_minimum"  // the provider does not cache so little
	neverMarked   = "never_marked"   // nobody asked the provider to cache it
	modelChanged  = "model"          // another model has a cache of its own
	otherKey      = "other_key"      // so has another account, or another key of the cache
	toolsChanged  = "tools_changed"  // which stand before everything else
	systemChanged = "system_changed" // which stands before the messages
	historyEdited = "history_edited" // a message is not as it was
	expired       = "ttl"            // the turn before was too long ago
	unexplained   = "unexplained"    // nothing has changed
)

// minMissed is the least number of tokens that count as a miss. Shorter misses come from how providers
// count: OpenAI caches by 128 tokens, and the end of a prompt is not the same in the next.
const minMissed = 128

// Miss tells r what the provider's cache did not serve of the turn before, once both
// have reported their usage. account is the one at which the provider keeps what it caches.
func (l *Link) Miss(r *storage.Record, account uint64) {
	r.CacheMiss, r.CacheMissAt, r.CacheMissed = "", "", plugins.Count{}
	u := &r.Usage
	if l.before == (ref{}) || !u.Input.Valid || !u.CacheRead.Valid {
		return
	}
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	before := l.index.get(l.before)
	if before == nil || !before.answer.arrived || before.input == unknown {
		return
	}
	cacheable := min(before.input, u.Input.N)
	missed := cacheable - u.CacheRead.N
	if missed < minMissed || 10*missed < cacheable {
		return
	}
	r.CacheMissed = plugins.Known(missed)
	r.CacheMiss, r.CacheMissAt = l.reason(before, r, account, cacheable)
}

func (l *Link) reason(before *call, r *storage.Record, account uint64, cacheable int64) (reason, at string) {
	was, is := &before.features, &l.features
	marks := needsMarks(r)
	switch {
	case cacheable < MinCacheable(r.Model):
		return belowMinimum, ""
	case marks && !(was.marked && is.marked):
		return neverMarked, ""
	case before.model != Hash(r.Model):
		return modelChanged, ""
	case before.account != account || was.cacheKey != is.cacheKey:
		return otherKey, ""
	case was.tools != is.tools:
		return toolsChanged, "tools"
	case was.instructions != is.instructions:
		return systemChanged, "system"
	case l.edited >= 0:
		return historyEdited, fmt.Sprintf("messages[%d]", l.edited)
	case r.CreatedAt-before.created > was.cacheLife:
		return expired, ""
	case marks && !was.messagesMarked: // nothing but what stands before the messages
		return neverMarked, "messages"
	}
	return unexplained, ""
}

// needsMarks reports whether the provider caches nothing but what a request marks.
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
// https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
func needsMarks(r *storage.Record) bool {
	return r.Dialect == plugins.Converse || r.Dialect == plugins.Invoke || NeedsMarks(r.Model)
}

// NeedsMarks reports whether a model's provider caches nothing but what a request marks, whatever the
// format of the request.
func NeedsMarks(model string) bool { return strings.Contains(model, "claude") }

// MinCacheable is how many tokens a model's provider caches at least. Where the docs
// of a provider say nothing, it is OpenAI's.
func MinCacheable(model string) int64 {
	for _, m := range [...]struct {
		name   string
		tokens int64
	}{
		{"claude-haiku-4", 4096}, {"claude-opus-4-5", 4096}, {"claude-opus-4-6", 4096}, {"claude-opus-4-7", 4096},
		{"claude-3-haiku", 2048}, {"claude-3-5-haiku", 2048}, {"deepseek", 64},
	} {
		if strings.Contains(model, m.name) {
			return m.tokens
		}
	}
	return 1024
}

// cacheLife returns how long a provider keeps what nobody asks for again, at least, in
// milliseconds. asked is what the request says, in the provider's words.
func cacheLife(ttl string) storage.Timestamp {
	life := MarkedLife
	if ttl != "" {
		if asked, err := time.ParseDuration(ttl); err == nil {
			life = asked
		}
	}
	return storage.Timestamp(life.Milliseconds())
}
