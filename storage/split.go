package storage

// Split is a filter over requests and over what they add up to, taken apart. A
// part is what the topmost "and"s join.
type Split struct {
	// Requests are the parts with leaves about requests alone. They choose the
	// requests before aggregation.
	Requests Filter
	// Groups are the other parts. They choose among users or sessions.
	Groups Filter
	// Any are the largest subtrees of Groups with leaves about requests alone.
	// One is true of a user or session when it is true of any of its requests.
	Any []Filter
}

// SplitFilter takes a filter apart.
func SplitFilter(f Filter) *Split {
	s := &Split{Requests: All{}, Groups: All{}}
	s.add(f)
	return s
}

func (s *Split) add(part Filter) {
	if b, ok := part.(*Branch); ok && !b.Or {
		s.add(b.Left)
		s.add(b.Right)
		return
	}
	if !hasLeaf(part, false) {
		s.Requests = and(s.Requests, part)
		return
	}
	s.Groups = and(s.Groups, part)
	s.collect(part)
}

// collect finds the subtrees about requests alone.
func (s *Split) collect(f Filter) {
	switch b, ok := f.(*Branch); {
	case !hasLeaf(f, true):
	case !hasLeaf(f, false):
		s.Any = append(s.Any, f)
	case ok:
		s.collect(b.Left)
		s.collect(b.Right)
	}
}

// hasLeaf tells whether any leaf is about requests, or any is not.
func hasLeaf(f Filter, aboutRequests bool) bool {
	for l := range Leaves(f) {
		if l.Field.Applies() == aboutRequests {
			return true
		}
	}
	return false
}

// and joins two filters.
func and(a, b Filter) Filter {
	switch {
	case a == All{}:
		return b
	case b == All{}:
		return a
	}
	return &Branch{Left: a, Right: b}
}

// chooser decides which groups a filter chooses.
type chooser struct {
	groups   Filter
	patience *CancelCheck
	// any are the groups of which each of Split.Any is true.
	any map[Filter]map[int]bool
}

// choose scans for what the filter says of any request of a group.
func (s *Split) choose(rows Rows, w Window, p *CancelCheck) (*chooser, error) {
	c := &chooser{groups: s.Groups, patience: p, any: make(map[Filter]map[int]bool)}
	for _, f := range s.Any {
		groups := make(map[int]bool)
		err := rows.Scan(and(s.Requests, f), w, func(r *Row) bool {
			groups[r.Group] = true
			return true
		})
		if err != nil {
			return nil, err
		}
		c.any[f] = groups
	}
	return c, nil
}

// all is true when every group is chosen.
func (c *chooser) all() bool { return c.groups == All{} }

// matches tells whether a group is chosen. value is what a field has there.
func (c *chooser) matches(group int, value func(*Field) attribute) bool {
	return c.match(c.groups, group, value)
}

func (c *chooser) match(f Filter, group int, value func(*Field) attribute) bool {
	if groups, ok := c.any[f]; ok {
		return groups[group]
	}
	switch f := f.(type) {
	case *Branch:
		if f.Or {
			return c.match(f.Left, group, value) || c.match(f.Right, group, value)
		}
		return c.match(f.Left, group, value) && c.match(f.Right, group, value)
	case *Leaf:
		return value(f.Field).match(f, c.patience)
	}
	return true
}
