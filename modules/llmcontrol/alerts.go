package llmcontrol

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/control"
)

// What OpenAI calls a spend alert is kept with the rule of the spend limit, and is a stage of its
// budget, at the next whole percent of the limit.

// alert is how OpenAI writes a spend alert.
type alert struct {
	Object string `json:"object"`
	ID     string `json:"id"`
	// Amount is in cents.
	Amount   int64        `json:"threshold_amount"`
	Currency string       `json:"currency"`
	Interval string       `json:"interval"`
	Channel  alertChannel `json:"notification_channel"`
}

type alertChannel struct {
	Type          string   `json:"type"`
	Recipients    []string `json:"recipients"`
	SubjectPrefix *string  `json:"subject_prefix"` // null for none
}

// alertObject is what an alert of the scope is called.
func (s spendScope) alertObject() string { return strings.TrimSuffix(s.object, "limit") + "alert" }

func (s spendScope) describeAlert(a control.Alert) alert {
	return alert{s.alertObject(), a.ID, a.Amount, "USD", "month", alertChannel{"email", a.Recipients, optional(a.SubjectPrefix)}}
}

// percent is the part of a limit that an alert is told at.
func percent(a control.Alert, limit plugins.Nanodollars) int {
	return int(min(100, math.Ceil(float64(a.Amount)*float64(cent)*100/float64(limit))))
}

// stagesOf are the stages of a limit that alerts are.
func stagesOf(alerts []control.Alert, limit plugins.Nanodollars) (stages []*llmapp.Stage) {
	for _, a := range alerts {
		at := percent(a, limit)
		if !slices.ContainsFunc(stages, func(s *llmapp.Stage) bool { return s.At == at }) {
			stages = append(stages, &llmapp.Stage{At: at})
		}
	}
	return stages
}

// changeAlerts changes the alerts of a spend limit. Stages that no alert has made stay.
func (c *call) changeAlerts(set func(*control.Rule) error) error {
	s, err := c.spendScope()
	if err != nil {
		return err
	}
	kept, _, err := s.find(c)
	if err != nil {
		return err
	}
	_, err = control.Update(c.ctx, c.org, kept.ID, func(r *control.Rule) error {
		b, err := c.app.ReadBudget(c.org.Name, r.Budget)
		if err != nil {
			return unreadable(r, err)
		}
		made := stagesOf(r.Alerts, b.Cap())
		if err := set(r); err != nil {
			return err
		}
		if len(r.Alerts) > 0 && slices.MaxFunc(r.Alerts, func(a, b control.Alert) int { return int(a.Amount - b.Amount) }).Amount > int64(b.Cap()/cent) {
			return bad("threshold_amount: at most the spend limit of %d cents is expected", int64(b.Cap()/cent))
		}
		has := func(list []*llmapp.Stage, at int) bool {
			return slices.ContainsFunc(list, func(s *llmapp.Stage) bool { return s.At == at })
		}
		b.Stages = slices.DeleteFunc(b.Stages, func(s *llmapp.Stage) bool { return s.Use == "" && has(made, s.At) })
		for _, stage := range stagesOf(r.Alerts, b.Cap()) {
			if !has(b.Stages, stage.At) {
				b.Stages = append(b.Stages, stage)
			}
		}
		r.Budget, err = json.Marshal(b)
		return err
	})
	return err
}

// alertSettings reads the body of an alert.
func (c *call) alertSettings() (s control.AlertSettings, err error) {
	var body struct {
		Amount   int64        `json:"threshold_amount"`
		Currency string       `json:"currency"`
		Interval string       `json:"interval"`
		Channel  alertChannel `json:"notification_channel"`
	}
	if err := c.decode(&body); err != nil {
		return s, err
	}
	s = control.AlertSettings{Amount: body.Amount, Recipients: body.Channel.Recipients}
	if body.Channel.SubjectPrefix != nil {
		s.SubjectPrefix = *body.Channel.SubjectPrefix
	}
	known := func(email string) bool {
		_, ok := control.Email(email)
		return ok
	}
	switch {
	case body.Currency != "USD":
		return s, bad("currency: USD is expected")
	case body.Interval != "month":
		return s, bad("interval: month is expected")
	case s.Amount < 1 || s.Amount > unlimited/100:
		return s, bad("threshold_amount: a number of cents is expected, 1 or more")
	case body.Channel.Type != "email":
		return s, bad("notification_channel: the type email is expected")
	case len(s.Recipients) == 0 || len(s.Recipients) > maxList || slices.ContainsFunc(s.Recipients, func(email string) bool { return !known(email) }):
		return s, bad("notification_channel: 1 to %d recipients are expected, each an email", maxList)
	case len(s.SubjectPrefix) > maxText || strings.ContainsFunc(s.SubjectPrefix, unicode.IsControl):
		return s, bad("notification_channel: subject_prefix has at most %d bytes and no control characters", maxText)
	}
	c.head.Add("Service-Warnings", "notification_channel: no mail is sent; the log, the audit log and a metric tell of the alert")
	return s, nil
}

// createAlert takes POST /v1/organization/spend_alerts, and the same of a project.
func createAlert(c *call) (any, error) {
	settings, err := c.alertSettings()
	if err != nil {
		return nil, err
	}
	s, err := c.spendScope()
	if err != nil {
		return nil, err
	}
	var made control.Alert
	err = c.changeAlerts(func(r *control.Rule) error {
		if len(r.Alerts) == maxList {
			return conflict("a spend limit has at most 100 alerts")
		}
		made = r.AddAlert(settings)
		return nil
	})
	if errors.Is(err, control.NotFoundError("spend_limit")) {
		return nil, conflict("there is no spend limit: set one, of which the alert tells a part")
	}
	return s.describeAlert(made), err
}

// alerts are those of the scope that the path names.
func (c *call) alerts() (s spendScope, all []control.Alert, err error) {
	if s, err = c.spendScope(); err != nil {
		return s, nil, err
	}
	r, _, err := s.find(c)
	if errors.Is(err, control.ErrNotFound) {
		return s, nil, nil
	}
	if err != nil {
		return s, nil, err
	}
	return s, r.Alerts, nil
}

// errNoAlert is the error for an alert that there is not.
const errNoAlert = control.NotFoundError("spend_alert")

// alertAt is the place of the alert that the path names.
func (c *call) alertAt(all []control.Alert) (int, error) {
	i := slices.IndexFunc(all, func(a control.Alert) bool { return a.ID == c.r.PathValue("id") })
	if i < 0 {
		return 0, errNoAlert
	}
	return i, nil
}

// listAlerts takes GET /v1/organization/spend_alerts, and the same of a project.
func listAlerts(c *call) (any, error) {
	limit, values, err := c.query("after", "order")
	if err != nil {
		return nil, err
	}
	s, all, err := c.alerts()
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	switch values[1] {
	case "", "asc":
	case "desc":
		slices.Reverse(all)
	default:
		return nil, bad("order: asc or desc is expected")
	}
	if after := values[0]; after != "" {
		i := slices.IndexFunc(all, func(a control.Alert) bool { return a.ID == after })
		if i < 0 {
			return nil, control.ErrNoPlace
		}
		all = all[i+1:]
	}
	page := openAIPage{Object: "list", Data: []any{}, HasMore: len(all) > limit}
	for _, a := range all[:min(limit, len(all))] {
		page.add(a.ID, s.describeAlert(a))
	}
	return page, nil
}

// getAlert takes GET /v1/organization/spend_alerts/{id}, and the same of a project.
func getAlert(c *call) (any, error) {
	s, all, err := c.alerts()
	if err != nil {
		return nil, err
	}
	i, err := c.alertAt(all)
	if err != nil {
		return nil, err
	}
	return s.describeAlert(all[i]), nil
}

// updateAlert takes POST /v1/organization/spend_alerts/{id}, and the same of a project.
func updateAlert(c *call) (any, error) {
	settings, err := c.alertSettings()
	if err != nil {
		return nil, err
	}
	if err := c.changeAlerts(func(r *control.Rule) error {
		i, err := c.alertAt(r.Alerts)
		if err == nil {
			r.Alerts[i].AlertSettings = settings
		}
		return err
	}); err != nil {
		return nil, noAlert(err)
	}
	return getAlert(c)
}

// deleteAlert takes DELETE /v1/organization/spend_alerts/{id}, and the same of a project.
func deleteAlert(c *call) (any, error) {
	s, err := c.spendScope()
	if err != nil {
		return nil, err
	}
	return deleted{s.alertObject() + ".deleted", c.r.PathValue("id"), true}, noAlert(c.changeAlerts(func(r *control.Rule) error {
		i, err := c.alertAt(r.Alerts)
		if err == nil {
			r.Alerts = slices.Delete(r.Alerts, i, i+1)
		}
		return err
	}))
}

// noAlert is an error, which names the alert where the spend limit is not there.
func noAlert(err error) error {
	if errors.Is(err, control.NotFoundError("spend_limit")) {
		return errNoAlert
	}
	return err
}
