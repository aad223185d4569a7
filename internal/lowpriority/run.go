// Package lowpriority runs work that traffic goes before.
package lowpriority

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// Run calls do, and returns or panics as do does. Where the system can, do runs on a
// thread of its own that gets a processor when traffic leaves one.
func Run(do func()) { Start(do)() }

// Start begins what Run does. The function that it returns, which must be called once, waits for do, and
// returns or panics as do does.
func Start(do func()) (wait func()) {
	threads.begin()
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
	return func() {
		defer threads.end()
		<-done
		if !finished {
			panic(panicked)
		}
	}
}

// processors are those that Go uses at the start.
var processors = runtime.GOMAXPROCS(0)

// Processors is the number of processors that Go uses, without those of Allow.
func Processors() int { return processors }

// fewProcessors can all be taken by Run.
const fewProcessors = 4

// Allow says how many calls of Run there are at the same time. Go has as many threads at
// work as processors, whatever their priority. Where processors are few, Run adds a thread
// for each of these calls, and the system decides by priority which threads work. Run adds
// none if GOMAXPROCS is set in the environment.
func Allow(calls int) {
	threads.mu.Lock()
	defer threads.mu.Unlock()
	if processors <= fewProcessors && os.Getenv("GOMAXPROCS") == "" {
		threads.allowed = calls
	}
}

// threads are added while something runs. Traffic would pay for more at any time: with two
// in place of four on two processors, a call takes a tenth less of the processor.
var threads extraThreads

// linger is how long the threads stay after the last call, because to change their number
// stops the process for a moment.
const linger = 500 * time.Millisecond

type extraThreads struct {
	mu      sync.Mutex  // guards all fields
	allowed int         // by Allow
	now     int         // that are there
	running int         // calls of Run
	idle    *time.Timer // removes the threads, nil before the first call
}

func (a *extraThreads) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running++; a.now == 0 && a.allowed > 0 {
		a.now = a.allowed
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + a.now)
	}
}

func (a *extraThreads) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	if a.now == 0 || a.running > 0 {
		return
	}
	if a.idle == nil {
		a.idle = time.AfterFunc(linger, a.remove)
	}
	a.idle.Reset(linger)
}

// remove removes the threads if nothing runs.
func (a *extraThreads) remove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running == 0 && a.now > 0 {
		a.now = 0
		runtime.SetDefaultGOMAXPROCS()
	}
}
