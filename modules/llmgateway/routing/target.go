// Package routing decides where a call of a model goes: which targets the field
// model of a request names, in which order they are tried, and how long to wait
// between two attempts. It makes no request itself.
package routing

import (
	"crypto/sha256"
	"math"
	"slices"
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

// Circuit identifies the target at any node, and in any configuration.
func (t Target) Circuit() shared.Key {
	return sha256.Sum256(slices.Concat(t.Account.ID[:], []byte(t.Model)))
}

// Order returns the targets, with the targets whose circuit is open behind the others.
func Order(list []Target, breakers shared.Breakers) []Target {
	closed := make([]Target, 0, len(list))
	var open []Target
	for _, t := range list {
		if breakers.Open(t.Circuit()) {
			open = append(open, t)
		} else {
			closed = append(closed, t)
		}
	}
	return append(closed, open...)
}
