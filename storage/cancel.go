package storage

import "runtime"

// CancelCheck lets what takes long end with the query that it is for, and traffic have
// the processor meanwhile. A nil *CancelCheck does neither. It is not safe for
// concurrent use.
type CancelCheck struct {
	err   func() error
	steps int
	ended error
}

// NewCancelCheck returns a check that ends when err returns an error; err is a context's Err.
func NewCancelCheck(err func() error) *CancelCheck { return &CancelCheck{err: err} }

// stepsBetweenChecks is the number of steps, a letter or so each, between two looks at
// the context: less than a millisecond.
const stepsBetweenChecks = 64 << 10

// over counts steps and reports whether the query has ended. What is computed after the
// end is worth nothing.
func (p *CancelCheck) over(steps int) bool { return p != nil && p.spend(steps) }

func (p *CancelCheck) spend(steps int) bool {
	if p.steps += steps; p.steps >= stepsBetweenChecks && p.ended == nil {
		p.steps = 0
		p.ended = p.err()
		runtime.Gosched() // the scheduler would do so after 10 ms
	}
	return p.ended != nil
}

// CancellableOrder is an order for a sort that ends soon after the query: everything
// is equal then.
func CancellableOrder[T any](p *CancelCheck, compare func(a, b T) int) func(a, b T) int {
	const steps = 16 // of one comparison, about
	return func(a, b T) int {
		if p.over(steps) {
			return 0
		}
		return compare(a, b)
	}
}
