package llmcontrol

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// maxReason bounds the reason of a hold, in characters.
const maxReason = 500

// recordFilter reads a filter of records. The key must have the scope query if the filter is
// about content, because what it matches tells of that.
func (c *call) recordFilter(text json.RawMessage) (storage.Filter, error) {
	filter, err := storage.ParseExplicitFilter(text, storage.RequestResponse)
	if err == nil {
		err = storage.CheckFilterWork(filter)
	}
	if err != nil {
		return nil, bad("%v", err)
	}
	if storage.ContentParts(filter) != 0 && !c.key.Allows(access.ScopeQuery) {
		return nil, &plugins.Error{Status: http.StatusForbidden, Message: `insufficient_scope: The API key lacks the scope "query", and may not ask for the content of requests.`}
	}
	return alsoMasked(filter, c.app.Maskers().Of(c.org.Name, mask.Content{})), nil
}

// alsoMasked returns a filter that takes a name for the label, too, that stands for it where names
// are masked: whoever wants to be erased knows the name alone.
func alsoMasked(f storage.Filter, names *mask.Masker) storage.Filter {
	switch f := f.(type) {
	case *storage.Branch:
		return &storage.Branch{Or: f.Or, Left: alsoMasked(f.Left, names), Right: alsoMasked(f.Right, names)}
	case *storage.Leaf:
		masked := *f
		if masked.Text = names.Name(f.Text, nil); masked.Text != f.Text && storage.ContentParts(f) == 0 {
			negated := f.Op == storage.NotEquals || f.Op == storage.NotContains
			return &storage.Branch{Or: !negated, Left: f, Right: &masked}
		}
	}
	return f
}

func placeHold(c *call) (any, error) {
	settings := struct {
		Filter json.RawMessage `json:"filter"`
		Reason string          `json:"reason"`
	}{}
	if err := c.decode(&settings); err != nil {
		return nil, err
	}
	filter, err := c.recordFilter(settings.Filter)
	if err != nil {
		return nil, err
	}
	reason := strings.TrimSpace(settings.Reason)
	if n := utf8.RuneCountInString(reason); n == 0 || n > maxReason {
		return nil, bad("reason: why the records are kept is expected, such as the number of a case, in at most %d characters", maxReason)
	}
	j, err := c.store.Journal()
	if err != nil {
		return nil, err
	}
	var hold *control.Hold
	err = j.ChangeHolds(func() error {
		hold, err = c.org.PlaceHold(c.ctx, storage.AppendJSON(nil, filter), reason)
		return err
	})
	if errors.Is(err, control.ErrManyHolds) {
		return nil, conflict(err.Error())
	}
	return hold, err
}

func listHolds(c *call) (any, error) {
	limit, values, err := c.query("after")
	if err != nil {
		return nil, err
	}
	list, err := control.All[control.Hold](c.ctx, c.org, control.Page{After: values[0], NewestFirst: true, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	items, answer := []*control.Hold{}, page{}
	for _, one := range list[:min(limit, len(list))] {
		items = append(items, one.Object)
	}
	if len(list) > limit {
		answer.Next = &items[limit-1].ID
	}
	answer.Items = items
	return answer, nil
}

func getHold(c *call) (any, error) {
	h, err := control.Get[control.Hold](c.ctx, c.org, c.r.PathValue("id"))
	return h.Object, err
}

func liftHold(c *call) (any, error) {
	j, err := c.store.Journal()
	if err != nil {
		return nil, err
	}
	return nil, j.ChangeHolds(func() error {
		return control.Delete[control.Hold](c.ctx, c.org, c.r.PathValue("id"))
	})
}
