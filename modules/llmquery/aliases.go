package llmquery

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/routing"
)

// aliasEntry is an alias of the gateway with its targets, as an organisation can call them.
type aliasEntry struct {
	Alias    string           `json:"alias"`
	Strategy routing.Strategy `json:"strategy"`
	Split    *string          `json:"split"`
	Targets  []aliasTarget    `json:"targets"`
	// Shadows get calls that a target has answered, without an answer to anybody.
	Shadows []*routing.Shadow `json:"shadows"`
}

// aliasTarget is a model at an account, how it is now at this node, and which calls it gets.
type aliasTarget struct {
	routing.Description
	Weight int                        `json:"weight"`
	When   *string                    `json:"when"`
	Set    map[string]json.RawMessage `json:"set"`
	Limit  map[string]int64           `json:"limit"`
}

// listAliases answers the aliases by name. An alias that the organisation cannot call has no targets.
func listAliases(c *call) error {
	health := routing.Health{Breakers: c.store.Breakers(), Loads: &routing.InProcess}
	list := []aliasEntry{}
	for _, name := range slices.Sorted(maps.Keys(c.app.Aliases)) {
		alias := c.app.Aliases[name]
		e := aliasEntry{Alias: name, Strategy: cmp.Or(alias.Strategy, routing.InOrder), Targets: []aliasTarget{}, Shadows: append([]*routing.Shadow{}, alias.Shadows...)}
		if alias.Split != "" {
			e.Split = &alias.Split
		}
		targets, _, _ := c.app.Resolver(c.org).Resolve(name) // none, if the organisation cannot call it
		for _, p := range routing.Survey(targets, health) {
			e.Targets = append(e.Targets, targetOf(&p))
		}
		list = append(list, e)
	}
	return c.answer(apierror.Envelope{Data: list})
}

// getCatalog answers the catalogue in force.
func getCatalog(c *call) error { return c.answer(apierror.Envelope{Data: c.app.Catalog()}) }

func targetOf(p *routing.Place) aliasTarget {
	t := aliasTarget{Description: p.Describe(), Weight: p.Choice.EffectiveWeight(), Set: p.Choice.Set, Limit: p.Choice.Limit}
	if p.Choice.When != "" {
		t.When = &p.Choice.When
	}
	return t
}
