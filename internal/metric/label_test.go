package metric

import (
	"fmt"
	"testing"
)

func TestSetsAreClosed(t *testing.T) {
	s := SetOf("a", "b")
	bounded := &Bounded{Max: 2}
	got := fmt.Sprint(s.Of("a"), s.Of("c"), bounded.Of("x"), bounded.Of("y"), bounded.Of("z"), bounded.Of("x"))
	if want := "a other x y other x"; got != want {
		t.Errorf("labels %s, want %s", got, want)
	}
}
