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

// A spend alert of OpenAI's API is stored in the rule of the spend limit, and makes a stage of the
// rule's budget. The stage is at the alert's percentage of the limit, rounded up.

// spendAlert is how OpenAI writes a spend alert.
type spendAlert struct {
	Object string `json:"object"`
	ID     string `json:"id"`
	monthlyAmount
	Channel alertChannel `json:"notification_channel"`
}

type alertChannel struct {
	Type          string   `json:"type"`
	Recipients    []string `json:"recipients"`
	SubjectPrefix *string  `json:"subject_prefix"` // null for none
}

// alertObject is the value of `object` in an alert.
func (s spendScope) alertObject() string { return strings.TrimSuffix(s.object, "limit") + "alert" }

func (s spendScope) describeAlert(a control.Alert) spendAlert {
	return spendAlert{s.alertObject(), a.ID, monthlyAmount{a.Amount, "USD", "month"}, alertChannel{"email", a.Recipients, optional(a.SubjectPrefix)}}
}

// percent returns the percentage of a limit at which an alert fires, rounded up.
func percent(a control.Alert, limit plugins.Nanodollars) int {
	return int(min(100, math.Ceil(float64(a.Amount)*float64(cent)*100/float64(limit))))
}

// stagesOf makes the stages of a limit from its alerts.
func stagesOf(alerts []control.Alert, limit plugins.Nanodollars) (stages []*llmapp.Stage) {
	for _, a := range alerts {
		at := percent(a, limit)
		if !slices.ContainsFunc(stages, func(s *llmapp.Stage) bool { return s.At == at }) {
			stages = append(stages, &llmapp.Stage{At: at})
		}
	}
	return stages
}

// changeAlerts changes the alerts of the spend limit that the path names. Stages of the budget that
// were not made by alerts stay.
func (c *call) changeAlerts(set func(*control.Rule) error) error {
	rule, _, err := c.spendScope().find(c)
	if err != nil {
		return err
	}
	_, err = control.Update(c.ctx, c.org, rule.ID, func(r *control.Rule) error {
		b, err := c.app.Money().ParseStored(c.org.Name, r.Budget)
		if err != nil {
			return unreadable(r, err)
		}
		stages := stagesOf(r.Alerts, b.Cap())
		if err := set(r); err != nil {
			return err
		}
		if len(r.Alerts) > 0 && slices.MaxFunc(r.Alerts, func(a, b control.Alert) int { return int(a.Amount - b.Amount) }).Amount > int64(b.Cap()/cent) {
			return bad("threshold_amount: at most the spend limit of %d cents is expected", int64(b.Cap()/cent))
		}
		has := func(list []*llmapp.Stage, at int) bool {
			return slices.ContainsFunc(list, func(s *llmapp.Stage) bool { return s.At == at })
		}
		b.Stages = slices.DeleteFunc(b.Stages, func(s *llmapp.Stage) bool { return s.Use == "" && has(stages, s.At) })
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
		monthlyAmount
		Channel alertChannel `json:"notification_channel"`
	}
	if err := c.decode(&body); err != nil {
		return s, err
	}
	if err := body.check(); err != nil {
		return s, err
	}
	s = control.AlertSettings{Amount: body.Amount, Recipients: body.Channel.Recipients}
	if body.Channel.SubjectPrefix != nil {
		s.SubjectPrefix = *body.Channel.SubjectPrefix
	}
	notEmail := func(text string) bool {
		_, ok := control.Email(text)
		return !ok
	}
	switch {
	case body.Channel.Type != "email":
		return s, bad("notification_channel: the type email is expected")
	case len(s.Recipients) == 0 || len(s.Recipients) > maxList || slices.ContainsFunc(s.Recipients, notEmail):
		return s, bad("notification_channel: 1 to %d recipients are expected, each an email", maxList)
	case len(s.SubjectPrefix) > maxText || strings.ContainsFunc(s.SubjectPrefix, unicode.IsControl):
		return s, bad("notification_channel: subject_prefix has at most %d bytes and no control characters", maxText)
	}
	c.head.Add("Service-Warnings", "notification_channel: no mail is sent; the log, the audit log and a metric tell of the alert")
	return s, nil
}

func createAlert(c *call) (any, error) {
	settings, err := c.alertSettings()
	if err != nil {
		return nil, err
	}
	var alert control.Alert
	err = c.changeAlerts(func(r *control.Rule) error {
		if len(r.Alerts) == maxList {
			return conflict("a spend limit has at most 100 alerts")
		}
		alert = r.AddAlert(settings)
		return nil
	})
	if errors.Is(err, control.NotFoundError("spend_limit")) {
		return nil, conflict("there is no spend limit: set one, of which the alert tells a part")
	}
	return c.spendScope().describeAlert(alert), err
}

// spendAlerts returns the alerts of the spend limit that the path names.
func (c *call) spendAlerts() ([]control.Alert, error) {
	r, _, err := c.spendScope().find(c)
	switch {
	case errors.Is(err, control.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r.Alerts, nil
}

// errNoAlert means that the spend limit has no alert with the id.
const errNoAlert = control.NotFoundError("spend_alert")

// alertAt returns the index of the alert that the path names.
func (c *call) alertAt(all []control.Alert) (int, error) {
	i := slices.IndexFunc(all, func(a control.Alert) bool { return a.ID == c.r.PathValue("id") })
	if i < 0 {
		return 0, errNoAlert
	}
	return i, nil
}

func listAlerts(c *call) (any, error) {
	limit, values, err := c.query("after", "order")
	if err != nil {
		return nil, err
	}
	all, err := c.spendAlerts()
	if err != nil {
		return nil, err
	}
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
		page.add(a.ID, c.spendScope().describeAlert(a))
	}
	return page, nil
}

func getAlert(c *call) (any, error) {
	all, err := c.spendAlerts()
	if err != nil {
		return nil, err
	}
	i, err := c.alertAt(all)
	if err != nil {
		return nil, err
	}
	return c.spendScope().describeAlert(all[i]), nil
}

func updateAlert(c *call) (any, error) {
	settings, err := c.alertSettings()
	if err != nil {
		return nil, err
	}
	var changed control.Alert
	err = c.changeAlerts(func(r *control.Rule) error {
		i, err := c.alertAt(r.Alerts)
		if err == nil {
			r.Alerts[i].AlertSettings = settings
			changed = r.Alerts[i]
		}
		return err
	})
	return c.spendScope().describeAlert(changed), noAlert(err)
}

func deleteAlert(c *call) (any, error) {
	err := c.changeAlerts(func(r *control.Rule) error {
		i, err := c.alertAt(r.Alerts)
		if err == nil {
			r.Alerts = slices.Delete(r.Alerts, i, i+1)
		}
		return err
	})
	return deletion{c.spendScope().alertObject() + ".deleted", c.r.PathValue("id"), true}, noAlert(err)
}

// noAlert turns the error for a missing spend limit into errNoAlert.
func noAlert(err error) error {
	if errors.Is(err, control.NotFoundError("spend_limit")) {
		return errNoAlert
	}
	return err
}
