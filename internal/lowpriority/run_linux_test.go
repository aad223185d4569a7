package lowpriority_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/lowpriority"
)

// What runs has a lower priority than what goes on beside it, also afterwards.
func TestPriority(t *testing.T) {
	nice := func() int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid()) // which is 20 less the niceness
		if err != nil {
			t.Fatal(err)
		}
		return 20 - n
	}
	before, during := nice(), 0
	for range 100 {
		lowpriority.Run(func() { during = nice() })
		if after := nice(); during <= before || after != before {
			t.Fatalf("the niceness is %d, %d in Run, %d behind it", before, during, after)
		}
	}
}
