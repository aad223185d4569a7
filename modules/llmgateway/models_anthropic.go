package llmgateway

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/plugins"
)

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
		return apierror.Write(w, plugins.Messages, asError(err))
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
