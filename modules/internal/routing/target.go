// Package routing decides where a call of a model goes: which targets the field
// model of a request names, in which order they are tried, and how long to wait
// between two attempts. It makes no request itself.
package routing

import (
	"math"
	"time"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Target is a model at an account: where an attempt can go.
type Target struct {
	*providers.Deployment
	// Alias is the name that stands for the target, and Choice its model there; nil if the
	// request names the model itself.
	Alias  *Alias
	Choice *Choice
	// Lineage is how the lineage of calls knows the target, 0 for an account without a model. Two arms
	// of one model are two.
	Lineage uint64

	entry int // which of the names of the request, or of the alias, it is a target of
}

// price is the cost by which targets are compared: of as many input as output tokens. An
// unknown price compares as the highest.
func (t Target) price() plugins.Nanodollars {
	if t.Listed == nil {
		return math.MaxInt64
	}
	const tokens = 1000
	cost := t.Listed.Cost(plugins.Usage{Input: plugins.Known(tokens), Output: plugins.Known(tokens)}, catalog.Conditions{At: time.Now()})
	if !cost.Valid {
		return math.MaxInt64
	}
	return cost.N
}

// inputLimit returns how many tokens the target is assumed to read at most.
func (t Target) inputLimit() int64 {
	if t.Listed == nil {
		return catalog.AssumedInput
	}
	return t.Listed.InputLimit()
}

// repeats reports whether a call that failed at another target would be the same one at this
// target.
func (t *Target) repeats(other *Target) bool {
	same := t.Account == other.Account && t.Model == other.Model
	return same && (t.Choice == other.Choice || t.Choice.conditionText() == other.Choice.conditionText() && !t.Choice.HasParameters() && !other.Choice.HasParameters() && t.Choice.namedArm() == other.Choice.namedArm())
}

// conditionText is When, "" for no choice.
func (c *Choice) conditionText() string {
	if c == nil {
		return ""
	}
	return c.When
}

// namedArm is Arm, "" for no choice or one that is known by its model.
func (c *Choice) namedArm() string {
	if c == nil {
		return ""
	}
	return c.Arm
}
