package llmgateway

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/translate"
)

// target is a model at an account: where an attempt can go.
type target struct {
	account *llmapp.Account
	model   string         // as the provider names it
	listed  *catalog.Model // nil where the catalogue does not know it
}

// name is how clients can name exactly this target.
func (t target) name() string { return t.account.Label + "/" + t.model }

// resolver knows what the names of models mean to one organisation.
type resolver struct {
	catalog  *catalog.Catalog
	accounts []*llmapp.Account // the organisation's own, then the house's
	aliases  map[string][]string
}

// maxModel bounds the length of the field model, in bytes.
const maxModel = 2 << 10

// resolve returns the targets of the field model in the order in which they are
// tried. Names that nobody serves are left out with a warning where others are
// served, and else a 404.
func (r *resolver) resolve(model string) (targets []target, warnings []string, err error) {
	if len(model) > maxModel {
		return nil, nil, plugins.Invalid("model", "The model is over %d bytes long.", maxModel)
	}
	var missing []string
	add := func(name string) {
		found := r.entry(name)
		if found == nil {
			missing = append(missing, name)
		}
		for _, t := range found {
			if !slices.Contains(targets, t) {
				targets = append(targets, t)
			}
		}
	}
	for name := range strings.SplitSeq(model, ",") {
		name = strings.TrimSpace(name)
		if models, ok := r.aliases[name]; ok {
			for _, m := range models {
				add(m)
			}
			continue
		}
		add(name)
	}
	if targets == nil {
		return nil, nil, r.notFound(missing)
	}
	for _, name := range missing {
		warnings = append(warnings, "model: no provider serves "+printable(name)+", left out")
	}
	return targets, warnings, nil
}

// entry returns the targets of one name that is no alias, by the first rule
// that finds any.
func (r *resolver) entry(name string) []target {
	label, model, labelled := strings.Cut(name, "/")
	if labelled {
		if found := r.at(label, model, r.serves); found != nil {
			return found
		}
	}
	if found := r.anywhere(name, r.lists); found != nil {
		return found
	}
	if labelled {
		if found := r.at(label, model, canServe); found != nil {
			return found
		}
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if found := r.at(name[i+1:], name[:i], canServe); found != nil {
			return found
		}
	}
	return r.anywhere(name, r.serves)
}

// at returns the accounts of that label which serve the model.
func (r *resolver) at(label, model string, serves func(*llmapp.Account, string) bool) []target {
	var found []target
	for _, a := range r.accounts {
		if a.Label == label && model != "" && serves(a, model) {
			found = append(found, r.target(a, model))
		}
	}
	return found
}

// anywhere returns all accounts that serve the model: the organisation's own
// before the house's, and of those the cheapest first.
func (r *resolver) anywhere(model string, serves func(*llmapp.Account, string) bool) []target {
	var found []target
	for _, a := range r.accounts {
		if serves(a, model) {
			found = append(found, r.target(a, model))
		}
	}
	slices.SortStableFunc(found, func(a, b target) int {
		if a.account.Platform != b.account.Platform {
			if b.account.Platform {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.price(), b.price())
	})
	return found
}

func (r *resolver) target(a *llmapp.Account, model string) target {
	listed, _ := r.catalog.Lookup(a.Provider, model)
	return target{a, model, listed}
}

// lists reports whether a serves the model under exactly this name.
func (r *resolver) lists(a *llmapp.Account, model string) bool {
	if a.Models != nil {
		return slices.Contains(a.Models, model)
	}
	m, ok := r.catalog.Lookup(a.Provider, model)
	return ok && (m.ID == model || slices.Contains(m.Aliases, model))
}

// serves reports whether a serves the model, however it is spelt.
func (r *resolver) serves(a *llmapp.Account, model string) bool {
	if a.Models != nil {
		return slices.Contains(a.Models, model)
	}
	_, ok := r.catalog.Lookup(a.Provider, model)
	return ok
}

// canServe is true of a model that a may well serve though nobody says so: one
// that is newer than the catalogue, or of a provider that it does not know.
func canServe(a *llmapp.Account, _ string) bool { return a.Models == nil }

// price compares targets: what as many tokens in as out cost. Unknown is last.
func (t target) price() plugins.Nanodollars {
	if t.listed == nil {
		return math.MaxInt64
	}
	const some = 1000
	cost := t.listed.Cost(plugins.Usage{Input: plugins.Known(some), Output: plugins.Known(some)}, "", time.Now())
	if !cost.Valid {
		return math.MaxInt64
	}
	return cost.N
}

// capabilities are what the catalogue knows of the target's model.
func (t target) capabilities() *translate.Capabilities {
	m := t.listed
	if m == nil {
		return nil
	}
	c := &translate.Capabilities{
		Input: m.Input, Output: m.Output, MaxOutput: m.MaxOutput,
		Reasoning: m.Reasoning, Efforts: m.Efforts, Interleaved: m.Interleaved,
		ToolCall: m.ToolCall, StructuredOutput: m.StructuredOutput, Temperature: m.Temperature,
	}
	if m.Budget != nil {
		c.MinBudget, c.MaxBudget = m.Budget.Min, m.Budget.Max
	}
	return c
}
