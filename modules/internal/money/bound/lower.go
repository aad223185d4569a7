package bound

import (
	"sort"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// LeastOutput is the lowest limit of output tokens that a call is given. With fewer tokens
// an answer is paid for and of no use.
const LeastOutput = 256

// Limits are the limits of output tokens to which a call can be lowered, from Least to below
// Asked. The zero Limits are those of a call that cannot be lowered.
type Limits struct{ Least, Asked int64 }

// Below returns the limits below one to which the call was lowered before, 0 if it was not.
func (l Limits) Below(limit int64) Limits {
	if limit > 0 {
		l.Asked = min(l.Asked, limit)
	}
	return l
}

// Highest returns the highest limit that is covered, 0 if none is. A limit is covered if a higher
// limit is.
func (l Limits) Highest(covered func(limit int64) bool) int64 {
	if l.Asked <= l.Least || !covered(l.Least) { // the search reads the request for each limit
		return 0
	}
	dearer := sort.Search(int(l.Asked-l.Least), func(i int) bool { return !covered(l.Least + int64(i)) })
	return l.Least + int64(dearer) - 1
}

// Silent reports whether the model may write what its stream does not show: providers charge
// for thoughts that they summarize or keep to themselves.
func (r Request) Silent(m *catalog.Model) bool {
	if !m.Reasoning {
		return false
	}
	switch r.Dialect {
	case plugins.Messages:
		return r.Get("thinking").IsObject() && !r.disables("thinking", "type", `"disabled"`)
	case plugins.GenerateContent:
		budget := r.Get("generationConfig").Get("thinkingConfig.thinkingBudget")
		return budget.Raw != "0"
	}
	effort, reasoning := r.Get("reasoning_effort"), r.Get("reasoning") // vendors differ in which they obey
	return reasoning.IsObject() && !r.disables("reasoning", "effort", `"none"`) || effort.Exists() && effort.Str != "none" ||
		!reasoning.IsObject() && !effort.Exists()
}

// disables reports whether a field of an object of the request has a value, and no other beside it.
func (r Request) disables(object, name, value string) bool {
	stands, others := false, false
	r.Get(object).ForEach(func(key, v gjson.Result) bool {
		stands, others = stands || key.Str == name && v.Raw == value, others || key.Str == name && v.Raw != value
		return true
	})
	return stands && !others
}

// thoughtsPerSecond is how many tokens a model thinks in a second.
const thoughtsPerSecond = 100

// Thought estimates how many tokens a model that is Silent has thought in a time: who leaves
// before the provider states the usage must not have them for nothing.
func Thought(took plugins.Milliseconds) int64 { return int64(took) * thoughtsPerSecond / 1000 }
