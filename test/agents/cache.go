package agents

import (
	"slices"
	"strings"
)

// size is what a provider counts of messages, in tokens.
func size(messages []Message) (tokens int) {
	for _, m := range messages {
		tokens += 4 + len(m.Text)/4
		for _, call := range m.Calls {
			tokens += 10 + len(call.Argument)/4
		}
	}
	return tokens
}

// cache says what the provider's cache serves of a call, and why no more.
func (t *thread) cache(c *Call, prefix int) {
	before := t.last
	c.Late = t.late
	cacheable := min(before.Usage.Input, c.Usage.Input)
	same := 0
	for same < min(len(t.seen), len(t.messages)) && equal(t.seen[same], t.messages[same]) {
		same++
	}
	switch {
	case t.short:
		c.Miss = "below_minimum"
	case t.unmarked:
		c.Miss = "never_marked"
	case before.Model != t.model:
		c.Miss = "model"
	case t.otherKey:
		c.Miss = "other_key"
	case prefix > t.prefix && len(t.tools) > 6 && !strings.Contains(string(before.Body), "tool_6"):
		c.Miss, c.MissAt = "tools_changed", "tools"
	case prefix != t.prefix:
		c.Miss, c.MissAt = "system_changed", "system"
	case same < len(t.seen):
		c.Miss, c.MissAt = "history_edited", t.Client.at(t.messages, same)
		c.Usage.Cached = prefix + size(t.messages[:same])
	case t.late:
		c.Miss = "ttl"
	default:
		c.Usage.Cached = cacheable
	}
	if c.Provider != "anthropic" { // other providers round down
		c.Usage.Cached -= c.Usage.Cached % 128
	}
	c.Missed = cacheable - c.Usage.Cached
	if c.Missed < 128 || 10*c.Missed < cacheable {
		c.Miss, c.MissAt, c.Missed = "", "", 0
	}
}

func equal(a, b Message) bool { return a.Text == b.Text && slices.Equal(a.Calls, b.Calls) }

// change does what makes the provider's cache miss the next call.
func (t *thread) change(cause string) {
	switch cause {
	case "model":
		t.model = otherModel[t.model]
	case "other_key":
		t.key, t.cacheKey, t.otherKey = t.key+"-2", t.cacheKey+"-2", true
	case "tools_changed":
		t.tools = append(slices.Clone(t.tools), "tool_6 "+t.words.Text(300))
	case "system_changed":
		t.system = "Today is Tuesday. " + t.system
	case "ttl":
		t.life = "1ms"
	case "history_edited":
		i := 1 + t.random.IntN(len(t.messages)/3)
		t.messages[i].Text = "This was removed."
	}
}
