package llmcontrol

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/control"
)

// alertRule is how the API writes a rule of alerts.
type alertRule struct {
	// ID is null for a rule of the configuration: the API cannot change one.
	ID *string `json:"id"`
	*alert.Rule
	Over      string `json:"over,omitempty"` // as requests have it
	Condition string `json:"condition"`
}

// newAlertRule returns how the API writes a rule. id is nil for one of the configuration.
func newAlertRule(id *string, r *alert.Rule) alertRule {
	return alertRule{id, r, r.Window(), r.Condition()}
}

// channel is a channel without its address, which may be a secret.
type channel struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// alerts is the engine of the organisation. The error says how to get one.
func (c *call) alerts() (*alert.Engine, error) {
	if e := c.app.Alerts(c.org.Name); e != nil {
		return e, nil
	}
	return nil, conflict("the configuration has no channel for this organisation: add one, as in `channel ops slack {env.SLACK_URL}`")
}

func listFirings(c *call) (any, error) {
	limit, values, err := c.query("after", "state")
	if err != nil {
		return nil, err
	}
	p := control.Page{After: values[0], NewestFirst: true, Limit: limit + 1}
	switch values[1] {
	case "":
	case control.StateFiring:
		p.List = control.Unresolved
	default:
		return nil, bad("state: only firing is expected, not %s", values[1])
	}
	list, err := c.org.Firings(c.ctx, p)
	if err != nil {
		return nil, err
	}
	answer := page{}
	if len(list) > limit {
		list = list[:limit]
		answer.Next = &list[limit-1].ID
	}
	answer.Items = append([]*control.Firing{}, list...) // [] for none
	return answer, nil
}

func getFiring(c *call) (any, error) {
	f, err := control.Get[control.Firing](c.ctx, c.org, c.r.PathValue("id"))
	return f.Object, err
}

func redeliver(c *call) (any, error) {
	e, err := c.alerts()
	if err != nil {
		return nil, err
	}
	return e.Redeliver(c.ctx, c.org, c.r.PathValue("id"))
}

func listAlertRules(c *call) (any, error) {
	list := []alertRule{}
	if e := c.app.Alerts(c.org.Name); e != nil {
		for _, r := range e.Rules {
			list = append(list, newAlertRule(nil, r))
		}
	}
	rules, err := control.All[control.AlertRule](c.ctx, c.org, control.Page{})
	for _, k := range rules {
		r := new(alert.Rule)
		if err := json.Unmarshal(k.Object.Rule, r); err != nil {
			return nil, err
		}
		list = append(list, newAlertRule(&k.Object.ID, r))
	}
	return page{Items: list}, err
}

func setAlertRule(c *call) (any, error) {
	e, err := c.alerts()
	if err != nil {
		return nil, err
	}
	r, err := e.Read(c.body)
	if err != nil {
		return nil, bad("%v", err)
	}
	if e.Configured(r.Name) != nil {
		return nil, conflict("the alert " + r.Name + " is in the configuration, which alone changes it")
	}
	if err := c.org.SetAlertRule(c.ctx, r.Name, c.body); errors.Is(err, control.ErrManyAlertRules) {
		return nil, conflict(err.Error())
	} else if err != nil {
		return nil, err
	}
	rule, err := control.Named[control.AlertRule](c.ctx, c.org, r.Name)
	if err != nil {
		return nil, err
	}
	return newAlertRule(&rule.ID, r), nil
}

func deleteAlertRule(c *call) (any, error) {
	name := c.r.PathValue("name")
	if e := c.app.Alerts(c.org.Name); e != nil && e.Configured(name) != nil {
		return nil, conflict("the alert " + name + " is in the configuration, which alone changes it")
	}
	rule, err := control.Named[control.AlertRule](c.ctx, c.org, name)
	if errors.Is(err, control.ErrNotFound) {
		err = control.NotFoundError(control.KindAlertRule)
	}
	if err != nil {
		return nil, err
	}
	return nil, control.Delete[control.AlertRule](c.ctx, c.org, rule.ID)
}

func listChannels(c *call) (any, error) {
	list := []channel{}
	if e := c.app.Alerts(c.org.Name); e != nil {
		for _, ch := range e.Channels {
			list = append(list, channel{ch.Name, ch.Kind})
		}
	}
	return page{Items: list}, nil
}

func testChannel(c *call) (any, error) {
	e, err := c.alerts()
	if err != nil {
		return nil, err
	}
	d, err := e.Test(c.ctx, c.org, c.r.PathValue("name"))
	if errors.Is(err, alert.ErrNoChannel) {
		return nil, &plugins.Error{Status: http.StatusNotFound, Message: err.Error()}
	}
	return d, err
}
