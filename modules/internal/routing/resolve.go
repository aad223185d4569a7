package routing

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Resolver knows which targets the names of models stand for, to one
// organisation. It remembers them: its fields must not change after the first call.
type Resolver struct {
	Catalog *catalog.Catalog
	// Accounts are the accounts that the organisation can call: its own, then the
	// accounts with platform credentials.
	Accounts []*providers.Account
	// Keyless are the accounts that are configured for all organisations and
	// have no key. They serve nothing, and explain why.
	Keyless []*providers.Account
	// Aliases are the aliases by their names.
	Aliases map[string]*Alias

	mu         sync.RWMutex
	remembered map[string][]Target // by the field model; guarded by mu
	size       int                 // of remembered, in bytes; guarded by mu
}

// maxRemembered bounds what a Resolver remembers, in bytes: clients choose the names of models, and their
// lengths. targetBytes is about what a target takes beside its names.
const (
	maxRemembered = 4 << 20
	targetBytes   = 512
)

// MaxModel bounds the length of the field model, in bytes.
const MaxModel = 2 << 10

// Resolve returns the targets of the field model in the order in which they are
// tried, which the caller must not change. A comma separates fallbacks. A name that no
// provider serves is left out with a warning if there are others, and else a 404.
func (r *Resolver) Resolve(model string) (targets []Target, warnings []string, err error) {
	r.mu.RLock()
	targets = r.remembered[model]
	r.mu.RUnlock()
	if targets != nil {
		return targets, nil, nil
	}
	if len(model) > MaxModel {
		return nil, nil, plugins.Invalid("model", "The model is over %d bytes long.", MaxModel)
	}
	model = strings.Clone(model) // the targets outlive the request
	if targets, warnings, err = r.resolve(model); err == nil && warnings == nil {
		r.remember(model, targets)
	}
	return targets, warnings, err
}

// remember remembers the targets of the field model. If they are too many, it forgets the others.
func (r *Resolver) remember(model string, targets []Target) {
	size := len(model)
	for i := range targets {
		size += targetBytes + len(targets[i].Name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.remembered == nil || r.size+size > maxRemembered {
		r.remembered, r.size = make(map[string][]Target), 0
	}
	if r.remembered[model] == nil {
		r.size += size
	}
	r.remembered[model] = targets
}

// resolve is Resolve for a model that is not remembered.
func (r *Resolver) resolve(model string) (targets []Target, warnings []string, err error) {
	var missing []string
	entries := 0
	add := func(name string, alias *Alias, choice *Choice) {
		found := r.entry(targets, name)[len(targets):] // after the targets, in the same memory
		if len(found) == 0 {
			missing = append(missing, name)
		}
		entries++
		for _, t := range found {
			t.Alias, t.Choice, t.entry = alias, choice, entries
			t.Lineage = lineage.Hash(string(t.Circuit[:]), t.Arm())
			if !slices.ContainsFunc(targets, func(other Target) bool { return t.repeats(&other) }) {
				targets = append(targets, t)
			}
		}
	}
	for name := range strings.SplitSeq(model, ",") {
		name = strings.TrimSpace(name)
		if alias, ok := r.Aliases[name]; ok {
			targets = slices.Grow(targets, len(alias.Models))
			for _, choice := range alias.Models {
				add(choice.Model, alias, choice)
			}
			continue
		}
		add(name, nil, nil)
	}
	if len(targets) == 0 {
		return nil, nil, r.notFound(missing)
	}
	for _, name := range missing {
		warnings = append(warnings, "model: no provider serves "+printable(name)+", left out")
	}
	return targets, warnings, nil
}

// entry appends the targets of one name that is no alias, by the first rule that
// finds any. The name of a model may have slashes of its own.
func (r *Resolver) entry(to []Target, name string) []Target {
	label, model, _ := strings.Cut(name, "/")
	if all := r.labelled(to, label, model, r.serves); len(all) > len(to) {
		return all
	}
	if found := r.unlabelled(name); found != nil {
		return append(to, found...)
	}
	if all := r.labelled(to, label, model, mayServe); len(all) > len(to) {
		return all
	}
	i := strings.LastIndexByte(name, '/')
	return r.labelled(to, name[i+1:], name[:max(i, 0)], mayServe)
}

// labelled appends the accounts of that label which serve the model.
func (r *Resolver) labelled(to []Target, label, model string, serves func(*providers.Account, string) bool) []Target {
	for _, a := range r.Accounts {
		if a.Label == label && model != "" && serves(a, model) {
			to = append(to, r.target(a, model))
		}
	}
	return to
}

// unlabelled returns the accounts that list the model under exactly this name:
// the organisation's own before platform accounts, and in each group the cheapest first.
func (r *Resolver) unlabelled(model string) []Target {
	var found []Target
	for _, a := range r.Accounts {
		if r.lists(a, model) {
			found = append(found, r.target(a, model))
		}
	}
	slices.SortStableFunc(found, func(a, b Target) int {
		if a.Account.Platform != b.Account.Platform {
			if b.Account.Platform {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.price(), b.price())
	})
	return found
}

func (r *Resolver) target(a *providers.Account, model string) Target {
	listed, _ := r.Catalog.Lookup(a.Provider, model)
	return Target{Deployment: a.Deployment(model, listed)}
}

// lists reports whether a serves the model under exactly this name.
func (r *Resolver) lists(a *providers.Account, model string) bool {
	if a.Models != nil {
		return slices.Contains(a.Models, model)
	}
	m, ok := r.Catalog.Lookup(a.Provider, model)
	return ok && (m.ID == model || slices.Contains(m.Aliases, model))
}

// serves reports whether a serves the model, however it is spelt.
func (r *Resolver) serves(a *providers.Account, model string) bool {
	if a.Models != nil {
		return slices.Contains(a.Models, model)
	}
	_, ok := r.Catalog.Lookup(a.Provider, model)
	return ok
}

// mayServe is true of an account that does not name its models: it may serve one
// that is newer than the catalogue.
func mayServe(a *providers.Account, _ string) bool { return a.Models == nil }
