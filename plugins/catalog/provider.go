package catalog

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

type provider struct {
	id       string
	fallback []string // providers whose models this one resells
	models   []*Model // by id
	ruled    []*Model // those with match rules, in the order of the data
	named    map[string]*Model
	found    names
	// shared is true while another catalogue has the same models.
	shared bool
}

// copyModels copies the models if another catalogue has them, too. Their lists and prices stay shared: reading a
// catalogue replaces them.
func (p *provider) copyModels() {
	if !p.shared {
		return
	}
	models, named, ruled := p.models, p.named, p.ruled
	p.models, p.named, p.ruled, p.shared = nil, make(map[string]*Model, len(named)), nil, false
	copies := make(map[*Model]*Model, len(models))
	for _, m := range models {
		c := *m
		copies[m] = &c
		p.models = append(p.models, &c)
	}
	for name, m := range named {
		p.named[name] = copies[m]
	}
	for _, m := range ruled {
		p.ruled = append(p.ruled, copies[m])
	}
}

// index makes models found by their names. An alias of fresh wins over an alias of others, and an id over any
// alias.
func (p *provider) index(fresh []*Model) {
	slices.SortFunc(p.models, func(a, b *Model) int { return cmp.Compare(a.ID, b.ID) })
	clear(p.named)
	for _, m := range p.models {
		p.named[m.ID] = m
	}
	for _, models := range [][]*Model{fresh, p.models} {
		for _, m := range models {
			for _, alias := range m.Aliases {
				if p.named[alias] == nil {
					p.named[alias] = m
				}
			}
		}
	}
	ruled := slices.Concat(fresh, p.ruled)
	p.ruled = nil
	for _, m := range ruled {
		if m.Match != nil && !slices.Contains(p.ruled, m) {
			p.ruled = append(p.ruled, m)
		}
	}
}

func (p *provider) find(name string) *Model {
	if m := p.named[name]; m != nil {
		return m
	}
	if i := slices.IndexFunc(p.ruled, func(m *Model) bool { return m.Match.Matches(name) }); i >= 0 {
		return p.ruled[i]
	}
	return nil
}

// Clients choose the names that are looked up, so both their length, in bytes,
// and how many of them a provider remembers have a bound.
const (
	maxName  = 256
	maxNames = 1024
)

// names remembers the models of names that are no ids, nil for names without a model, so that one search does
// for many calls.
type names struct {
	mu     sync.RWMutex // guards models
	models map[string]*Model
}

func (n *names) get(name string) (m *Model, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	m, ok = n.models[name]
	return m, ok
}

func (n *names) put(name string, m *Model) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.models == nil || len(n.models) >= maxNames {
		n.models = make(map[string]*Model)
	}
	n.models[strings.Clone(name)] = m
}
