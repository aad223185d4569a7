package llmquery

import (
	"context"
	"errors"
	"testing"

	"github.com/weirhq/weir/storage"
)

// A trial ends with its client.
func TestTrialEndsWithItsClient(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := addCall(left, nil, nil, new(storage.Record)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
