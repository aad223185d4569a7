package storage

// Patience lets what takes long end with the query that it is for. A nil
// *Patience does not end. It is not safe for concurrent use.
type Patience struct {
	err   func() error
	steps int
	ended error
}

// NewPatience ends when err, which is that of a context, answers an error.
func NewPatience(err func() error) *Patience { return &Patience{err: err} }

// patienceSteps is the number of steps, a letter or so each, between two looks at
// the context: less than a millisecond.
const patienceSteps = 64 << 10

// over counts steps and tells whether the query has ended. What is computed then
// is worth nothing.
func (p *Patience) over(steps int) bool { return p != nil && p.spend(steps) }

func (p *Patience) spend(steps int) bool {
	if p.steps += steps; p.steps >= patienceSteps && p.ended == nil {
		p.steps = 0
		p.ended = p.err()
	}
	return p.ended != nil
}

// Patient is an order for a sort that ends soon after the query: everything is
// equal then.
func Patient[T any](p *Patience, compare func(a, b T) int) func(a, b T) int {
	const steps = 16 // of one comparison, about
	return func(a, b T) int {
		if p.over(steps) {
			return 0
		}
		return compare(a, b)
	}
}
