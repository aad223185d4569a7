package storage

import (
	"encoding/json"
	"slices"
)

// ParseFilter reads and type-checks a node of the filter language. Absent raw,
// "all" and {} are All. groups are the groups that the endpoint knows, all groups if none
// is given. Errors name these groups, but a leaf of another group of the language is no
// error here, see Groups. Errors are *FilterError.
func ParseFilter(raw []byte, groups ...Group) (Filter, error) {
	p := newFilterParser(raw, groups)
	if p.absent() {
		return All{}, nil
	}
	return p.complete()
}

// ParseExplicitFilter is ParseFilter for what chooses records to change or to erase: only "all" is All.
// Absent raw, and {} anywhere in the filter, are errors, because they may stand for a value that is missing.
func ParseExplicitFilter(raw []byte, groups ...Group) (Filter, error) {
	p := newFilterParser(raw, groups)
	p.explicit = true
	return p.complete()
}

func newFilterParser(raw []byte, groups []Group) *parser {
	p := newParser("filter", raw)
	p.groups = groups
	if len(groups) == 0 {
		p.groups = allGroups
	}
	return p
}

// complete reads a filter after which nothing follows.
func (p *parser) complete() (Filter, error) {
	if p.explicit && p.absent() {
		return nil, p.fail(`expected "all", a leaf or a branch, got nothing`)
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

// filter reads "all", a leaf or a branch.
func (p *parser) filter() (Filter, error) {
	t, err := p.token()
	switch {
	case err != nil:
		return nil, err
	case t == "all":
		return All{}, nil
	case t != json.Delim('{'):
		return nil, p.fail(`expected "all", a leaf or a branch, got %s`, describe(t))
	}
	key, more, err := p.key()
	switch {
	case err != nil:
		return nil, err
	case !more && p.explicit:
		return nil, p.fail(`expected "all", a leaf or a branch, got an empty object`)
	case !more:
		return All{}, nil
	case slices.Contains(branchKeys, key):
		return p.branch(key)
	}
	l := new(Leaf)
	if err := p.group(l, key); err != nil {
		return nil, err
	}
	second, more, err := p.key()
	if more && err == nil {
		err = p.several("group", key, second)
	}
	return l, err
}

var branchKeys = []string{"left", "operator", "right"}

// branch reads the members of a branch. key is the first key, which was read already.
func (p *parser) branch(key string) (Filter, error) {
	b, operator := new(Branch), ""
	side := func(key string, of *Filter) error {
		return p.member(key, func() (err error) {
			*of, err = p.filter()
			return err
		})
	}
	err := p.members(key, true, func(key string) error {
		switch key {
		case "left":
			return side(key, &b.Left)
		case "right":
			return side(key, &b.Right)
		case "operator":
			return p.member(key, func() (err error) {
				operator, err = p.text()
				if err == nil && operator != "and" && operator != "or" {
					err = p.fail(`expected "and" or "or", got %s`, quote(operator))
				}
				b.Or = operator == "or"
				return err
			})
		}
		return p.fail("%s", Unknown("key", key, branchKeys))
	})
	if err == nil && (b.Left == nil || b.Right == nil || operator == "") {
		err = p.fail("a branch takes left, operator and right, all three")
	}
	return b, err
}

// group reads what a leaf says of one group.
func (p *parser) group(l *Leaf, name string) error {
	g := Group(name)
	if !slices.Contains(allGroups, g) {
		return p.fail("%s", Unknown("group", name, p.groups))
	}
	return p.member(name, func() error {
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
			return p.member(name, func() error {
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
		return p.member(name, func() error { return p.comparison(l) })
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
		return p.member(name, func() error {
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
