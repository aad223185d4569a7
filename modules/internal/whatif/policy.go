// Package whatif says what recorded calls would have cost under another policy, without a call: other
// models, tiers, weights and caches. Where nobody can know, it gives a range, and says what it assumes.
package whatif

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/routing"
)

// Policy is how calls would have gone.
type Policy struct {
	routing.Alias
	// Tier is the service tier of all calls, such as `flex` or `batch`. Default: that of the
	// recorded call.
	Tier string
	// NoAffinity: calls go where the strategy sends them, whatever the provider's caches have.
	NoAffinity bool
	// CacheLife is how long providers keep what requests mark, `5m` or `1h`. Default: as long as
	// each recorded request has asked for.
	CacheLife string
	// Budgets refuse calls, as if they had been there from the first of them on. Default: none.
	Budgets []*money.Budget
	// Name is that of the alias of the configuration that the policy is, "" for another one.
	Name string

	arms map[string]bool // of all aliases of the configuration; nil without a Name
}

// maxModels and maxBudgets bound a policy, whose memory and time grow with both.
const (
	maxModels  = 100
	maxBudgets = 20
)

// longLife is the longer CacheLife.
const longLife = "1h"

// Parse reads a policy: the name of an alias, or the JSON of an alias, which may have the fields `tier`,
// `affinity`, `cache_life` and `budgets`, too. budget reads the settings of a budget.
func Parse(text []byte, aliases map[string]*routing.Alias, budget func([]byte) (*money.Budget, error)) (*Policy, error) {
	var name string
	if json.Unmarshal(text, &name) == nil {
		alias := aliases[name]
		if alias == nil {
			return nil, fmt.Errorf("there is no alias %s", name)
		}
		p := &Policy{Alias: *alias, Name: name, arms: armsOf(aliases)}
		return p, p.checkConditions()
	}
	var p Policy
	var models []string
	if json.Unmarshal(text, &models) == nil {
		p.Alias = *routing.InTheirOrder(models...)
	} else if err := p.parse(text, budget); err != nil {
		return nil, err
	}
	if n := len(p.Models) + len(p.Shadows); n > maxModels {
		return nil, fmt.Errorf("it has %d models: at most %d can be tried at once", n, maxModels)
	}
	if err := p.Check(func(name string) bool { return aliases[name] != nil }); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(aliases)) { // the one that ran is known by its name
		if p.Tier == "" && !p.NoAffinity && p.CacheLife == "" && same(&p.Alias, aliases[name]) {
			p.Name, p.arms = name, armsOf(aliases)
		}
	}
	return &p, p.checkConditions()
}

// armsOf returns the arms that records of calls of the aliases have.
func armsOf(aliases map[string]*routing.Alias) map[string]bool {
	arms := make(map[string]bool)
	for _, alias := range aliases {
		for _, choice := range alias.Models {
			arms[routing.Target{Alias: alias, Choice: choice}.Arm()] = true
		}
	}
	return arms
}

// checkConditions refuses conditions that nobody can try on a record.
func (p *Policy) checkConditions() error {
	for _, m := range p.Models {
		if m.AsksForTools() {
			return errors.New("when: whether a recorded call had tools is not recorded")
		}
	}
	return nil
}

// figures are the columns of a record that the trial of any policy reads.
var figures = []string{
	"user", "session", "provider", "account", "arm", "model", "request_model", "dialect", "parent", "turn", "attempt_of", "answer_cache", "subscription", "stream",
	"cost", "reported_cost", "service_tier", "inference_geo",
	"input", "output", "billed_input", "billed_output", "cache_read", "cache_read_audio", "cache_write", "cache_write_1h", "reasoning",
	"input_audio", "input_image", "output_audio", "output_image", "web_searches", "search_units", "images", "pages", "audio_duration",
}

// Columns are the columns of a record that a trial of the policy reads, nil for all.
func (p *Policy) Columns() []string {
	columns := slices.Clone(figures)
	add := func(names []string, ok bool) bool {
		columns = append(columns, names...)
		return ok
	}
	for _, m := range p.Models {
		if !add(m.Columns()) {
			return nil
		}
	}
	for _, b := range p.Budgets {
		if !add(b.Columns()) {
			return nil
		}
	}
	slices.Sort(columns)
	return slices.Compact(columns)
}

// hasConditions reports whether models take some calls alone.
func (p *Policy) hasConditions() bool {
	return slices.ContainsFunc(p.Models, func(c *routing.Choice) bool { return c.When != "" })
}

// parse reads an alias with what a policy has beside it. A field that is misspelt is an error.
func (p *Policy) parse(text []byte, budget func([]byte) (*money.Budget, error)) error {
	type plain routing.Alias // without the list, which is read before
	settings := struct {
		plain
		Tier      string            `json:"tier"`
		Affinity  *bool             `json:"affinity"`
		CacheLife string            `json:"cache_life"`
		Budgets   []json.RawMessage `json:"budgets"`
	}{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&settings); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return errors.New("a policy is the name of an alias, a list of models, or an alias as JSON")
		}
		return fmt.Errorf("a policy is the name of an alias, a list of models, or an alias as JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	p.Alias, p.Tier = routing.Alias(settings.plain), settings.Tier
	p.NoAffinity = settings.Affinity != nil && !*settings.Affinity
	if p.CacheLife = settings.CacheLife; p.CacheLife != "" && p.CacheLife != longLife && p.CacheLife != "5m" {
		return fmt.Errorf("cache_life %s: want 5m or %s", p.CacheLife, longLife)
	}
	if n := len(settings.Budgets); n > maxBudgets {
		return fmt.Errorf("budgets: there are %d: at most %d can be tried at once", n, maxBudgets)
	}
	for _, text := range settings.Budgets {
		b, err := budget(text)
		if err != nil {
			return fmt.Errorf("budgets: %w", err)
		}
		p.Budgets = append(p.Budgets, b)
	}
	return nil
}

// same reports whether two aliases are the same policy.
func same(a, b *routing.Alias) bool {
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b) // both were read from JSON, or could have been
	return bytes.Equal(one, other)
}

const trialName = "whatif"

// resolve returns the targets of a policy, and warnings of models that the organisation cannot call. A policy
// that is not in force may name providers that have no key yet.
func (p *Policy) resolve(r *routing.Resolver) ([]routing.Target, []string, error) {
	aliases := map[string]*routing.Alias{trialName: &p.Alias}
	if p.Name != "" {
		named := &routing.Resolver{Catalog: r.Catalog, Accounts: r.Accounts, Keyless: r.Keyless, Aliases: aliases}
		return named.Resolve(trialName)
	}
	callable := &routing.Resolver{Catalog: r.Catalog, Accounts: r.Accounts, Aliases: aliases}
	if targets, missing, err := callable.Resolve(trialName); err == nil && len(missing) == 0 {
		return targets, nil, nil
	}
	every := &routing.Resolver{Catalog: r.Catalog, Accounts: slices.Concat(r.Accounts, r.Keyless), Aliases: aliases}
	return every.Resolve(trialName)
}
