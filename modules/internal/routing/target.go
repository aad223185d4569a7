// Package routing decides where a call of a model goes: which targets the field
// model of a request names, in which order they are tried, and how long to wait
// between two attempts. It makes no request itself.
package routing

import (
	"crypto/sha256"
	"math"
	"time"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/shared"
)

// Target is a model at an account: where an attempt can go.
type Target struct {
	Account *providers.Account
	// Model is the model's name at the provider.
	Model string
	// Listed is the model in the catalogue, nil if the catalogue does not know it.
	Listed *catalog.Model
	// Alias is the name that stands for the target, and Choice its model there; nil if the
	// request names the model itself.
	Alias  *Alias
	Choice *Choice

	circuit shared.Key

	entry int // which of the names of the request, or of the alias, it is a target of
}

// Name returns `label/model`, which is how a client names exactly this target.
func (t Target) Name() string { return t.Account.Label + "/" + t.Model }

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

func newTarget(a *providers.Account, model string, listed *catalog.Model) Target {
	text := make([]byte, 0, 128) // on the stack
	return Target{Account: a, Model: model, Listed: listed, circuit: sha256.Sum256(append(append(text, a.ID[:]...), model...))}
}

// Circuit identifies the target at any node, and in any configuration.
func (t Target) Circuit() shared.Key { return t.circuit }

// repeats reports whether a call that failed at another target would be the same one at this
// target.
func (t *Target) repeats(other *Target) bool {
	same := t.Account == other.Account && t.Model == other.Model
	return same && (t.Choice == other.Choice || t.Choice.conditionText() == other.Choice.conditionText() && !t.Choice.HasParameters() && !other.Choice.HasParameters() && t.Arm() == other.Arm())
}

// conditionText is When, "" for no choice.
func (c *Choice) conditionText() string {
	if c == nil {
		return ""
	}
	return c.When
}
