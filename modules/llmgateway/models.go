package llmgateway

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// modelList is the answer of GET /v1/models.
type modelList struct {
	Object string        `json:"object"`
	Data   []*modelEntry `json:"data"`
}

// modelEntry is one model. The detail is there on demand.
type modelEntry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	*modelDetail

	name       string // for people
	multimodal bool
}

// modelDetail is what `?detail=true` adds to a model.
type modelDetail struct {
	Input     []string     `json:"input_modalities"`
	Output    []string     `json:"output_modalities"`
	Context   *int64       `json:"context_window"`
	MaxOutput *int64       `json:"max_output_tokens"`
	Providers []modelOffer `json:"providers"`
}

// modelOffer is the price of a model at one provider.
type modelOffer struct {
	Provider string          `json:"provider"`
	Prices   []catalog.Price `json:"prices"`
}

// catalogue lists the models that can be called, by id.
type catalogue struct {
	everybody []*modelEntry            // of organisations without providers of their own
	own       map[string][]*modelEntry // by organisation
}

func newCatalogue(app *llmapp.App) catalogue {
	c := catalogue{models(app.Catalog(), app.Accounts("")), make(map[string][]*modelEntry)}
	for name, org := range app.Organisations {
		if len(org.Providers) > 0 {
			c.own[name] = models(app.Catalog(), app.Accounts(name))
		}
	}
	return c
}

// of returns the models that an organisation can call.
func (c *catalogue) of(org string) []*modelEntry {
	if list, ok := c.own[org]; ok {
		return list
	}
	return c.everybody
}

// models lists the models of accounts, by id. If several accounts serve a model, the first
// account that knows the maker and the date says them.
func models(c *catalog.Catalog, accounts []*llmapp.Account) []*modelEntry {
	entries := make(map[string]*modelEntry)
	for _, a := range accounts {
		for _, id := range a.Models {
			m, ok := c.Lookup(a.Provider, id)
			if !ok {
				m = &catalog.Model{}
			}
			offer(entries, a, id, m)
		}
		if a.Models != nil {
			continue
		}
		for m := range c.Models() {
			if m.Provider == a.Provider && generates(m) {
				offer(entries, a, m.ID, m)
			}
		}
	}
	list := slices.Collect(maps.Values(entries))
	slices.SortFunc(list, func(a, b *modelEntry) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// generates reports whether a model answers text with text. The catalogue says so of some
// models of embeddings and images, too, which do not.
func generates(m *catalog.Model) bool {
	id := strings.ToLower(m.ID)
	return (m.Context > 0 || m.ToolCall) && slices.Contains(m.Input, "text") && slices.Contains(m.Output, "text") &&
		!strings.Contains(id, "embed") && !strings.HasPrefix(id, "bge-")
}

func offer(entries map[string]*modelEntry, a *llmapp.Account, id string, m *catalog.Model) {
	e := entries[id]
	if e == nil {
		e = &modelEntry{ID: id, Object: "model", OwnedBy: a.Provider, name: cmp.Or(m.Name, id), modelDetail: &modelDetail{
			Input: nonNil(m.Input), Output: nonNil(m.Output), Context: known(m.Context), MaxOutput: known(m.MaxOutput),
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
	if !slices.ContainsFunc(e.Providers, func(o modelOffer) bool { return o.Provider == a.Label }) {
		e.Providers = append(e.Providers, modelOffer{a.Label, nonNil(m.Prices)})
	}
}

// known returns nil for 0, which JSON has as null.
func known(n int64) *int64 {
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

// serveModels answers GET /v1/models and the paths below it, to Anthropic's clients in
// Anthropic's form. A caller needs no key; with a key, it gets the models of its organisation.
func (h *Handler) serveModels(w http.ResponseWriter, r *http.Request, at *match) error {
	list, dialect := h.models.everybody, plugins.Responses
	anthropic := r.Header.Get("Anthropic-Version") != ""
	if anthropic {
		dialect = plugins.Messages
	}
	if key, e := h.gate().Admit(r, llmapp.ScopeGateway, keyFields(dialect)...); e == nil {
		list = h.models.of(key.Org())
	}
	if at.id != "" {
		i := slices.IndexFunc(list, func(e *modelEntry) bool { return e.ID == at.id })
		switch {
		case i < 0:
			return apierror.Write(w, dialect, &plugins.Error{
				Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
				Message: "The model '" + at.id + "' does not exist or cannot be called. GET " + modelsPath + " lists those that can.",
			})
		case anthropic:
			return apierror.WriteJSON(w, http.StatusOK, list[i].toAnthropic())
		}
		return apierror.WriteJSON(w, http.StatusOK, list[i].shown(r))
	}
	if at.path != modelsPath {
		list = slices.DeleteFunc(slices.Clone(list), func(e *modelEntry) bool { return !e.multimodal })
	}
	if anthropic {
		return writeAnthropicModels(w, r, list)
	}
	answer := modelList{Object: "list", Data: []*modelEntry{}}
	for _, e := range list {
		answer.Data = append(answer.Data, e.shown(r))
	}
	return apierror.WriteJSON(w, http.StatusOK, answer)
}

// shown returns the entry, without the detail unless the request asks for it.
func (e *modelEntry) shown(r *http.Request) *modelEntry {
	if r.URL.Query().Get("detail") == "true" {
		return e
	}
	brief := *e
	brief.modelDetail = nil
	return &brief
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

func (e *modelEntry) toAnthropic() anthropicModel {
	return anthropicModel{"model", e.ID, e.name, time.Unix(e.Created, 0).UTC()}
}

const (
	defaultModels = 20
	maxModels     = 1000
)

// writeAnthropicModels answers the page that the query asks for.
func writeAnthropicModels(w http.ResponseWriter, r *http.Request, list []*modelEntry) error {
	list, more, err := modelPage(list, r.URL.Query())
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

// modelPage cuts a page out of the list. more reports that there are models beyond it.
func modelPage(list []*modelEntry, query url.Values) (page []*modelEntry, more bool, err error) {
	limit := defaultModels
	if asked := query.Get("limit"); asked != "" {
		if limit, err = strconv.Atoi(asked); err != nil || limit < 1 || limit > maxModels {
			return nil, false, plugins.Invalid("limit", "Invalid 'limit': expected a number of 1 to %d.", maxModels)
		}
	}
	position := func(param string) (int, error) {
		id := query.Get(param)
		i := slices.IndexFunc(list, func(e *modelEntry) bool { return e.ID == id })
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
