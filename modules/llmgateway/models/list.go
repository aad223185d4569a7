// Package models lists the models that can be called, as OpenAI and Anthropic list them.
//
// Its tests are models_test.go of llmgateway.
package models

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// list is the answer of GET /v1/models.
type list struct {
	Object string   `json:"object"`
	Data   []*entry `json:"data"`
}

// entry is one model. The detail is there on demand.
type entry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	*detail

	name       string // for people
	multimodal bool
	targets    []target // what the id stands for
}

// target is a model at the account with a label.
type target struct{ label, model string }

// detail is what `?detail=true` adds to a model.
type detail struct {
	Input     []string `json:"input_modalities"`
	Output    []string `json:"output_modalities"`
	Context   *int64   `json:"context_window"`
	MaxOutput *int64   `json:"max_output_tokens"`
	Providers []offer  `json:"providers"`
}

// offer is the price of a model at one provider.
type offer struct {
	Provider string          `json:"provider"`
	Prices   []catalog.Price `json:"prices"`
}

// List has the models that organisations can call.
type List struct {
	everybody []*entry            // for organisations without providers of their own
	byOrg     map[string][]*entry // by organisation
	resolver  func(org string) *routing.Resolver
}

// New lists the models of an app.
func New(app *llmapp.App) List {
	l := List{everybody: entries(app.Resolver("")), byOrg: make(map[string][]*entry), resolver: app.Resolver}
	for name, org := range app.Organisations {
		if len(org.Providers) > 0 {
			l.byOrg[name] = entries(app.Resolver(name))
		}
	}
	return l
}

// Of lists the models that all organisations can call.
func Of(r *routing.Resolver) List {
	return List{everybody: entries(r), resolver: func(string) *routing.Resolver { return r }}
}

// entries lists the models of accounts and the aliases, by id. If several accounts serve a
// model, the first account that knows the maker and the date says them.
func entries(r *routing.Resolver) []*entry {
	c, byID := r.Catalog, make(map[string]*entry)
	for _, a := range r.Accounts {
		for _, id := range a.Models {
			m, ok := c.Lookup(a.Provider, id)
			if !ok {
				m = &catalog.Model{}
			}
			add(byID, a, id, id, m)
		}
		if a.Models != nil {
			continue
		}
		for m := range c.Models() {
			if m.Provider == a.Provider && generates(m) {
				add(byID, a, m.ID, m.ID, m)
			}
		}
	}
	for alias := range r.Aliases {
		if e := named(r, alias); e != nil {
			byID[alias] = e
		}
	}
	list := slices.Collect(maps.Values(byID))
	slices.SortFunc(list, func(a, b *entry) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// named returns the entry of a name that can be called: an alias, `label/model`, or another
// name of a model; nil if no account is known to serve the name.
func named(r *routing.Resolver, name string) *entry {
	targets, _, err := r.Resolve(name)
	if err != nil || strings.Contains(name, ",") {
		return nil
	}
	byID := make(map[string]*entry)
	for _, t := range targets {
		switch {
		case t.Listed != nil:
			add(byID, t.Account, name, t.Model, t.Listed)
		case t.Account.Models != nil:
			add(byID, t.Account, name, t.Model, &catalog.Model{})
		}
	}
	return byID[name]
}

// generates reports whether a model answers text with text. The catalogue says so wrongly of some
// models of embeddings and images, too.
func generates(m *catalog.Model) bool {
	id := strings.ToLower(m.ID)
	return (m.Context > 0 || m.ToolCall) && slices.Contains(m.Input, "text") && slices.Contains(m.Output, "text") &&
		!strings.Contains(id, "embed") && !strings.HasPrefix(id, "bge-")
}

// add adds a model of an account, as the id that callers use for it.
func add(entries map[string]*entry, a *providers.Account, id, model string, m *catalog.Model) {
	e := entries[id]
	if e == nil {
		e = &entry{ID: id, Object: "model", OwnedBy: a.Provider, name: cmp.Or(m.Name, id), detail: &detail{
			Input: nonNil(m.Input), Output: nonNil(m.Output), Context: nilIfZero(m.Context), MaxOutput: nilIfZero(m.MaxOutput),
		}}
		entries[id] = e
	}
	if e.Created == 0 && m.Released != 0 {
		e.Created = m.Released.Time().Unix()
	}
	if e.OwnedBy == a.Provider && m.Owner != "" {
		e.OwnedBy = m.Owner
	}
	e.multimodal = e.multimodal || m.Multimodal()
	e.targets = append(e.targets, target{a.Label, model})
	if !slices.ContainsFunc(e.Providers, func(o offer) bool { return o.Provider == a.Label }) {
		e.Providers = append(e.Providers, offer{a.Label, nonNil(m.Prices)})
	}
}

// nilIfZero returns nil for 0, which JSON has as null.
func nilIfZero(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Dialect returns the dialect in which a request wants models listed.
func Dialect(r *http.Request) plugins.Dialect {
	if r.Header.Get("Anthropic-Version") != "" {
		return plugins.Messages
	}
	return plugins.Responses
}

// Request says which models a caller wants.
type Request struct {
	// Key is the caller's, nil for a caller without one.
	Key *access.Key
	// ID is the id of one model, "" for all models.
	ID string
	// Multimodal leaves out models of text alone.
	Multimodal bool
}

// Serve answers a request for models.
func (l *List) Serve(w http.ResponseWriter, r *http.Request, query Request) error {
	models, org := l.everybody, ""
	if query.Key != nil {
		org = query.Key.Org()
	}
	if listed, ok := l.byOrg[org]; ok {
		models = listed
	}
	dialect := Dialect(r)
	if query.ID != "" {
		var found *entry
		if i := slices.IndexFunc(models, func(e *entry) bool { return e.ID == query.ID }); i >= 0 {
			found = models[i]
		} else if l.resolver != nil { // a zero List has nothing
			found = named(l.resolver(org), query.ID)
		}
		switch {
		case found == nil || !found.allowed(query.Key):
			return apierror.Write(w, dialect, &plugins.Error{
				Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
				Message: "The model '" + query.ID + "' does not exist or cannot be called. GET /v1/models lists those that can.",
			})
		case dialect == plugins.Messages:
			return apierror.WriteJSON(w, http.StatusOK, found.toAnthropic())
		}
		return apierror.WriteJSON(w, http.StatusOK, found.shown(r, query.Key))
	}
	models = slices.DeleteFunc(slices.Clone(models), func(e *entry) bool {
		return query.Multimodal && !e.multimodal || !e.allowed(query.Key)
	})
	if dialect == plugins.Messages {
		return writeAnthropic(w, r, models)
	}
	answer := list{Object: "list", Data: []*entry{}}
	for _, e := range models {
		answer.Data = append(answer.Data, e.shown(r, query.Key))
	}
	return apierror.WriteJSON(w, http.StatusOK, answer)
}

// allowed reports whether a key may call what the entry stands for, at one account at least.
func (e *entry) allowed(key *access.Key) bool {
	return slices.ContainsFunc(e.targets, func(t target) bool { return key.MayCall(t.label, t.model) })
}

// shown returns the entry, without the detail unless the request asks for it. The detail has the
// accounts alone that the key may call.
func (e *entry) shown(r *http.Request, key *access.Key) *entry {
	shown := *e
	if shown.detail = nil; r.URL.Query().Get("detail") == "true" {
		d := *e.detail
		d.Providers = slices.DeleteFunc(slices.Clone(d.Providers), func(o offer) bool {
			return !slices.ContainsFunc(e.targets, func(t target) bool { return t.label == o.Provider && key.MayCall(t.label, t.model) })
		})
		shown.detail = &d
	}
	return &shown
}

// anthropicModel is a model as Anthropic lists it
// (https://platform.claude.com/docs/en/api/models/list).
type anthropicModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// anthropicModels is a page of models.
type anthropicModels struct {
	Data    []anthropicModel `json:"data"`
	HasMore bool             `json:"has_more"`
	FirstID *string          `json:"first_id"`
	LastID  *string          `json:"last_id"`
}

func (e *entry) toAnthropic() anthropicModel {
	return anthropicModel{"model", e.ID, e.name, time.Unix(e.Created, 0).UTC()}
}

const (
	defaultModels = 20
	maxModels     = 1000
)

// writeAnthropic answers the page that the query asks for.
func writeAnthropic(w http.ResponseWriter, r *http.Request, list []*entry) error {
	list, more, err := page(list, r.URL.Query())
	if err != nil {
		return apierror.Write(w, plugins.Messages, apierror.Of(err))
	}
	answer := anthropicModels{Data: []anthropicModel{}, HasMore: more}
	for _, e := range list {
		answer.Data = append(answer.Data, e.toAnthropic())
	}
	if n := len(answer.Data); n > 0 {
		answer.FirstID, answer.LastID = &answer.Data[0].ID, &answer.Data[n-1].ID
	}
	return apierror.WriteJSON(w, http.StatusOK, answer)
}

// page cuts a page out of the list. more reports that there are models beyond it.
func page(list []*entry, query url.Values) (page []*entry, more bool, err error) {
	limit := defaultModels
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxModels {
			return nil, false, plugins.Invalid("limit", "Invalid 'limit': expected a number of 1 to %d.", maxModels)
		}
	}
	position := func(param string) (int, error) {
		id := query.Get(param)
		i := slices.IndexFunc(list, func(e *entry) bool { return e.ID == id })
		if id != "" && i < 0 {
			return 0, plugins.Invalid(param, "Invalid '%s': there is no model '%s'.", param, id)
		}
		return i, nil
	}
	after, err := position("after_id")
	if err != nil {
		return nil, false, err
	}
	before, err := position("before_id")
	if err != nil {
		return nil, false, err
	}
	if before >= 0 {
		list = list[:before]
		from := max(len(list)-limit, 0)
		return list[from:], from > 0, nil
	}
	list = list[after+1:]
	return list[:min(limit, len(list))], len(list) > limit, nil
}
