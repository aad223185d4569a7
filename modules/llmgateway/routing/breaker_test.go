package routing

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/modules/llmapp"
)

func names(list []Target) string {
	var all []string
	for _, t := range Order(list) {
		all = append(all, t.Name())
	}
	return strings.Join(all, " ")
}

// A model that fails is tried last for a while, and the other models of its
// account are not.
func TestTargetThatFailsCoolsDown(t *testing.T) {
	one, two := &llmapp.Account{Label: "one"}, &llmapp.Account{Label: "two"}
	copy(one.ID[:], t.Name()+"/one")
	copy(two.ID[:], t.Name()+"/two")
	bad, good, other := Target{Account: one, Model: "bad"}, Target{Account: one, Model: "good"}, Target{Account: two, Model: "m"}
	list := []Target{bad, good, other}
	const usual, moved = "one/bad one/good two/m", "one/good two/m one/bad"
	synctest.Test(t, func(t *testing.T) {
		for range maxFailures {
			if got := names(list); got != usual {
				t.Fatalf("before it has failed often enough: %s", got)
			}
			Failed(bad)
			time.Sleep(time.Second)
		}
		if got := names(list); got != moved {
			t.Errorf("in its cooldown: %s, want %s", got, moved)
		}
		time.Sleep(cooldown)
		if got := names(list); got != usual {
			t.Errorf("after its cooldown: %s", got)
		}
		Succeeded(bad)
		for range maxFailures {
			if got := names(list); got != usual {
				t.Errorf("with seldom failures: %s", got)
			}
			Failed(bad)
			time.Sleep(failureWindow)
		}
	})
}

// Clients choose the names of models: those that fail take bounded memory, and
// old ones make room.
func TestFailingTargetsAreBounded(t *testing.T) {
	a := &llmapp.Account{Label: "any"}
	copy(a.ID[:], t.Name())
	synctest.Test(t, func(t *testing.T) {
		for i := range 2 * maxFailing {
			Failed(Target{Account: a, Model: fmt.Sprint(i)})
		}
		if n := len(targets.failing); n > maxFailing {
			t.Errorf("%d targets are watched", n)
		}
		time.Sleep(failureWindow + time.Second)
		late := Target{Account: a, Model: "late"}
		for range maxFailures {
			Failed(late)
		}
		if got := names([]Target{late, {Account: a, Model: "m"}}); got != "any/m any/late" {
			t.Errorf("after old failures were forgotten: %s", got)
		}
	})
}
