package bound

import (
	_ "embed"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// fieldList is the list of fields that may name something, with what each names.
//
//go:embed fields.txt
var fieldList string

// meaning is what the text in a field names.
type meaning uint8

const (
	unlisted      meaning = iota
	clientText            // nothing: it is the client's own text
	providerState         // what the provider keeps
	named                 // what the provider keeps, if it is the id of an object
)

// meanings are those of fetched addresses and of models, too, which are no ids.
var meanings = map[string]meaning{"kept": providerState, "named": named, "fetched": clientText, "model": clientText, "own": clientText}

// api are the fields of the requests of one API.
type api struct {
	fields map[string]meaning
	ids    []string // the fields that may have ids
}

var (
	// apis are those of the list by their dialects.
	apis = make(map[plugins.Dialect]*api)
	// anyAPI has the fields of all APIs, for the dialects that are not in the list.
	anyAPI = new(api)
)

func init() {
	tracing := make(map[string]meaning)
	for line := range strings.Lines(fieldList) {
		column := strings.Fields(line)
		if len(column) != 3 || column[0] == "#" {
			continue
		}
		d, m, name := plugins.Dialect(column[0]), meanings[column[1]], column[2]
		if d == "any" {
			tracing[name] = m
			continue
		}
		if apis[d] == nil {
			apis[d] = new(api)
		}
		apis[d].add(name, m)
		anyAPI.add(name, m)
	}
	for name, m := range tracing {
		anyAPI.add(name, m)
		for _, a := range apis {
			a.add(name, m)
		}
	}
}

// add adds a field. What one API keeps by the name of another's option counts as kept.
func (a *api) add(name string, m meaning) {
	if a.fields == nil {
		a.fields = make(map[string]meaning)
	}
	if m > clientText && a.fields[name] <= clientText {
		a.ids = append(a.ids, name)
	}
	a.fields[name] = max(a.fields[name], m)
}

// apiOf returns the fields of a dialect.
func apiOf(d plugins.Dialect) *api {
	switch {
	case d.OfResponses():
		d = plugins.Responses
	case d == plugins.CountTokens:
		d = plugins.Messages
	}
	if a := apis[d]; a != nil {
		return a
	}
	return anyAPI
}

// listed returns what a field of the list names.
func (a *api) listed(name string) meaning { return a.fields[name] }

// meaning returns what a field names. A field that no list has names what the provider keeps if
// it is called an id: vendors add such fields faster than libraries have types for them.
func (a *api) meaning(name string) meaning {
	m := a.fields[name]
	if m == unlisted && isID(name) {
		return providerState
	}
	return m
}

// mayHaveID reports whether JSON may have a field for which isID is true.
func mayHaveID(json string) bool {
	return strings.Contains(json, "_id") || strings.Contains(json, `Id"`) || strings.Contains(json, `Ids"`) ||
		strings.Contains(json, "ID") || strings.Contains(json, `\u`)
}

// isID reports whether a field is called an id, or ids.
func isID(name string) bool {
	name = strings.TrimSuffix(name, "s")
	return strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "ID")
}
