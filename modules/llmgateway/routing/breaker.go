package routing

import (
	"crypto/sha256"
	"slices"

	"github.com/weirhq/weir/storage/shared"
)

// Circuit identifies the target at any node, and in any configuration.
func (t Target) Circuit() shared.Key {
	return sha256.Sum256(slices.Concat(t.Account.ID[:], []byte(t.Model)))
}

// Order returns the targets with those whose circuit is open behind the others.
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
