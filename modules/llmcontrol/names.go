package llmcontrol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/nearest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// comparedFields are the fields by whose values budgets choose calls, with what people call them. Whoever
// misspells a value has a budget that counts nothing.
var comparedFields = map[string]string{
	"user_id": "user", "project": "project", "key_id": "key", "provider": "provider", "model": "model", "request_model": "model", "properties": "property",
}

// budgetWarnings says which values of a budget's filter nobody knows, and who shares a limit that
// looks like one of each.
func (c *call) budgetWarnings(b *budget) (all []string) {
	filter, err := storage.ParseFilter(b.Filter)
	if err != nil { // a budget has been made of it
		return nil
	}
	for leaf := range storage.Leaves(filter) {
		what := comparedFields[leaf.Field.Name]
		if what == "" || leaf.Op != storage.Equals || c.isKnown(leaf.Field.Name, leaf.Text) {
			continue
		}
		switch warning, err := c.neverCalled(what, leaf); {
		case err != nil:
			all = append(all, fmt.Sprintf("whether calls have the %s %q cannot be said now", what, leaf.Text))
		case warning != "":
			all = append(all, warning)
		}
	}
	if b.Per == nil {
		return all
	}
	if what, property := strings.CutPrefix(*b.Per, "property."); property || what == "user" || what == "project" {
		all = append(all, fmt.Sprintf("calls without a %s share one limit; per key gives each key its own", what))
	}
	return all
}

// isKnown reports whether a value is known without a call that has it.
func (c *call) isKnown(field, value string) bool {
	switch field {
	case "project":
		_, err := control.Named[control.Project](c.ctx, c.org, value)
		return err == nil
	case "key_id":
		_, err := control.Get[control.Key](c.ctx, c.org, value)
		return err == nil
	case "provider":
		return slices.Contains(c.providers(), value) || c.app.Catalog().Serves(value)
	case "model", "request_model":
		return slices.Contains(c.models(), value)
	}
	return false
}

// neverCalled returns a warning unless a call has had what a leaf asks for.
func (c *call) neverCalled(what string, leaf *storage.Leaf) (string, error) {
	field, name := leaf.Field.Name, what
	if leaf.Field.Map {
		field, name = storage.PropertyPrefix+leaf.Key, "property "+leaf.Key
	}
	dimension, err := storage.ParseDimension(field)
	if err != nil {
		return "", nil //nolint:nilerr // nothing groups by the field
	}
	j, err := c.store.Journal()
	if err != nil {
		return "", err
	}
	values := func(f storage.Filter) (*storage.Facets, error) {
		q := &storage.FacetQuery{Org: c.org.Name, Filter: f, Window: storage.Always, Fields: []storage.Dimension{dimension}}
		return q.Answer(c.ctx, j.Backend())
	}
	if found, err := values(alsoMasked(leaf, c.app.Maskers().Of(c.org.Name, mask.Content{}))); err != nil || found.Count > 0 {
		return "", err
	}
	usual, err := values(storage.All{})
	if err != nil {
		return "", err
	}
	known := []string{}
	for _, v := range usual.Fields[0].Values {
		known = append(known, v.Value)
	}
	switch what {
	case "model":
		known = append(known, c.models()...)
	case "provider":
		known = append(known, c.providers()...)
	case "project":
		known = append(known, c.projectLabels()...)
	}
	return fmt.Sprintf("no call has had the %s %q yet%s", name, leaf.Text, didYouMean(leaf.Text, known)), nil
}

// keyWarnings says which names of a key's settings nobody knows, and whether its project is none of
// those that there were before.
func (c *call) keyWarnings(s *control.Settings, before []string) (all []string) {
	if s.Project != "" && !slices.Contains(before, s.Project) {
		all = append(all, fmt.Sprintf("the project %q did not exist, and is created%s", s.Project, didYouMean(s.Project, before)))
	}
	var models []string
	if len(s.Models) > 0 {
		models = c.models()
	}
	for _, pattern := range s.Models {
		prefix, open := strings.CutSuffix(pattern, "*")
		if !slices.ContainsFunc(models, func(m string) bool { return m == pattern || open && strings.HasPrefix(m, prefix) }) {
			all = append(all, fmt.Sprintf("no provider is known to serve the model %q%s", pattern, didYouMean(pattern, models)))
		}
	}
	for _, label := range s.Providers {
		if known := c.providers(); !slices.Contains(known, label) && !c.app.Catalog().Serves(label) {
			all = append(all, fmt.Sprintf("there is no provider %q%s", label, didYouMean(label, known)))
		}
	}
	return all
}

// didYouMean proposes the known name that is nearest to one.
func didYouMean(name string, known []string) string {
	if near := nearest.Name(name, slices.DeleteFunc(known, func(k string) bool { return k == "" })); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// projectLabels are the labels of the organisation's projects that are in use.
func (c *call) projectLabels() (labels []string) {
	list, err := control.All[control.Project](c.ctx, c.org, control.Page{List: control.InUse})
	for i := 0; err == nil && i < len(list); i++ {
		labels = append(labels, list[i].Object.Label)
	}
	return labels
}

// providers are the labels of the providers that the organisation can call.
func (c *call) providers() (labels []string) {
	for _, a := range c.app.Accounts().Of(c.org.Name) {
		labels = append(labels, a.Label)
	}
	return labels
}

// models are the names by which models may be called: aliases, those of the catalogue, whoever
// serves them, and those that accounts list.
func (c *call) models() (names []string) {
	for alias := range c.app.Aliases {
		names = append(names, alias)
	}
	for m := range c.app.Catalog().Models() {
		names = append(names, m.ID, m.Provider+"/"+m.ID)
	}
	for _, a := range c.app.Accounts().Of(c.org.Name) {
		for _, id := range a.Models {
			names = append(names, id, a.Label+"/"+id)
		}
		for m := range c.app.Catalog().Models() {
			if a.Models == nil && a.Label != a.Provider && m.Provider == a.Provider {
				names = append(names, a.Label+"/"+m.ID)
			}
		}
	}
	return names
}
