// Package storagetest is what every storage backend must pass: Run checks the
// contract of storage.Backend, and that random queries over adversarial records
// answer as storage.Evaluate does.
package storagetest

import (
	"testing"

	"github.com/weirhq/weir/storage"
)

// Run checks a backend. open makes one on an empty store of its own, without
// calling Open; Run opens it, closes it, and opens it again to see what the
// store kept.
func Run(t *testing.T, open func(t *testing.T) storage.Backend) {
}
