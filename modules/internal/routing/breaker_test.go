package routing

import (
	"testing"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/storage/shared"
)

// A model that fails is tried last, and the other models of its account are not.
func TestTargetThatFailsIsLast(t *testing.T) {
	one, two := &providers.Account{Label: "one"}, &providers.Account{Label: "two"}
	one.ID[0], two.ID[0] = 1, 2
	bad, good, other := Target{Deployment: one.Deployment("bad", nil)}, Target{Deployment: one.Deployment("good", nil)}, Target{Deployment: two.Deployment("bad", nil)}
	var breakers shared.LocalBreakers
	order := func() (names string) {
		places, err := Choose([]Target{bad, good, other}, func() *Ask { return &Ask{Warm: nowhere} }, Health{&breakers, new(Loads)})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range places {
			names += p.Name + " "
		}
		return names
	}
	if got, want := order(), "one/bad one/good two/bad "; got != want {
		t.Errorf("before: %s, want %s", got, want)
	}
	for range shared.MaxFailures {
		breakers.Failed(bad.Circuit)
	}
	if got, want := order(), "one/good two/bad one/bad "; got != want {
		t.Errorf("after it has failed: %s, want %s", got, want)
	}
}

// nowhere is the cache that has nothing.
func nowhere(Target) int64 { return 0 }
