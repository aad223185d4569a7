package lowpriority

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// niceness is that of `nice` without a number.
const niceness = 10

// lower gives the goroutine a thread with a lower priority. The thread ends with the
// goroutine: a process without privileges may not raise the priority again.
func lower() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness) // a system that forbids it runs do all the same
}
