package storage

import "iter"

// Program is a filter as a sequence of tests. Each test names the test that follows,
// so that a filter of any depth is evaluated without recursion and no test is made
// that cannot matter.
type Program struct {
	Steps []Step
	start int
}

// Step tests one leaf, or one branch that Compile was told to take as a whole.
type Step struct {
	Filter Filter
	// onTrue and onFalse are indexes of Steps, or accept or reject.
	onTrue, onFalse int
}

const (
	accept = -1
	reject = -2
)

// Compile makes the program of a filter. complete reports which branches become a
// single step; nil splits all branches.
func Compile(f Filter, complete func(*Branch) bool) *Program {
	p := new(Program)
	p.start = p.compile(f, complete, accept, reject)
	return p
}

// compile adds the steps of a filter, and returns where it begins. The steps are added from
// the last to the first: a step must know what follows.
func (p *Program) compile(f Filter, complete func(*Branch) bool, onTrue, onFalse int) (start int) {
	b, isBranch := f.(*Branch)
	switch {
	case f == All{}:
		return onTrue
	case !isBranch || complete != nil && complete(b):
		p.Steps = append(p.Steps, Step{f, onTrue, onFalse})
		return len(p.Steps) - 1
	}
	right := p.compile(b.Right, complete, onTrue, onFalse)
	if b.Or {
		return p.compile(b.Left, complete, onTrue, right)
	}
	return p.compile(b.Left, complete, right, onFalse)
}

// Run reports whether the filter is true. holds reports whether the step with an index
// is true.
func (p *Program) Run(holds func(step int) bool) bool {
	i := p.start
	for i >= 0 {
		if holds(i) {
			i = p.Steps[i].onTrue
		} else {
			i = p.Steps[i].onFalse
		}
	}
	return i == accept
}

// Leaves yields the leaves of a filter from left to right.
func Leaves(f Filter) iter.Seq[*Leaf] {
	return func(yield func(*Leaf) bool) {
		for part := range parts(f, func(*Branch) bool { return true }) {
			if l, ok := part.(*Leaf); ok && !yield(l) {
				return
			}
		}
	}
}

// Conjuncts yields the parts of a filter that its topmost "and"s join, from left
// to right, without parts that are "all".
func Conjuncts(f Filter) iter.Seq[Filter] {
	return operands(f, false)
}

// Disjuncts yields the parts of a filter that its topmost "or"s join.
func Disjuncts(f Filter) iter.Seq[Filter] {
	return operands(f, true)
}

func operands(f Filter, or bool) iter.Seq[Filter] {
	return func(yield func(Filter) bool) {
		for part := range parts(f, func(b *Branch) bool { return b.Or == or }) {
			if (or || part != All{}) && !yield(part) {
				return
			}
		}
	}
}

// parts yields the parts of a filter from left to right. split reports whether a branch
// is split into its two sides; a branch that is not split is a part.
func parts(f Filter, split func(*Branch) bool) iter.Seq[Filter] {
	return func(yield func(Filter) bool) {
		rest := []Filter{f}
		for len(rest) > 0 {
			part := rest[len(rest)-1]
			rest = rest[:len(rest)-1]
			if b, ok := part.(*Branch); ok && split(b) {
				rest = append(rest, b.Right, b.Left)
			} else if !yield(part) {
				return
			}
		}
	}
}
