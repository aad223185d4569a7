package lowpriority_test

import (
	"errors"
	"testing"

	"github.com/weirhq/weir/modules/internal/lowpriority"
)

func TestRunReturnsAndPanics(t *testing.T) {
	ran := false
	lowpriority.Run(func() { ran = true })
	if !ran {
		t.Error("Run returned before do did")
	}
	abort := errors.New("abort")
	defer func() {
		if got := recover(); got != any(abort) {
			t.Errorf("Run panics with %v, want what do panics with", got)
		}
	}()
	lowpriority.Run(func() { panic(abort) })
}
