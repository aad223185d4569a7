package routing

import (
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/storage/shared"
)

// Loads knows how busy and how fast targets are, in this process. The zero value knows nothing.
type Loads struct {
	mu        sync.Mutex           // guards of
	byCircuit map[shared.Key]*load // by circuit
}

// InProcess are the loads of this process. They outlive a configuration.
var InProcess Loads

// load is what is known of a target. The lock of Loads guards it.
type load struct {
	underWay int
	tried    time.Time // when a call last began, zero if none did
	limited  time.Time // until then, the provider refuses calls; zero if it does not
	times    [32]timing
	next     int           // of times
	median   time.Duration // of those of the five minutes before the last answer
	stale    bool          // an answer came since the median was computed
	output   int64         // mean of the last answers, in tokens; 0 is unknown
}

// timing is how long an answer took to begin.
type timing struct {
	at    time.Time // zero if there was none
	first time.Duration
}

const (
	// recently is how long a timing counts.
	recently = 5 * time.Minute
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
	current.times[current.next] = timing{time.Now(), first}
	current.next = (current.next + 1) % len(current.times)
	current.stale = true
	switch {
	case output <= 0:
	case current.output == 0:
		current.output = output
	default:
		current.output += (output - current.output) / 8
	}
}

// last is the timing of the last answer.
func (l *load) last() timing { return l.times[(l.next+len(l.times)-1)%len(l.times)] }

// setMedian computes the median once for the last answer: a call asks for it at each of several targets,
// and one whose model has a single target never does.
func (l *load) setMedian() {
	var times [len(l.times)]time.Duration
	n, end := 0, l.last().at
	for _, t := range l.times {
		if !t.at.IsZero() && end.Sub(t.at) < recently {
			times[n] = t.first
			n++
		}
	}
	slices.Sort(times[:n])
	l.median, l.stale = times[n/2], false
}

// Limited notes that a target refuses calls for a time, because of a limit or an empty account.
func (l *Loads) Limited(circuit shared.Key, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.get(circuit).limited = time.Now().Add(min(max(wait, time.Second), maxLimited))
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

// Of returns what is known of a target at the time now.
func (l *Loads) Of(circuit shared.Key, now time.Time) Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.byCircuit[circuit]
	if current == nil {
		return Load{Output: likelyOutput}
	}
	found := Load{UnderWay: current.underWay, Tried: now.Sub(current.tried) < time.Minute, Limited: now.Before(current.limited), Output: current.output}
	if found.Output == 0 {
		found.Output = likelyOutput
	}
	if now.Sub(current.last().at) < recently {
		if current.stale {
			current.setMedian()
		}
		found.Median = current.median
	}
	return found
}
