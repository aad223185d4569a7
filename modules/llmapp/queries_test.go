package llmapp

import (
	"context"
	"testing"
)

// One key runs one trial, and all keys together run two: each keeps a hundred megabytes at most.
func TestTrialsTakeTurns(t *testing.T) {
	turns, err := newTurns(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	leaving, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		key string
		ok  bool
	}{{"a", true}, {"a", false}, {"b", true}, {"c", false}} {
		ctx := t.Context()
		if !c.ok {
			ctx = leaving // who waits has left
		}
		if _, ok := turns.Trials.Take(ctx, c.key); ok != c.ok {
			t.Errorf("%s: %v", c.key, ok)
		}
	}
}
