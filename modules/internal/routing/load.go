package routing

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/storage/shared"
)

// Loads knows how busy and how fast targets are, in this process. The zero value knows nothing.
type Loads struct {
	mu        sync.Mutex           // guards byCircuit
	byCircuit map[shared.Key]*load // by circuit
	// limited is until when a target refuses calls, nil if none has refused one: afterwards, nobody need
	// look for targets that do. mu guards its changes.
	limited atomic.Pointer[time.Time]
}

// InProcess are the loads of this process. They outlive a configuration.
var InProcess Loads

// load has the measurements of a target. The lock of Loads guards it.
type load struct {
	underWay int
	tried    time.Time       // when a call last began, zero if none did
	limited  time.Time       // until then, the provider refuses calls; zero if it does not
	timings  []timing        // of the last answers, which came within recently, the oldest first
	sorted   []time.Duration // first of timings
	output   int64           // mean of the last answers, in tokens; 0 is unknown
}

// timing is how long an answer took to begin.
type timing struct {
	at    time.Time
	first time.Duration
}

const (
	// recently is how long a timing counts, and maxTimings how many do.
	recently   = 5 * time.Minute
	maxTimings = 32
	// maxLimited bounds how long a provider that refuses calls is left alone.
	maxLimited = time.Minute
	// likelyOutput are the tokens of an answer where nothing is known of earlier ones.
	likelyOutput = 500
)

// get returns what is known of a target. The caller has the lock.
func (l *Loads) get(circuit shared.Key) *load {
	if l.byCircuit == nil {
		l.byCircuit = make(map[shared.Key]*load)
	}
	current := l.byCircuit[circuit]
	if current == nil {
		l.makeRoom()
		current = new(load)
		l.byCircuit[circuit] = current
	}
	return current
}

// makeRoom forgets idle targets if there are too many: clients choose the names of models.
func (l *Loads) makeRoom() {
	if len(l.byCircuit) < shared.MaxCircuits {
		return
	}
	for circuit, current := range l.byCircuit {
		if current.underWay == 0 {
			delete(l.byCircuit, circuit)
		}
	}
}

// Begin counts a call at a target, until the end is called.
func (l *Loads) Begin(circuit shared.Key) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.get(circuit)
	current.underWay++
	current.tried = time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		current.underWay--
	}
}

// Answered notes how long a target took to begin its answer, and how long the answer is, 0 if that
// is unknown.
func (l *Loads) Answered(circuit shared.Key, first time.Duration, output int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.get(circuit)
	current.limited = time.Time{}
	current.addTiming(timing{time.Now(), first})
	switch {
	case output <= 0:
	case current.output == 0:
		current.output = output
	default:
		current.output += (output - current.output) / 8
	}
}

// addTiming adds the timing of an answer, in place of those that count no longer.
func (l *load) addTiming(t timing) {
	for len(l.timings) == maxTimings || len(l.timings) > 0 && t.at.Sub(l.timings[0].at) >= recently {
		i, _ := slices.BinarySearch(l.sorted, l.timings[0].first)
		l.sorted, l.timings = slices.Delete(l.sorted, i, i+1), slices.Delete(l.timings, 0, 1)
	}
	i, _ := slices.BinarySearch(l.sorted, t.first)
	l.sorted, l.timings = slices.Insert(l.sorted, i, t.first), append(l.timings, t)
}

// Limited notes that a target refuses calls for a time, because of a limit or an empty account.
func (l *Loads) Limited(circuit shared.Key, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := time.Now().Add(min(max(wait, time.Second), maxLimited))
	l.get(circuit).limited = until
	if latest := l.limited.Load(); latest == nil || latest.Before(until) {
		l.limited.Store(&until)
	}
}

// mayLimit reports whether a target may refuse calls now.
func (l *Loads) mayLimit() bool {
	until := l.limited.Load()
	return until != nil && time.Now().Before(*until)
}

// Load is what is known of a target at a time.
type Load struct {
	// UnderWay are the calls that have no answer yet, or not all of it.
	UnderWay int
	// Tried is true if a call began in the last minute.
	Tried bool
	// Limited is true while the provider refuses calls.
	Limited bool
	// Median is that of the time to the first token, or to an answer in one piece, of the last
	// five minutes; 0 is unknown.
	Median time.Duration
	// Output is how many tokens an answer is expected to have.
	Output int64
}

// setLoads sets what is known of the targets of places.
func (l *Loads) setLoads(places []Place) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range places {
		places[i].Load = l.byCircuit[places[i].Circuit].at(now)
	}
}

// at returns what is known of a target at the time now. l is nil if nothing is.
func (l *load) at(now time.Time) Load {
	if l == nil {
		return Load{Output: likelyOutput}
	}
	found := Load{UnderWay: l.underWay, Tried: now.Sub(l.tried) < time.Minute, Limited: now.Before(l.limited), Output: cmp.Or(l.output, likelyOutput)}
	if n := len(l.timings); n > 0 && now.Sub(l.timings[n-1].at) < recently {
		found.Median = l.sorted[n/2]
	}
	return found
}
