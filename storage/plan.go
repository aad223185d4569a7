package storage

// Support is how well a backend answers a leaf by itself.
type Support uint8

const (
	// Unsupported: it does not.
	Unsupported Support = iota
	// Superset: it answers all records of which the leaf is true, and others.
	Superset
	// Exact: it answers the records of which the leaf is true.
	Exact
)

// Plan is a filter split for a backend that answers some leaves by itself.
type Plan struct {
	// Prefilter is what the backend asks for: it has none but supported leaves, and is
	// true of every record of which the filter is.
	Prefilter Filter
	// Residual is what a Matcher decides on the records that come: a record of the
	// Prefilter is one of the filter when the Residual is true of it. It is All where
	// the backend answers exactly.
	Residual Filter
}

// PlanFilter splits a filter by what a backend declares of each leaf. support
// answers the same of a leaf each time.
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

// prefilter is the filter with All in place of what is not supported.
func prefilter(f Filter, support func(*Leaf) Support) Filter {
	type part struct {
		Filter
		joins bool // both sides of the branch are done
	}
	var done []Filter
	rest := []part{{Filter: f}}
	for len(rest) > 0 {
		next := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		switch f := next.Filter.(type) {
		case *Branch:
			if !next.joins {
				rest = append(rest, part{f, true}, part{Filter: f.Right}, part{Filter: f.Left})
				continue
			}
			left, right := done[len(done)-2], done[len(done)-1]
			done = done[:len(done)-2]
			switch {
			case !f.Or:
				done = append(done, And(left, right))
			case left == All{} || right == All{}:
				done = append(done, All{})
			default:
				done = append(done, &Branch{Or: true, Left: left, Right: right})
			}
		case *Leaf:
			if support(f) == Unsupported {
				done = append(done, All{})
			} else {
				done = append(done, f)
			}
		default:
			done = append(done, f)
		}
	}
	return done[0]
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
