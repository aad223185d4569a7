package llmgateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// notFound is the 404 for names that nobody serves. It tells what could have
// been meant.
func (r *resolver) notFound(names []string) error {
	quoted := make([]string, len(names))
	var near []string
	for i, name := range names {
		quoted[i] = "'" + printable(name) + "'"
		near = append(near, r.near(name)...)
	}
	e := &plugins.Error{
		Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("No provider that you can use serves the model %s.", strings.Join(quoted, ", ")),
	}
	if len(near) > 0 {
		e.Message += " Did you mean " + strings.Join(slices.Compact(near), ", ") + "?"
	}
	return e
}

// maxNear is the number of names that are proposed for one that is not found.
const maxNear = 3

// near returns the names of models that are served and spelt almost like name.
func (r *resolver) near(name string) []string {
	if len(name) > 64 {
		return nil
	}
	type candidate struct {
		id    string
		edits int
	}
	name = strings.ToLower(name)
	var found []candidate
	consider := func(id string) {
		edits := distance(name, strings.ToLower(id))
		if edits <= max(1, len(name)/4) {
			found = append(found, candidate{id, edits})
		}
	}
	providers := make(map[string]bool)
	for _, a := range r.accounts {
		for _, id := range a.Models {
			consider(id)
		}
		providers[a.Provider] = providers[a.Provider] || a.Models == nil
	}
	for m := range r.catalog.Models() {
		if providers[m.Provider] && len(m.Input) > 0 {
			consider(m.ID)
		}
	}
	for alias := range r.aliases {
		consider(alias)
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if a.edits != b.edits {
			return a.edits - b.edits
		}
		return strings.Compare(a.id, b.id)
	})
	var ids []string
	for _, c := range found {
		if len(ids) < maxNear && !slices.Contains(ids, c.id) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// distance is the number of bytes to insert, delete or replace to make b of a
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := diagonal
			if a[i] != b[j] {
				edits = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}

// printable is a name as a message or a header can carry it.
func printable(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, name[:min(len(name), 128)])
}
