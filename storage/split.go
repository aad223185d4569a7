package storage

// Split is a filter over requests and over what they add up to, split in two. A
// part is what the topmost "and"s join.
type Split struct {
	// Requests are the parts with leaves about requests alone. They choose the
	// requests before aggregation.
	Requests Filter
	// Groups are the other parts. They choose among users or sessions: of their
	// largest subtrees with leaves about requests alone, one is true of a user or
	// session when it is true of any of its requests.
	Groups Filter
	about  branchSubjects
}

// SplitFilter splits a filter.
func SplitFilter(f Filter) *Split {
	s := &Split{Requests: All{}, Groups: All{}, about: subjectsOf(f)}
	for part := range Conjuncts(f) {
		if s.about.of(part)&aboutGroups == 0 {
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
	rest := []Filter{f}
	for len(rest) > 0 {
		b, ok := rest[len(rest)-1].(*Branch)
		switch _, entered := about[b]; {
		case ok && !entered:
			about[b] = 0
			rest = append(rest, b.Left, b.Right)
			continue
		case ok:
			about[b] = about.of(b.Left) | about.of(b.Right)
		}
		rest = rest[:len(rest)-1]
	}
	return about
}

func (about branchSubjects) of(f Filter) subjects {
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
		if g.questionOf[i] = -1; s.about.of(step.Filter) == aboutRequests {
			g.questionOf[i] = len(g.questions)
			g.questions = append(g.questions, step.Filter)
		}
	}
	return g
}

// all is true when every group is chosen.
func (g *groupFilter) all() bool { return len(g.program.Steps) == 0 && g.program.start == accept }

// matches tells whether a group is chosen. value is what a field has there.
func (g *groupFilter) matches(group *GroupTotals, value func(*Field) Value) bool {
	return g.program.Run(func(step int) bool {
		if i := g.questionOf[step]; i >= 0 {
			return group.Any[i]
		}
		l := g.program.Steps[step].Filter.(*Leaf)
		return !g.cancel.over(1) && value(l.Field).match(l, g.cancel)
	})
}
