package storage

// Support is how well a backend answers a leaf by itself.
type Support uint8

const (
	// Unsupported: it does not.
	Unsupported Support = iota
	// Superset: it answers all records that match the leaf, and others.
	Superset
	// Exact: it returns the records that match the leaf.
	Exact
)

// Plan is a filter split for a backend that answers some leaves by itself.
type Plan struct {
	// Prefilter is what the backend asks for. It has supported leaves only, and matches
	// every record that the filter matches.
	Prefilter Filter
	// Residual is what a Matcher decides on the records that come: a record that matches
	// the Prefilter matches the filter when it matches the Residual too. Residual is All
	// where the backend answers exactly.
	Residual Filter
}

// PlanFilter splits a filter by what a backend declares of each leaf. support
// must give a leaf the same answer each time.
func PlanFilter(f Filter, support func(*Leaf) Support) Plan {
	p := Plan{Prefilter: All{}, Residual: All{}}
	for part := range Conjuncts(f) {
		p.Prefilter = And(p.Prefilter, prefilter(part, support))
		for l := range Leaves(part) {
			if support(l) != Exact {
				p.Residual = And(p.Residual, part)
				break
			}
		}
	}
	return p
}

// prefilter returns the filter with All in place of unsupported leaves.
func prefilter(f Filter, support func(*Leaf) Support) Filter {
	switch f := f.(type) {
	case *Branch:
		left, right := prefilter(f.Left, support), prefilter(f.Right, support)
		switch {
		case !f.Or:
			return And(left, right)
		case left == All{} || right == All{}:
			return All{}
		}
		return &Branch{Or: true, Left: left, Right: right}
	case *Leaf:
		if support(f) == Unsupported {
			return All{}
		}
	}
	return f
}

// And joins two filters.
func And(a, b Filter) Filter {
	switch {
	case a == All{}:
		return b
	case b == All{}:
		return a
	}
	return &Branch{Left: a, Right: b}
}

// Or joins two filters. A nil filter is left out.
func Or(a, b Filter) Filter {
	if a == nil {
		return b
	}
	return &Branch{Or: true, Left: a, Right: b}
}

// Split is a filter over requests and over what they add up to, split in two. The
// filter's parts are the operands that the topmost "and"s join.
type Split struct {
	// Requests are the parts with leaves about requests alone. They choose the
	// requests before aggregation.
	Requests Filter
	// Groups are the other parts. They choose among users or sessions. A largest subtree
	// with leaves about requests alone is true of a user or session when the subtree is
	// true of any request of the user or session.
	Groups Filter
	about  branchSubjects
}

// SplitFilter splits a filter.
func SplitFilter(f Filter) *Split {
	s := &Split{Requests: All{}, Groups: All{}, about: subjectsOf(f)}
	for part := range Conjuncts(f) {
		if s.about.lookup(part)&aboutGroups == 0 {
			s.Requests = And(s.Requests, part)
		} else {
			s.Groups = And(s.Groups, part)
		}
	}
	return s
}

// subjects is what the leaves of a filter are about.
type subjects uint8

const (
	aboutRequests subjects = 1 << iota
	aboutGroups
)

// branchSubjects are the subjects of all branches of a filter.
type branchSubjects map[*Branch]subjects

func subjectsOf(f Filter) branchSubjects {
	about := make(branchSubjects)
	about.add(f)
	return about
}

// add enters the branches of a filter, and returns the subjects of the filter.
func (about branchSubjects) add(f Filter) subjects {
	if b, ok := f.(*Branch); ok {
		about[b] = about.add(b.Left) | about.add(b.Right)
	}
	return about.lookup(f)
}

func (about branchSubjects) lookup(f Filter) subjects {
	switch f := f.(type) {
	case *Branch:
		return about[f]
	case *Leaf:
		if f.Field.Applies() {
			return aboutRequests
		}
		return aboutGroups
	}
	return 0
}

// groupFilter decides which groups a filter chooses.
type groupFilter struct {
	program *Program
	cancel  *CancelCheck
	// questions are the subtrees about requests, and questionOf their indexes by step
	// of the program; -1 for leaves about groups.
	questions  []Filter
	questionOf []int
}

// groupFilter makes the filter that chooses among groups.
func (s *Split) groupFilter(cancel *CancelCheck) *groupFilter {
	p := Compile(s.Groups, func(b *Branch) bool { return s.about[b] == aboutRequests })
	g := &groupFilter{program: p, cancel: cancel, questionOf: make([]int, len(p.Steps))}
	for i, step := range p.Steps {
		if g.questionOf[i] = -1; s.about.lookup(step.Filter) == aboutRequests {
			g.questionOf[i] = len(g.questions)
			g.questions = append(g.questions, step.Filter)
		}
	}
	return g
}

// all reports whether every group is chosen.
func (g *groupFilter) all() bool { return len(g.program.Steps) == 0 && g.program.start == accept }

// comparesKeys reports whether leaves compare the keys of groups: all texts are keys.
func (g *groupFilter) comparesKeys() bool {
	for i, step := range g.program.Steps {
		if g.questionOf[i] < 0 && step.Filter.(*Leaf).Field.Kind == Text {
			return true
		}
	}
	return false
}

// matches reports whether a group is chosen. value returns the group's value of a field.
func (g *groupFilter) matches(group *GroupTotals, value func(*Field) Value) bool {
	return g.program.Run(func(step int) bool {
		if i := g.questionOf[step]; i >= 0 {
			return group.Any[i]
		}
		l := g.program.Steps[step].Filter.(*Leaf)
		return !g.cancel.over(1) && value(l.Field).match(l, g.cancel)
	})
}
