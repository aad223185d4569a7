package storage

import (
	"encoding/json"
	"slices"
)

// MaxFilterDepth bounds how deep branches nest, MaxFilterLeaves the leaves of
// one filter. They keep a query of the largest body from a stack or an SQL
// statement without end.
const (
	MaxFilterDepth  = 500
	MaxFilterLeaves = 1000
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
	f, err := p.node(0)
	if err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return f, nil
}

func (p *parser) node(depth int) (Filter, error) {
	t, err := p.token()
	switch {
	case err != nil:
		return nil, err
	case t == "all":
		return All{}, nil
	case t != json.Delim('{'):
		return nil, p.fail(`expected "all", a leaf or a branch, got %s`, describe(t))
	}
	var leaf *Leaf
	var branch *Branch
	var operator string
	err = p.members(func(key string) (err error) {
		isBranchKey := key == "left" || key == "operator" || key == "right"
		switch {
		case leaf != nil:
			return p.several("group", string(leaf.Field.Group), key)
		case !isBranchKey && branch != nil:
			return unknown(p, "key", key, []string{"left", "operator", "right"})
		case !isBranchKey:
			leaf = &Leaf{}
			return p.group(leaf, key)
		case branch == nil:
			branch = &Branch{}
			if depth == MaxFilterDepth {
				p.path = p.path[:1]
				return p.fail("branches nest deeper than %d", MaxFilterDepth)
			}
		}
		return p.into(key, func() error {
			switch key {
			case "left":
				branch.Left, err = p.node(depth + 1)
			case "right":
				branch.Right, err = p.node(depth + 1)
			default:
				operator, err = p.text()
				if err == nil && operator != "and" && operator != "or" {
					err = p.fail(`expected "and" or "or", got %s`, quote(operator))
				}
				branch.Or = operator == "or"
			}
			return err
		})
	})
	switch {
	case err != nil:
		return nil, err
	case leaf != nil:
		return leaf, nil
	case branch == nil:
		return All{}, nil
	case branch.Left == nil || branch.Right == nil || operator == "":
		return nil, p.fail("a branch takes left, operator and right, all three")
	}
	return branch, nil
}

// group reads what a leaf says of one group.
func (p *parser) group(l *Leaf, name string) error {
	g := Group(name)
	if !slices.Contains(allGroups, g) {
		return unknown(p, "group", name, p.groups)
	}
	if p.leaves++; p.leaves > MaxFilterLeaves {
		p.path = p.path[:1]
		return p.fail("more than %d leaves", MaxFilterLeaves)
	}
	return p.into(name, func() error {
		if l.Field = LookupField(g, ""); l.Field != nil {
			return p.key(l)
		}
		return p.only("field", func(name string) error {
			if l.Field = LookupField(g, name); l.Field == nil {
				var names []string
				for _, f := range fields {
					if f.Group == g {
						names = append(names, f.Name)
					}
				}
				return unknown(p, "field", name, names)
			}
			return p.into(name, func() error {
				if l.Field.Map {
					return p.key(l)
				}
				return p.comparison(l)
			})
		})
	})
}

// key reads the name inside a map field and what stands under it.
func (p *parser) key(l *Leaf) error {
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
			switch kind {
			case Number:
				l.Number, err = p.number()
			case Time:
				l.Time, err = p.time()
			case Boolean:
				l.Bool, err = p.boolean()
			default:
				l.Text, err = p.text()
			}
			return err
		})
	})
}

// only reads an object with exactly one key, as rule 1 of the language asks.
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
