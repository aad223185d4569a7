// Package lowpriority runs work that traffic goes before.
package lowpriority

import (
	"os"
	"runtime"
)

// Run calls do, and returns or panics as do does. Where the system can, do runs on a
// thread of its own that gets a processor when traffic leaves one.
func Run(do func()) {
	var panicked any
	finished := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if !finished {
				panicked = recover()
			}
		}()
		lower()
		do()
		finished = true
	}()
	<-done
	if !finished {
		panic(panicked)
	}
}

// processors are those that Go uses at the start.
var processors = runtime.GOMAXPROCS(0)

// Processors is the number of processors that Go uses, without those of Allow.
func Processors() int { return processors }

// fewProcessors can all be taken by Run.
const fewProcessors = 4

// Allow says how many calls of Run there are at the same time. Go has as many threads at
// work as processors, whatever their priority. Where processors are few, Allow adds a
// thread for each call, and the system decides by priority which threads work. It adds
// none if GOMAXPROCS is set in the environment.
func Allow(calls int) {
	if processors <= fewProcessors && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(processors + calls)
	}
}
