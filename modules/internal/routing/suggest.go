package routing

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/nearest"
	"github.com/weirhq/weir/plugins"
)

// notFound returns the 404 for names that no account serves. The error says why, and names
// models that are served.
func (r *Resolver) notFound(names []string) error {
	e := &plugins.Error{
		Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("No provider that you can use serves the model %s.", quote(names)),
	}
	if reasons := r.missingKeys(names); len(reasons) > 0 {
		e.Message += " " + strings.Join(reasons, " ")
		return e
	}
	var near []string
	for _, name := range names {
		near = append(near, r.near(name)...)
	}
	if len(near) > 0 {
		e.Message += " Did you mean " + strings.Join(slices.Compact(near), ", ") + "?"
	}
	if labels := r.labels(); len(labels) > 0 {
		e.Message += " The labels of providers are: " + strings.Join(labels, ", ") + "."
	} else {
		e.Message += " No provider is configured with a key: add one with `provider` in the `llm` block."
	}
	return e
}

// missingKeys says which names an account would serve if it had a key.
func (r *Resolver) missingKeys(names []string) []string {
	var reasons []string
	for _, a := range r.Keyless {
		serves := func(name string) bool {
			return strings.HasPrefix(name, a.Label+"/") || strings.HasSuffix(name, "/"+a.Label) || r.lists(a, name)
		}
		if slices.ContainsFunc(names, serves) {
			reasons = append(reasons, fmt.Sprintf("The provider '%s' has no API key: set %s.", a.Label, a.KeyEnv()))
		}
	}
	return reasons
}

// labels returns the labels of the accounts that can be called, each once.
func (r *Resolver) labels() []string {
	var labels []string
	for _, a := range r.Accounts {
		if !slices.Contains(labels, a.Label) {
			labels = append(labels, a.Label)
		}
	}
	return labels
}

// maxNear is the number of names that are proposed for one that is not found.
const maxNear = 3

// near returns the served models whose names are spelt almost like name. A name whose label does
// not exist is compared without the label, too.
func (r *Resolver) near(name string) []string {
	if len(name) > 64 {
		return nil
	}
	type candidate struct {
		id    string
		edits int
	}
	name = strings.ToLower(name)
	_, bare, _ := strings.Cut(name, "/")
	var found []candidate
	consider := func(id string) {
		lower := strings.ToLower(id)
		edits := nearest.Distance(name, lower)
		if bare != "" {
			edits = min(edits, nearest.Distance(bare, lower))
		}
		if edits <= max(1, len(name)/4) {
			found = append(found, candidate{id, edits})
		}
	}
	providers := make(map[string]bool)
	for _, a := range r.Accounts {
		for _, id := range a.Models {
			consider(id)
		}
		providers[a.Provider] = providers[a.Provider] || a.Models == nil
	}
	for m := range r.Catalog.Models() {
		if providers[m.Provider] && len(m.Input) > 0 {
			consider(m.ID)
		}
	}
	for alias := range r.Aliases {
		consider(alias)
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(a.edits-b.edits, strings.Compare(a.id, b.id))
	})
	var ids []string
	for _, c := range found {
		if len(ids) < maxNear && !slices.Contains(ids, c.id) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

func quote(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "'" + printable(name) + "'"
	}
	return strings.Join(quoted, ", ")
}

// printable returns a name as a message or a header can carry it: in printable
// ASCII, and at most 128 bytes long.
func printable(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, name[:min(len(name), 128)])
}
