package storage

import (
	"encoding/json"
	"slices"
)

// ParseFilter reads and type-checks a node of the filter language. Absent raw,
// "all" and {} are All. groups are those that the endpoint knows, all if none is
// given; errors name them, but a leaf of another group of the language is no
// error here, see Groups. Errors are *FilterError.
func ParseFilter(raw []byte, groups ...Group) (Filter, error) {
	p := newParser("filter", raw)
	p.groups = groups
	if len(groups) == 0 {
		p.groups = allGroups
	}
	if p.absent() {
		return All{}, nil
	}
	f, err := p.filter()
	if err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return f, nil
}

// openBranch is a branch of which not all members have been read.
type openBranch struct {
	*Branch
	operator string
	// side is where the filter that is being read belongs.
	side *Filter
}

// filter reads a filter as deep as it may be: the branches that are open stand
// on a stack.
func (p *parser) filter() (Filter, error) {
	var open []*openBranch
	for {
		f, b, err := p.node()
		if err != nil {
			return nil, err
		}
		if b != nil {
			open = append(open, b)
		}
		for b == nil || b.side == nil {
			if b != nil {
				f, open = b.Branch, open[:len(open)-1]
			}
			if len(open) == 0 {
				return f, nil
			}
			b = open[len(open)-1]
			*b.side = f
			p.path = p.path[:len(p.path)-1]
			if err := p.branch(b); err != nil {
				return nil, err
			}
		}
	}
}

// node reads "all", a leaf, or a branch up to the filter on its first side.
func (p *parser) node() (Filter, *openBranch, error) {
	t, err := p.token()
	switch {
	case err != nil:
		return nil, nil, err
	case t == "all":
		return All{}, nil, nil
	case t != json.Delim('{'):
		return nil, nil, p.fail(`expected "all", a leaf or a branch, got %s`, describe(t))
	}
	key, more, err := p.key()
	switch {
	case err != nil:
		return nil, nil, err
	case !more:
		return All{}, nil, nil
	case slices.Contains(branchKeys, key):
		b := &openBranch{Branch: new(Branch)}
		if more, err = p.member(b, key); more && err == nil {
			err = p.branch(b)
		}
		return nil, b, err
	}
	l := new(Leaf)
	if err := p.group(l, key); err != nil {
		return nil, nil, err
	}
	second, more, err := p.key()
	if more && err == nil {
		err = p.several("group", key, second)
	}
	return l, nil, err
}

var branchKeys = []string{"left", "operator", "right"}

// branch reads the members of a branch up to the next filter in it, or to its
// end; then it has no side.
func (p *parser) branch(b *openBranch) error {
	for {
		key, more, err := p.key()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if more, err = p.member(b, key); err != nil || !more {
			return err
		}
	}
	if b.side = nil; b.Left == nil || b.Right == nil || b.operator == "" {
		return p.fail("a branch takes left, operator and right, all three")
	}
	return nil
}

// member reads a member of a branch; more is false when a filter comes next.
func (p *parser) member(b *openBranch, key string) (more bool, err error) {
	switch key {
	case "left":
		b.side = &b.Left
	case "right":
		b.side = &b.Right
	case "operator":
		if b.operator != "" {
			return false, p.fail("duplicate key %s", quote(key))
		}
		return true, p.into(key, func() error {
			b.operator, err = p.text()
			if err == nil && b.operator != "and" && b.operator != "or" {
				err = p.fail(`expected "and" or "or", got %s`, quote(b.operator))
			}
			b.Or = b.operator == "or"
			return err
		})
	default:
		return false, p.fail("%s", Unknown("key", key, branchKeys))
	}
	if *b.side != nil {
		return false, p.fail("duplicate key %s", quote(key))
	}
	p.path = append(p.path, key)
	return false, nil
}

// group reads what a leaf says of one group.
func (p *parser) group(l *Leaf, name string) error {
	g := Group(name)
	if !slices.Contains(allGroups, g) {
		return p.fail("%s", Unknown("group", name, p.groups))
	}
	return p.into(name, func() error {
		if l.Field = LookupField(g, ""); l.Field != nil {
			return p.name(l)
		}
		return p.only("field", func(name string) error {
			if l.Field = LookupField(g, name); l.Field == nil {
				var names []string
				for _, f := range fields {
					if f.Group == g {
						names = append(names, f.Name)
					}
				}
				return p.fail("%s", Unknown("field", name, names))
			}
			return p.into(name, func() error {
				if l.Field.Map {
					return p.name(l)
				}
				return p.comparison(l)
			})
		})
	})
}

// name reads the name inside a map field and what stands under it.
func (p *parser) name(l *Leaf) error {
	return p.only("name", func(name string) error {
		l.Key = name
		return p.into(name, func() error { return p.comparison(l) })
	})
}

// comparison reads the operator and its value.
func (p *parser) comparison(l *Leaf) error {
	kind := l.Field.Kind
	return p.only("operator", func(name string) (err error) {
		operators := kind.Operators()
		i := slices.IndexFunc(operators, func(o Operator) bool { return o.String() == name })
		if i < 0 {
			return p.fail("unknown operator %s (%s fields take %s)", quote(name), kind, join(operators))
		}
		l.Op = operators[i]
		return p.into(name, func() error {
			switch {
			case kind == Boolean || l.Op == IsNull:
				l.Bool, err = p.boolean()
			case kind == Number:
				l.Number, err = p.number()
			case kind == Time:
				l.Time, err = p.time()
			default:
				l.Text, err = p.text()
			}
			return err
		})
	})
}

// only reads an object with exactly one key, since conditions are joined by branches alone.
func (p *parser) only(what string, member func(key string) error) error {
	first, found := "", false
	err := p.object(func(key string) error {
		if found {
			return p.several(what, first, key)
		}
		first, found = key, true
		return member(key)
	})
	if err == nil && !found {
		return p.fail("expected one %s, got an empty object", what)
	}
	return err
}

func (p *parser) several(what, first, second string) error {
	return p.fail("a leaf takes one %s, not %s and %s: join conditions with branches", what, quote(first), quote(second))
}
